"""The ledger against brute force: every number of it is computed once more, from the definitions."""

import numpy as np
import pandas as pd
import pytest

import omg_cmdp as omg
from library.tests.random_mdps import by_step, random_mdp
from library.tests.runs.worlds import AGENTS, HORIZON, LABELS, SIZE, Own, counts, finite, make_run
from omg_cmdp import adversaries, oracles
from omg_cmdp.agents import Agent, Decision, Greedy, Mixture
from omg_cmdp.runs.ledger import COLUMNS

SECONDS = [name for name in COLUMNS if name.startswith("seconds")]
EPISODES = 25


def played(kind, seed=0, episodes=EPISODES):
    """Return run and rounds."""
    rounds = []
    run = make_run(kind, seed, observe=rounds.append)
    run.advance(episodes)
    return run, rounds


@pytest.fixture(scope="module", params=list(AGENTS))
def case(request):
    return played(request.param)


def test_the_table(case):
    run, _ = case
    table = run.ledger.table()
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == list(COLUMNS)
    wanted = {"regret", "return", "gamma", "certificate", "optimum_error", "plan_gap", "policy_error"}
    assert wanted | {"reward_error", "dynamics_error", "reward_loss", "dynamics_loss"} <= set(table.columns)
    assert list(table.index) == list(range(1, EPISODES + 1))
    assert len(run.ledger) == len(run.ledger.contexts) == EPISODES
    for name in COLUMNS:
        np.testing.assert_array_equal(run.ledger.column(name), table[name])
    assert run.ledger.regret.shape == (EPISODES,)


def test_regret_is_the_value_lost_by_the_policy_played(case):
    run, rounds = case
    for row, this in zip(run.ledger.table().itertuples(), rounds, strict=True):
        mdp = run.environment.mdp(this.context)
        best, mine = omg.optimal_policy(mdp)[1], omg.policy_value(mdp, this.decision.policy)
        assert row.optimal_value == pytest.approx(best, abs=1e-12)
        assert row.value == pytest.approx(mine, abs=1e-12)
        assert row.regret == pytest.approx(best - mine, abs=1e-12)
        assert row.regret >= -1e-12
        np.testing.assert_allclose(this.occupancy, omg.occupancy_measure(mdp, this.decision.policy), atol=1e-15)


def test_three_terms_sum_to_the_regret_and_are_what_they_say(case):
    run, rounds = case
    for row, this in zip(run.ledger.table().itertuples(), rounds, strict=True):
        truth, model = run.environment.mdp(this.context), this.decision.model
        optimal, policy = omg.optimal_policy(truth)[0], this.decision.policy
        believed = omg.policy_value(model, optimal), omg.policy_value(model, policy)
        assert row.optimum_error == pytest.approx(omg.policy_value(truth, optimal) - believed[0], abs=1e-12)
        assert row.plan_gap == pytest.approx(believed[0] - believed[1], abs=1e-12)
        assert row.policy_error == pytest.approx(believed[1] - omg.policy_value(truth, policy), abs=1e-12)
        assert row.optimum_error + row.plan_gap + row.policy_error == pytest.approx(row.regret, abs=1e-12)


def test_regret_is_what_is_not_known_yet_and_the_price_of_exploring(case):
    run, rounds = case
    for row, this in zip(run.ledger.table().itertuples(), rounds, strict=True):
        truth, model, policy = run.environment.mdp(this.context), this.decision.model, this.decision.policy
        own, top = omg.optimal_policy(model)
        assert row.exploration == pytest.approx(top - omg.policy_value(model, policy), abs=1e-12)
        assert row.exploration == pytest.approx(this.decision.exploration, abs=1e-12)
        assert row.best_policy_regret == pytest.approx(row.optimal_value - omg.policy_value(truth, own), abs=1e-12)
        price = omg.policy_value(truth, own) - omg.policy_value(truth, policy)
        assert row.best_policy_regret + price == pytest.approx(row.regret, abs=1e-12)
        assert row.best_policy_regret >= -1e-12
        assert row.exploration >= max(-1e-12, row.plan_gap - 1e-12)  # π* is one of the policies of the model


