"""The gain-weighted rule: the gains of its draws, what its decisions promise, and that they can be had again."""

import math

import numpy as np
import pytest

from library.tests.agents.catalogue import ORACLES, SIZE, SPACES, build, line
from library.tests.agents.exploration.draws import estimate, flow, pooled, promised, seen_by, single_step
from library.tests.agents.exploration.situations import model_alone, situation, taught
from library.tests.agents.models import an_episode
from library.tests.oracles.test_draws import Outsider, Stranger
from library.tests.random_mdps import with_tables
from library.tests.worlds import SafeArm
from omg_cmdp import OMG, Space, occupancy_measure, optimal_policy, oracles, policy_value
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import ExplorationRule, GainWeighted
from omg_cmdp.agents.exploration import base
from omg_cmdp.mdp.bellman import value_bounds
from omg_cmdp.oracles.draws import LIFE, Streams, keys_of
from omg_cmdp.runs import simulate

S, A, H = SIZE["states"], SIZE["actions"], SIZE["horizon"]

BARE = {"bare": line(OMG, GainWeighted())}
"""The rule without the account of the default."""

each_oracle = pytest.mark.parametrize("oracle", ORACLES)


def drawn_models(rule, this):
    """Return the models that the rule draws: rewards, then kernels, by the streams of the episode and no cache."""
    streams = Streams.lasting(rule.seed, this.episode, rule.draws)
    keys = keys_of(rule.seed, this.episode, rule.draws, 1)  # rewards are drawn anew in every episode
    paid = this.reward_oracle.draws_from(this.context, streams.of(0, keys))
    moves = this.dynamics_oracle.draws_from(this.context, streams.of(1))
    return [with_tables(this.model, rewards=f, transitions=p) for f, p in zip(paid, moves, strict=True)]


def learned(rng, oracle, space="restricted, spread start", episodes=12, **more):
    """Return contexts and an agent with the rule after a few episodes."""
    contexts, agent = build("bare", oracle, space, kinds=BARE, **more)
    return contexts, taught(rng, agent, contexts, episodes)


def by_pairs(of, draws):
    """Return what `flow` or `estimate` says of the draws if one table serves all steps, (S, A)."""
    return of(pooled(draws))[0]


def is_pooled(v):
    """Return whether the rule took the tables to be the same in all steps."""
    return v.ndim == 2


@each_oracle
@pytest.mark.parametrize("returns", [None, (1.5, 2.5)])
def test_gains_are_those_of_the_drawn_models(oracle, returns, rng):
    contexts, agent = learned(rng, oracle, episodes=0 if returns else 6, return_range=returns)
    for context in contexts[:2]:
        this = situation(agent, context, episode=agent.episodes_seen + 1)
        drawn = drawn_models(agent.gamma, this)
        v, draws = agent.gamma.gains(this), seen_by(this.model, drawn, *agent.returns)
        assert is_pooled(v)  # steps differ only in what is known
        expected = by_pairs(estimate, draws) if is_pooled(v) else estimate(draws)
        np.testing.assert_allclose(v, expected, rtol=1e-9, atol=1e-13)


def shared(table, v):
    """Return the sum of a table (H, S, A) over the steps that share an entry of v."""
    return table.sum(axis=0) if is_pooled(v) else table


def bound_of(this, v, draws, decision):
    """Return Σ m + ¼·Σ v/β + gap, v the draws' own; where there is no bonus β, all that they gain, √(c·v)."""
    own, visits = (by_pairs(flow, draws) if is_pooled(v) else flow(draws)), shared(draws.occupancies.mean(axis=0), v)
    q, m = (shared(table, v) for table in (decision.occupancy, decision.weights / decision.gamma))
    bonus = np.divide(m, q, out=np.zeros_like(q), where=q > 0.0)
    paid = np.where(bonus > 0.0, 0.25 * own / np.where(bonus > 0.0, bonus, 1.0), np.sqrt(visits * own))
    return float(m.sum() + paid.sum()) + decision.certificate / decision.gamma


@each_oracle
def test_theorem_c_on_decisions(oracle, rng):
    """What draws promise is at most V̂^π + Σ m + ¼·Σ v/β + gap, v their flow, β = ¼·√(v̂/Q̂) and m = β·Q̂, for any oracle.

    v̂ is the flow without its bias; with it Σ m + ¼·Σ v̂/β is 5/4·Σ √(v̂·Q̂).
    """
    contexts, agent = learned(rng, oracle)
    for t, context in enumerate(contexts * 3, start=agent.episodes_seen + 1):
        this = situation(agent, context, episode=t, tolerance=1e-9)
        decision, v = agent.gamma.decide(this), agent.gamma.gains(this)
        q, m = (shared(table, v) for table in (decision.occupancy, decision.weights / decision.gamma))
        np.testing.assert_allclose(m, 0.25 * np.sqrt(q * v), rtol=1e-9, atol=1e-15)
        enough = max(1e-9, base.ENOUGH * 2.0 * m.sum())
        assert decision.certificate / decision.gamma <= enough or decision.iterations == base.ROUNDS
        draws = seen_by(this.model, drawn_models(agent.gamma, this))
        missing = promised(this.model, draws) - policy_value(this.model, decision.policy)
        assert missing <= bound_of(this, v, draws, decision) + 1e-12