def test_a_greedy_agent_does_not_explore_and_a_barrier_explores_no_more_than_its_theorem():
    greedy = played("greedy, linear")[0].ledger
    assert not greedy.column("exploration").any()
    np.testing.assert_allclose(greedy.column("best_policy_regret"), greedy.regret, atol=1e-12)
    assert "and 0 for exploring. In the last 3 the agent played 0 an" in str(greedy)
    fixed = played("fixed, counts")[0].ledger
    limit = (fixed.column("tuples") - HORIZON + fixed.column("certificate")) / 30.0  # V̂* - V̂^π <= (n - H)/γ
    assert fixed.column("exploration").max() > 0.05
    assert (fixed.column("exploration") <= limit).all()


def test_best_policy_is_what_the_ledger_judges():
    run = make_run("adaptive, linear")
    for _ in range(10):
        asked = []
        run._observe = asked.append
        before = {str(c): run.agent.best_policy(c) for c in AGENTS["adaptive, linear"][0]}
        run.advance(1)
        (this,) = asked
        assert this.best_policy_regret == pytest.approx(this.truth.regret(before[str(this.context)]), abs=1e-12)


def test_a_ledger_says_in_words_what_was_lost_and_for_what():
    ledger = played("fixed, counts")[0].ledger
    lost, unknown = ledger.regret.sum(), ledger.column("best_policy_regret").sum()
    below = ledger.column("exploration")[-3:].mean()  # a tenth of 25 episodes, rounded up
    assert str(ledger).startswith(f"25 episodes lost {lost:.3g}: {unknown:.3g} for what is not known yet")
    assert f"{lost - unknown:.3g} for exploring. In the last 3 the agent played {below:.2g} an episode" in str(ledger)
    assert str(omg.runs.Ledger()) == "no episodes"


def test_errors_by_brute_force(case):
    run, rounds = case
    for row, this in zip(run.ledger.table().itertuples(), rounds, strict=True):
        truth, model = run.environment.mdp(this.context), this.decision.model
        (kernel, rewards), (guess, means) = by_step(truth), by_step(model)
        squares = divergences = 0.0
        for (h, s, a), q in np.ndenumerate(omg.occupancy_measure(truth, this.decision.policy)):
            squares += q * (rewards[h, s, a] - means[h, s, a]) ** 2
            divergences += q * sum((np.sqrt(kernel[h, s, a]) - np.sqrt(guess[h, s, a])) ** 2)
        assert row.reward_error == pytest.approx(squares, abs=1e-12)
        assert row.dynamics_error == pytest.approx(divergences, abs=1e-12)


def test_losses_are_those_of_the_predictions_and_add_up(case):
    run, rounds = case
    ledger, agent = run.ledger, run.agent
    assert ledger.column("reward_loss").sum() == pytest.approx(agent.reward_oracle.loss)
    assert ledger.column("dynamics_loss").sum() == pytest.approx(agent.dynamics_oracle.loss)
    for t, this in enumerate(rounds):
        kernel, rewards = by_step(this.decision.model)
        path, steps = this.played, np.arange(HORIZON)
        pairs = steps, path.states[:-1], path.actions
        assert ledger.column("reward_loss")[t] == pytest.approx(((rewards[pairs] - path.rewards) ** 2).sum())
        assert ledger.column("dynamics_loss")[t] == pytest.approx(-np.log(kernel[*pairs, path.next_states]).sum())


def test_propensities_are_the_policys_probabilities(case):
    for this in case[1]:
        chances = this.decision.policy[np.arange(HORIZON), this.played.states[:-1], this.played.actions]
        np.testing.assert_array_equal(this.played.propensities, chances)
        assert (chances > 0.0).all()


def test_rounds_are_in_order_and_complete(case):
    run, rounds = case
    assert [this.episode for this in rounds] == list(range(1, EPISODES + 1))
    assert [str(this.context) for this in rounds] == [str(context) for context in run.ledger.contexts]
    returns = [this.played.rewards.sum() for this in rounds]
    np.testing.assert_array_equal(run.ledger.column("return"), returns)
    for this in rounds:
        this.played.check(run.environment.space)
        if this.decision.occupancy is not None:
            assert run.ledger.column("tuples")[this.episode - 1] == np.count_nonzero(this.decision.occupancy)
    for name in ("gamma", "certificate", "iterations"):
        np.testing.assert_array_equal(run.ledger.column(name), [getattr(this.decision, name) for this in rounds])
    assert (run.ledger.table()[SECONDS] > 0.0).all(axis=None)