class Watched(ExplorationRule):
    """A rule that notes what it was asked, and what it answered."""

    def __init__(self, rule):
        self.rule, self.seen = rule, []

    def decide(self, situation):
        decision = self.rule.decide(situation)
        draws = seen_by(situation.model, drawn_models(self.rule, situation))
        self.seen.append((situation, self.rule.gains(situation), draws, decision))
        return decision


def test_theorem_c_in_a_run(seed):
    """At the agent's own tolerance; and what is promised in the mean model is paid: V̂* - V̂^π <= Σ m + gap."""
    world, watched = SafeArm(seed=seed), Watched(GainWeighted(seed=seed))
    sizes = {"states": world.space.states, "actions": world.space.actions, "horizon": world.space.horizon}
    agent = OMG(world.space, oracles.CountRewards(**sizes), oracles.CountDynamics(**sizes), watched)
    simulate(world, IID(world.contexts), agent, 20, seed=seed)
    assert len(watched.seen) >= 20
    for this, v, draws, decision in watched.seen:
        value, gap = policy_value(this.model, decision.policy), decision.certificate / decision.gamma
        assert promised(this.model, draws) - value <= bound_of(this, v, draws, decision) + 1e-9
        spent = decision.weights.sum() / decision.gamma
        assert optimal_policy(this.model)[1] - value <= spent + gap + 1e-12


def test_where_all_is_known_the_optimum_is_played():
    contexts, agent = build("adaptive", "known by step")
    decision = agent.decide(contexts[0])
    assert (decision.weights == 0.0).all()
    assert decision.certificate == decision.exploration == 0.0
    assert math.isfinite(decision.gamma)


# Arms: H = 1


@pytest.fixture
def closely(monkeypatch):
    """Let plans go on for long."""
    monkeypatch.setattr(base, "ENOUGH", 1e-9)
    monkeypatch.setattr(base, "ROUNDS", 2000)


def bandit(rewards, drawn, tolerance=1e-12):
    """Return the probabilities of arms with mean `rewards`, if these are the draws (K, A)."""
    model, drawn = single_step(rewards), np.asarray(drawn, dtype=float)

    class Fixed(Stranger):
        def draws(self, context, count, generator):
            return drawn[:, None, :]

    arms = len(rewards)
    dynamics = Outsider(np.ones((1, arms, 1)), np.zeros((1, arms)))
    this = model_alone(model, tolerance, rewards=Fixed(model.rewards, np.zeros((1, arms))), dynamics=dynamics)
    return GainWeighted(draws=len(drawn)).decide(this).occupancy[0, 0]


@pytest.mark.parametrize("ahead", [1, 2, 5, 40])
@pytest.mark.parametrize(("draws", "gap", "error"), [(1000, 0.2, 0.3), (5000, 0.3, 0.4), (400, 0.05, 0.06)])
def test_an_arm_is_played_by_its_chance_to_be_best(draws, gap, error, ahead, closely):
    """n of K draws put arm 1 ahead, by e above its mean: v = e²·n/K, Δ = ¼·√(v/q), q = v/(16Δ²). One draw counts."""
    paid = np.tile([0.5, 0.5 - gap], (draws, 1))
    paid[7 : 7 + ahead, 1] += error
    v = error**2 * ahead / draws
    assert bandit([0.5, 0.5 - gap], paid)[1] == pytest.approx(v / (16.0 * gap**2), rel=1e-3, abs=1e-9)


def test_arms_have_a_closed_form(rng, closely):
    """q_a = v_a/(16·(λ + Δ_a)²) with the λ that makes it a distribution, v_a of x_k = 1(a best)·(f_a - f̂_a).

    The share of all v alike is that of the sum of flows in the positive ones.
    """
    for _ in range(20):
        arms, draws = int(rng.integers(2, 7)), int(rng.integers(10, 40))
        paid = rng.random((draws, arms))
        mean = paid.mean(axis=0)
        best = paid.argmax(axis=1)
        errors = paid[np.arange(draws), best] - mean[best]
        total, squares, wins = (np.bincount(best, weights=errors**n, minlength=arms) for n in (1, 2, 0))
        spread = (squares - total**2 / np.maximum(wins, 1.0)) * wins / np.maximum(wins - 1.0, 1.0)
        v = np.where(total > 0.0, np.maximum(total**2 - spread, 0.0), 0.0) / (draws * np.maximum(wins, 1.0))
        v *= (total.sum() / total[total > 0.0].sum()) ** 2  # some arm is best above its mean, so the sum is positive
        q = bandit(mean, paid)
        held = v > 0.0
        slack = 0.25 * np.sqrt(v[held] / q[held]) + mean[held]  # λ + max f̂, the same for all arms
        np.testing.assert_allclose(slack, slack[0], rtol=1e-3)
        assert (q[~held] * (slack[0] - mean[~held]) < 1e-6).all()  # not played, unless it is the best and λ = 0


def test_an_arm_that_no_draw_wants_costs_nothing(rng):
    """However unsure: its draws are all below what another arm surely pays."""
    paid = np.column_stack([np.full(50, 0.9), rng.uniform(0.0, 0.8, size=50), rng.uniform(0.88, 0.95, size=50)])
    q = bandit(paid.mean(axis=0), paid)
    assert q[1] < 1e-9 < 1e-3 < q[2]


# Asking again


@each_oracle
def test_the_same_question_has_the_same_answer(oracle, rng):
    """Whatever was asked before: a decision is a function of seed, episode and context."""
    contexts, agent = learned(rng, oracle, episodes=7)
    first = {i: agent.decide(context) for i, context in enumerate(contexts)}
    for i in (2, 0, 1, 1):
        again = agent.decide(contexts[i])
        for name in ("policy", "weights", "occupancy", "values"):
            assert getattr(again, name).tobytes() == getattr(first[i], name).tobytes()
    fresh = taught(np.random.default_rng(5), build("adaptive", oracle)[1], contexts, 3)
    asked = build("adaptive", oracle)[1]
    for context in contexts * 2:
        asked.decide(context)
    taught(np.random.default_rng(5), asked, contexts, 3)
    assert fresh.policy(contexts[0]).tobytes() == asked.policy(contexts[0]).tobytes()


@pytest.mark.parametrize("oracle", ["counts", "linear and softmax"])
def test_what_is_kept_of_draws_is_no_state(oracle, tmp_path, rng):
    """Not asked in between, or about other contexts first, or without what was kept, or restored: the same bits."""
    contexts, agent = build("adaptive", oracle)
    _, forgetful = build("adaptive", oracle)
    for t in range(12):
        for context in rng.permutation(len(contexts))[: rng.integers(len(contexts))]:
            agent.decide(contexts[context])
        if t == 6:
            agent.save(tmp_path / "agent")
            _, agent = build("adaptive", oracle)
            agent.restore(tmp_path / "agent")
        forgetful.gamma.rule._caches.clear()
        context = contexts[t % len(contexts)]
        ours, theirs = agent.decide(context), forgetful.decide(context)
        assert ours.weights.tobytes() == theirs.weights.tobytes()
        episode = an_episode(rng, agent.space, context, ours.policy)
        agent.update(episode)
        forgetful.update(episode)


@pytest.mark.parametrize("oracle", ["finite", "counts", "linear and softmax"])
def test_seeds_and_episodes_draw_other_models(oracle):
    contexts, agent = build("adaptive", oracle)
    rules = [GainWeighted(seed=seed) for seed in (0, 1, 0)]
    of_seeds = [rule.gains(situation(agent, contexts[0])).tobytes() for rule in rules]
    assert of_seeds[0] == of_seeds[2] != of_seeds[1]
    of_episodes = [rules[0].gains(situation(agent, contexts[0], 1 + t * LIFE)).tobytes() for t in range(3)]
    assert of_episodes[0] == of_seeds[0]
    assert len(set(of_episodes)) == 3


def test_seeds_differ_less_with_more_draws(rng):
    """v is a smooth function of means over draws: its variance falls like 1/K."""
    contexts, agent = learned(rng, "counts", episodes=5)
    this = situation(agent, contexts[0])

    def spread(draws):
        return np.var([GainWeighted(draws=draws, seed=seed).gains(this) for seed in range(60)], axis=0).sum()

    assert 8.0 < spread(16) / spread(256) < 32.0


def test_another_seed_is_another_setting(tmp_path):
    one, other = (build("adaptive", seed=seed)[1] for seed in (1, 2))
    one.save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"`state` must come from .*seed=2.*got .*seed=1"):
        other.restore(tmp_path / "agent")


@pytest.mark.parametrize("oracle", ["counts", "linear and softmax"])
def test_a_restored_agent_draws_the_same_models(oracle, tmp_path, rng):
    contexts, agent = learned(rng, oracle, "restricted", episodes=9)
    agent.save(tmp_path / "agent")
    restored = build("bare", oracle, "restricted", kinds=BARE)[1]
    restored.restore(tmp_path / "agent")
    ours, theirs = (taught(np.random.default_rng(3), each, contexts, 4) for each in (agent, restored))
    for context in contexts:
        assert ours.decide(context).weights.tobytes() == theirs.decide(context).weights.tobytes()