@pytest.mark.parametrize("kind", AGENTS)
def test_the_seed_determines_everything(kind):
    runs = [played(kind, seed) for seed in (3, 3, 4)]
    first, second, other = (run.ledger for run, _ in runs)
    pd.testing.assert_frame_equal(first.table().drop(columns=SECONDS), second.table().drop(columns=SECONDS))
    propensities = [[this.played.propensities for this in rounds] for _, rounds in runs]
    np.testing.assert_array_equal(propensities[0], propensities[1])
    assert [str(c) for c in first.contexts] == [str(c) for c in second.contexts]
    assert [str(c) for c in first.contexts] != [str(c) for c in other.contexts]
    assert not np.array_equal(first.column("return"), other.column("return"))


def test_simulate_is_a_run():
    world = Own()
    agent = omg.OMG(world.space, *finite(world))
    ledger = omg.simulate(world, adversaries.IID(LABELS), agent, episodes=EPISODES, seed=3)
    run = played("adaptive, finite", 3)[0]
    pd.testing.assert_frame_equal(ledger.table().drop(columns=SECONDS), run.ledger.table().drop(columns=SECONDS))


def test_a_sequence_comes_in_order():
    world = Own()
    order = [LABELS[i] for i in (2, 0, 0, 1)]
    ledger = omg.simulate(world, adversaries.Sequence(order), Greedy(world.space, *counts(world)), episodes=10)
    assert ledger.contexts == [*order, *order, *order[:2]]


def test_the_truth_makes_no_error_and_no_more_regret_than_the_barrier():
    world = Own(admissible=[[True, False], [True, True], [True, True]])
    rewards = oracles.KnownRewards(lambda c: world.mdp(c).rewards, horizon=HORIZON)
    dynamics = oracles.KnownDynamics(
        lambda c: np.where(world.space.admissible[:, :, None], world.mdp(c).transitions, 1 / 3), horizon=HORIZON
    )
    agent = omg.OMG(world.space, rewards, dynamics, 100.0)
    table = omg.simulate(world, adversaries.IID(LABELS), agent, episodes=30).table()
    assert table.reward_error.max() == table.dynamics_error.max() == 0.0
    assert table[["optimum_error", "policy_error"]].abs().to_numpy().max() <= 1e-12
    assert (table.regret <= table.tuples / 100.0).all()


def test_an_agent_for_other_units_is_refused():
    """Every world's rewards lie in [0, 1]; a model in other units could not be compared with the truth."""
    world = Own()
    agent = Greedy(world.space, *counts(world), reward_range=(-2, 5))
    with pytest.raises(ValueError, match="`agent` must have reward_range"):
        omg.simulate(world, adversaries.IID(LABELS), agent, episodes=5)


def test_a_start_that_does_not_match_is_refused():
    world = Own()
    agent = Greedy(omg.Space(**SIZE, start=2), *counts(world))
    with pytest.raises(ValueError, match="`agent` must"):
        omg.simulate(world, adversaries.IID(LABELS), agent, episodes=1)


class Curious(adversaries.Adversary):
    """Looks at the policy of every label before it chooses the last one."""

    def context(self, episode, view, generator):
        self.seen = [view.policy(label) for label in LABELS]
        return LABELS[-1]


def test_a_decision_that_the_adversary_saw_is_the_one_played():
    world, rounds = Own(), []
    agent, adversary = omg.OMG(world.space, *finite(world)), Curious()
    run = omg.Run(world, adversary, agent, observe=rounds.append)
    decided, agent.decide = [], lambda context: decided.append(omg.OMG.decide(agent, context)) or decided[-1]
    run.advance(3)
    assert len(decided) == 3 * len(LABELS)
    assert [this.decision for this in rounds] == decided[len(LABELS) - 1 :: len(LABELS)]
    np.testing.assert_array_equal(adversary.seen[-1], rounds[-1].decision.policy)


class Uniform(Agent):
    """A third party's agent: `policy` and `update`, and no model."""

    def __init__(self, space):
        self.space = space

    def policy(self, context):
        return np.full((HORIZON, SIZE["states"], SIZE["actions"]), 0.5)

    def update(self, trajectory):
        trajectory.check(self.space)