# Oracles of others


class Single(Stranger):
    """Its tables are float32, and not in C order."""

    def draws(self, context, count, generator):
        return np.asfortranarray(super().draws(context, count, generator), dtype=np.float32)


def outsiders(rng, rewards_steps, kernel_steps, kind=Stranger):
    """Return oracles with four methods."""
    paid, moves = rng.random((*rewards_steps, S, A)), rng.dirichlet(np.ones(S), (*kernel_steps, S, A))
    return kind(paid, np.full((S, A), 0.04)), Outsider(moves, np.full((S, A), 0.02))


@pytest.mark.parametrize("rewards_steps", [(), (H,)], ids=["rewards", "rewards by step"])
@pytest.mark.parametrize("kernel_steps", [(), (H,)], ids=["kernels", "kernels by step"])
def test_an_oracle_of_four_methods_is_enough(rewards_steps, kernel_steps, rng):
    """Draws have a leading count, and steps where the prediction has them."""
    agent = OMG(SPACES["restricted"], *outsiders(rng, rewards_steps, kernel_steps), GainWeighted())
    this = situation(agent, "c", tolerance=1e-9)
    drawn = drawn_models(agent.gamma, this)
    v = agent.gamma.gains(this)
    assert v.max() > 0.0
    draws = seen_by(this.model, drawn)
    assert is_pooled(v) == (not rewards_steps and not kernel_steps)
    np.testing.assert_allclose(v, by_pairs(estimate, draws) if is_pooled(v) else estimate(draws), rtol=1e-9, atol=1e-13)
    decision = agent.gamma.decide(this)
    np.testing.assert_allclose(decision.occupancy, occupancy_measure(this.model, decision.policy), atol=1e-12)
    missing = promised(this.model, draws) - policy_value(this.model, decision.policy)
    assert missing <= bound_of(this, v, draws, decision) + 1e-12


def test_draws_of_any_memory_order_and_precision_work(rng):
    rewards, dynamics = outsiders(rng, (H,), (), kind=Single)
    odd = OMG(SPACES["plain"], rewards, dynamics)
    usual = OMG(SPACES["plain"], Stranger(rewards.transition_steps, rewards.claimed), dynamics)
    np.testing.assert_allclose(odd.policy("c"), usual.policy("c"), atol=1e-3)


def one_nan(tables):
    changed = tables.copy()
    changed.flat[-1] = math.nan
    return changed


NO_TABLES = [lambda t: t[1:], lambda t: t[0], lambda t: t[..., 1:], lambda t: t[None], lambda t: t - 0.5, one_nan]


@pytest.mark.parametrize("change", NO_TABLES)
@pytest.mark.parametrize("place", [0, 1])
def test_draws_that_are_no_tables_are_refused_by_name(rng, place, change):
    both = outsiders(rng, (H,), ())
    drawn = both[place].draws("c", 32, rng)
    both[place].draws = lambda context, count, generator: change(drawn)
    with pytest.raises(ValueError, match=r"`draws` .*must"):
        OMG(SPACES["plain"], *both).decide("c")


def test_certain_outsiders_are_believed(rng):
    """u = 0: the draws are the prediction, and nothing is paid."""
    rewards, dynamics = outsiders(rng, (), ())
    rewards.claimed[:], dynamics.claimed[:] = 0.0, 0.0
    assert OMG(SPACES["plain"], rewards, dynamics).decide("c").exploration <= 1e-12


# What an episode can earn


def test_a_narrower_range_of_returns_never_promises_more(rng):
    """Before any data every policy earns 6 in the mean model. With returns (0, R), Σ √(v·c) <= (R - 6)₊, c = E[q_k].

    So v shrinks with R, to nothing where R is what the mean model earns already.
    """
    size = {"states": 4, "actions": 2, "horizon": 12}
    agent = OMG(Space(**size), oracles.CountRewards(**size), oracles.CountDynamics(**size), GainWeighted())
    this = situation(agent, 0)
    drawn, sums = drawn_models(agent.gamma, this), []
    for most in (12.0, 9.0, 8.0, 7.0, 6.0, 2.0, 1.0):
        v = agent.gamma.gains(this._replace(bounds=value_bounds(12, (0.0, most))))
        visits = pooled(seen_by(this.model, drawn, 0.0, most)).occupancies.mean(axis=0)[0]
        assert np.sqrt(v * visits).sum() <= max(most - 6.0, 0.0) + 1e-12
        sums.append(v.sum())
    assert (np.diff(sums[:5]) < 0.0).all()
    assert sums[3] > 1e-3
    assert sums[4:] == pytest.approx([0.0, 0.0, 0.0], abs=1e-25)