def test_an_agent_without_a_model(tmp_path):
    world = Own()
    run = omg.Run(world, adversaries.IID(LABELS), Uniform(world.space))
    run.advance(5)
    table = run.ledger.table()
    assert (table.regret > 0.0).all()
    unknown = ["gamma", "certificate", "plan_gap", "reward_error", "dynamics_error", "reward_loss", "dynamics_loss"]
    assert table[unknown].isna().all(axis=None)
    assert run.model("a") is None
    with pytest.raises(NotImplementedError, match="Uniform cannot be saved"):
        run.save(tmp_path / "run")


class Mixed(Uniform):
    """Draws one of three policies for each episode."""

    def __init__(self, space):
        super().__init__(space)
        rng = np.random.default_rng(5)
        policies = rng.dirichlet(np.ones(SIZE["actions"]), (3, HORIZON, SIZE["states"]))
        self.mixture = Mixture(policies, np.array([0.5, 0.2, 0.3]))

    def decide(self, context):
        return Decision(policy=self.policy(context), mixture=self.mixture)


def test_regret_of_a_mixture_is_that_of_the_mixture():
    world = Own()
    run = omg.Run(world, adversaries.IID(LABELS), Mixed(world.space))
    run.advance(3)
    mixture = run.agent.mixture
    for context, value in zip(run.ledger.contexts, run.ledger.column("value"), strict=True):
        truth = world.truth(context).mdp
        values = [omg.policy_value(truth, policy) for policy in mixture.policies]
        assert value == pytest.approx(mixture.probabilities @ values, abs=1e-12)
        best = Decision(policy=mixture.policies[0], mixture=mixture, model=truth).exploration
        assert best == pytest.approx(world.optimal_value(context) - value, abs=1e-12)
        # What an adversary sees is not the draw, but as good as the mixture.
        assert omg.policy_value(truth, run.policy(context)) == pytest.approx(value, abs=1e-12)


def test_a_mixture_is_drawn_with_its_probabilities():
    mixture, generator = Mixed(Own().space).mixture, np.random.default_rng(0)
    drawn = [mixture.draw(generator) for _ in range(4000)]
    shares = [np.mean([np.array_equal(policy, one) for one in drawn]) for policy in mixture.policies]
    np.testing.assert_allclose(shares, mixture.probabilities, atol=0.03)


@pytest.mark.parametrize("part", ["mixture", "model"])
def test_decisions_about_another_size_are_refused(part):
    world, mdp = Own(), random_mdp(np.random.default_rng(0), 4, 2, HORIZON)
    odd = {"mixture": Mixture(np.full((2, HORIZON, 4, 2), 0.5), np.array([0.5, 0.5])), "model": mdp}[part]

    class Odd(Uniform):
        def decide(self, context):
            return Decision(policy=self.policy(context), **{part: odd})

    with pytest.raises(ValueError, match="`decide` must return policies and transitions of shapes"):
        omg.simulate(world, adversaries.IID(LABELS), Odd(world.space), episodes=1)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"states": 4}, "4, 2 and 3"), ({"actions": 5}, "3, 5 and 3"), ({"horizon": 2}, "3, 2 and 2")],
)
def test_sizes_that_do_not_match_are_refused_by_name(change, named):
    sizes = {**SIZE, **change}
    agent = Greedy(omg.Space(**sizes), oracles.CountRewards(**sizes), oracles.CountDynamics(**sizes))
    with pytest.raises(ValueError, match=f"`agent` must be made for the environment's 3 states.*got {named}"):
        omg.simulate(Own(), adversaries.IID(LABELS), agent, episodes=1)


@pytest.mark.parametrize("episodes", [0, -1, 2.5, None, True])
def test_episodes_must_be_a_positive_integer(episodes):
    world = Own()
    with pytest.raises(ValueError, match="`episodes` must be an integer"):
        omg.simulate(world, adversaries.IID(LABELS), Uniform(world.space), episodes=episodes)


def test_columns_are_asked_for_by_name():
    with pytest.raises(ValueError, match="`name` must be one of regret, value"):
        omg.Ledger().column("regrets")
    assert omg.Ledger().table().shape == (0, len(COLUMNS))
