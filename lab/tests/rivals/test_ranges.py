"""`return_range`: what an episode can earn. Units, refusals, and what agents do with it."""

import copy

import numpy as np
import pytest

import omg_cmdp as omg
import omg_lab
from lab.tests.rivals.catalogue import (
    BANDITS,
    HORIZON,
    KERNELS,
    KINDS,
    LABELS,
    ONE_STEP,
    OWN_STATISTICS,
    REWARDS,
    SPACES,
    VECTORS,
    build,
)
from omg_cmdp import OMG, Space, Trajectory, oracles
from omg_cmdp.agents import Greedy, PosteriorSampling
from omg_cmdp.mdp.bellman import best_response, value_bounds
from omg_lab.rivals import GLMRLSVI

ALL = {kind: lambda kind=kind, **more: build(kind, **more)[1] for kind in KINDS}
ALL |= {kind: lambda make=make, **more: make(SPACES["plain"], **more) for kind, (_, make) in OWN_STATISTICS.items()}
CONTEXTS = dict.fromkeys(KINDS, LABELS) | {kind: contexts for kind, (contexts, _) in OWN_STATISTICS.items()}


def episode(context, rewards, seed=0):
    rng = np.random.default_rng(seed)
    states, actions = rng.integers(3, size=len(rewards) + 1), rng.integers(3, size=len(rewards))
    return Trajectory(context=context, states=states, actions=actions, rewards=rewards)


def bits(agent, contexts):
    arrays = {**agent.state(), **{str(i): agent.policy(context) for i, context in enumerate(contexts)}}
    return {name: (array.shape, array.tobytes()) for name, array in arrays.items()}


@pytest.mark.parametrize("kind", ALL)
def test_episodes_outside_are_refused_and_change_nothing(kind):
    agent = ALL[kind](return_range=(0.5, 1.0))
    context = CONTEXTS[kind][0]
    agent.update(episode(context, [0.5, 0.0, 0.5, 0.0]))
    before = bits(agent, CONTEXTS[kind])
    for rewards in ([1.0, 0.0, 0.0, 0.001], [0.0, 0.25, 0.0, 0.0]):
        with pytest.raises(
            ValueError, match=rf"`return_range` must hold .*got \[0.5, 1\] and .* earned {sum(rewards):g}"
        ):
            agent.update(episode(context, rewards))
        assert agent.episodes_seen == 1
        assert bits(agent, CONTEXTS[kind]) == before


@pytest.mark.parametrize("kind", ALL)
def test_a_range_that_says_no_more_than_that_of_rewards_changes_nothing(kind, rng):
    """To the bit, and a state saved by one is loaded by the other."""
    agents = [ALL[kind](return_range=given) for given in (None, (0.0, HORIZON), (-1.0, 2.0 * HORIZON))]
    for t in range(6):
        context = CONTEXTS[kind][t % 3]
        policies, rewards = [agent.policy(context) for agent in agents], rng.random(HORIZON).round()
        for agent, policy in zip(agents, policies, strict=True):
            np.testing.assert_array_equal(policy, policies[0])
            agent.update(episode(context, rewards, seed=t))
    agents[1].load_state(agents[0].state())


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind not in ("theory", "float", "callable")])
def test_the_range_of_returns_is_in_the_units_of_rewards(kind, rng):
    """Rewards -2 + 7r and returns -2H + 7R in the range (-2, 5) teach what r and R teach in (0, 1)."""
    contexts, returns = CONTEXTS[kind], (1.0, 2.5)
    plain = ALL[kind](return_range=returns)
    moved = ALL[kind](reward_range=(-2, 5), return_range=tuple(-2.0 * HORIZON + 7.0 * bound for bound in returns))
    assert moved.returns == pytest.approx(returns)
    for t in range(8):
        context = contexts[t % 3]
        np.testing.assert_allclose(moved.policy(context), plain.policy(context), atol=1e-6)
        rewards = rng.permutation([1.0, 0.0, 0.5, 0.0])
        plain.update(episode(context, rewards, seed=t))
        moved.update(episode(context, -2.0 + 7.0 * rewards, seed=t))


def counting(kind=Greedy, horizon=4, **more):
    size = {"states": 3, "actions": 3, "horizon": horizon}
    return kind(Space(**size), oracles.CountRewards(**size), oracles.CountDynamics(**size), **more)


@pytest.mark.parametrize(
    "given",
    [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0), (1.0,), 1.0, ("low", "high"), (4.5, 5.0), (-2.0, -0.1)],
)
def test_what_is_no_range_of_returns_is_refused(given):
    with pytest.raises(ValueError, match="`return_range` must"):
        counting(return_range=given)
    assert counting(return_range=(-2.0, 0.0)).returns == (0.0, 0.0)


def test_the_range_is_a_setting(tmp_path):
    counting(return_range=(0.0, 1.0)).save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"return_range \(0.0, 2.0\).*got .*return_range \(0.0, 1.0\)"):
        counting(return_range=(0.0, 2.0)).restore(tmp_path / "agent")
    counting(return_range=(-3.0, 1.0)).restore(tmp_path / "agent")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("horizon", [3, 10, 1000])
def test_sums_are_rounded(dtype, horizon):
    """H rewards of 1/H, or of 100 - 1/H, add up to the end of the range, and not exactly."""
    for low, reward in ((0.0, 1.0 / horizon), (99.0, 100.0 - 1.0 / horizon)):
        ends = (low * horizon, 1.0) if not low else (100.0 * horizon - 1.0, 100.0 * horizon)
        agent = counting(horizon=horizon, reward_range=(low, low + 1.0), return_range=ends)
        agent.update(episode(0, np.full(horizon, dtype(reward))))
        with pytest.raises(ValueError, match="`return_range` must"):
            agent.update(episode(0, np.clip(np.full(horizon, reward) + (0.01 if not low else -0.01), low, low + 1.0)))


class Lake(omg.ContextualMDP):
    """A walk of three steps to a reward of 1, which ends the episode in state 3; the right key opens each door."""

    space = Space(states=4, actions=2, horizon=10)
    contexts = (0, 1)

    def mdp(self, context):
        transitions, rewards = np.zeros((4, 2, 4)), np.zeros((4, 2))
        transitions[:, :, 3] = 1.0
        for state in range(3):
            key = (state + context) % 2
            transitions[state, key] = np.eye(4)[state + 1]
        rewards[2, context % 2] = 1.0
        return self.space.mdp(transitions=transitions, rewards=rewards)


@pytest.mark.parametrize("kind", ["adaptive", "posterior sampling", "UCBVI", "UC³RL", "GLM-ORL", "GLM-RLSVI"])
def test_agents_that_bound_values_use_the_range(kind):
    """At the start nothing is known, and an agent that clips plans another policy, or with other weights."""
    size = {"states": 4, "actions": 2, "horizon": 10}
    one_hot = {"dimension": 2, "features": lambda context: np.eye(2)[context]}
    made = {
        "adaptive": lambda pair, **more: OMG(Lake.space, *pair, **more),
        "posterior sampling": lambda pair, **more: PosteriorSampling(Lake.space, *pair, **more),
        "UCBVI": lambda _, **more: omg_lab.rivals.UCBVI(Lake.space, omg_lab.rivals.PerContext(), scale=0.05, **more),
        "UC³RL": lambda pair, **more: omg_lab.rivals.UC3RL(Lake.space, *pair, contexts=(0, 1), scale=0.03, **more),
        "GLM-ORL": lambda _, **more: omg_lab.rivals.GLMORL(Lake.space, **one_hot, scale=0.01, **more),
        "GLM-RLSVI": lambda _, **more: GLMRLSVI(Lake.space, **one_hot, scale=0.01, **more),
    }[kind]
    pairs = [(oracles.CountRewards(**size), oracles.CountDynamics(**size, contexts=(0, 1))) for _ in range(2)]
    told, free = made(pairs[0], return_range=(0.0, 1.0)), made(pairs[1])
    differ = 0
    world, rng = Lake(), np.random.default_rng(0)
    for t in range(12):
        policies = [agent.policy(t % 2) for agent in (told, free)]
        differ += not np.array_equal(*policies)
        played = world.sample(t % 2, policies[0], rng)
        for agent in (told, free):
            agent.update(played)
    assert differ


def test_posterior_sampling_plays_the_clipped_optimum_of_its_draw():
    changed = 0
    for seed in range(20):
        agent = counting(PosteriorSampling, seed=seed, return_range=(0.0, 1.0))
        generator = np.random.default_rng((seed, 0))
        (rewards,) = agent.reward_oracle.draws(0, 1, generator)
        (transitions,) = agent.dynamics_oracle.draws(0, 1, generator)
        drawn = agent.space.mdp(transitions=transitions, rewards=rewards)
        clipped, _ = best_response(drawn, drawn.raw[1], bounds=value_bounds(4, (0.0, 1.0)))
        np.testing.assert_array_equal(agent.policy(0), clipped)
        changed += not np.array_equal(clipped, omg.optimal_policy(drawn)[0])
    assert changed


def test_feel_good_sampling_values_and_plays_pairs_by_their_clipped_optima():
    agent = build("feel-good Thompson", return_range=(0.0, 1.0))[1]
    bounds, context, changed = value_bounds(HORIZON, (0.0, 1.0)), LABELS[0], 0
    agent.update(episode(context, [0.0, 1.0, 0.0, 0.0]))
    pairs = [[agent.space.mdp(rewards=f, transitions=p) for p in KERNELS[context]] for f in REWARDS[context]]
    values = [[omg.optimal_policy(mdp, bounds=bounds)[1] for mdp in row] for row in pairs]
    np.testing.assert_allclose(agent.state()["value_sums"], values, rtol=1e-12)
    clipped = [omg.optimal_policy(mdp, bounds=bounds)[0] for row in pairs for mdp in row]
    plain = [omg.optimal_policy(mdp)[0] for row in pairs for mdp in row]
    for seed in range(20):
        agent.seed = seed
        played = agent.policy(context)
        assert any(np.array_equal(played, policy) for policy in clipped)
        changed += not any(np.array_equal(played, policy) for policy in plain)
    assert changed


@pytest.mark.parametrize("returns", [(0.0, 1.0), (1.5, 2.5), (1.0, 4.0)])
def test_bonuses_are_as_wide_as_values(returns):
    """What multiplies the error of the transitions is the range of values: H, if nothing is told."""
    span = value_bounds(HORIZON, returns).span
    assert span < HORIZON
    told, free = (ALL["UC³RL"](return_range=given) for given in (returns, None))
    share = min(2.0, told.scales[1] / 2.0)  # of the transitions, at W = 1
    np.testing.assert_allclose(free.bonus(LABELS[0]) - told.bonus(LABELS[0]), (HORIZON - span) * share)
    told, free = (ALL["UCBVI, per context"](return_range=given) for given in (returns, None))
    np.testing.assert_allclose(told.bonus(np.ones((3, 3))) * HORIZON, free.bonus(np.ones((3, 3))) * span)


@pytest.mark.parametrize("returns", [(0.0, 1.0), (1.0, 2.0), (0.5, 4.0)])
def test_noise_is_as_wide_as_values_and_clipped_where_the_range_says_more_than_rewards(returns):
    """Values bounded by rewards in [0, 1] alone are not clipped, as in the paper."""
    span = value_bounds(HORIZON, returns).span
    for seed in range(10):
        agent = ALL["GLM-RLSVI"](return_range=returns, scale=0.02, seed=seed)
        for t in range(30):
            agent.update(episode(VECTORS[t % 3], np.eye(HORIZON)[t % HORIZON], seed=t))
        model, (rewards, transitions) = agent.model(VECTORS[0]), agent.widths(VECTORS[0])
        noise = np.random.default_rng((seed, 30)).standard_normal((HORIZON, 3, 3))
        noise *= 0.02 * np.sqrt(3 * HORIZON) * (span * transitions + rewards)
        values, policy = np.zeros(3), agent.policy(VECTORS[0])
        for h in reversed(range(HORIZON)):
            gains = model.rewards + noise[h] + model.transitions @ values
            np.testing.assert_array_equal(policy[h].argmax(axis=1), gains.argmax(axis=1))
            low, high = max(returns[0] - h, 0.0), min(HORIZON - h, returns[1])
            values = np.clip(gains.max(axis=1), low if low else -np.inf, high if high < HORIZON - h else np.inf)


def test_optimism_survives_clipping(rng):
    """Where every episode earns at most 1, UCBVI's clipped values are still at least the true ones, and smaller."""
    world = Lake()
    free, told = (
        omg_lab.rivals.UCBVI(world.space, omg_lab.rivals.PerContext(), **r) for r in ({}, {"return_range": (0.0, 1.0)})
    )
    for t in range(200):
        context = t % 2
        values = []
        for agent in (free, told):
            model, visits = agent.model(context), agent.tally(context).counts.sum(axis=2)
            optimistic = (model.rewards + agent.bonus(visits))[None]
            values.append(world.space.start @ best_response(model, optimistic, bounds=agent.value_bounds)[1][0])
        assert world.optimal_value(context) - 1e-12 <= values[1] <= min(1.0, values[0])
        played = world.sample(context, told.policy(context), rng)
        for agent in (free, told):
            agent.update(played)


def test_plays_and_warm_starts_refuse_too(rng):
    """The error names the range, and the agent is as it was before."""
    size = {"states": 3, "actions": 3, "horizon": 4}
    world = omg_lab.worlds.LinearWorld(states=3, actions=3, horizon=4)
    agent = Greedy(world.space, oracles.CountRewards(**size), oracles.CountDynamics(**size), return_range=(0.0, 0.5))
    fresh = copy.deepcopy(agent).state()
    log = omg.Log(Space(**size), [omg.Episode(**vars(episode(0, rewards))) for rewards in ([0.0] * 4, [1.0] * 4)])
    with pytest.raises(ValueError, match="episode 1: `return_range` must hold"):
        omg.logs.warm_start(agent, log)
    assert {name: array.tobytes() for name, array in agent.state().items()} == {
        name: array.tobytes() for name, array in fresh.items()
    }
    with pytest.raises(ValueError, match="`return_range` must hold"):
        omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=50)
    assert agent.episodes_seen < 50


def test_bandits_take_it_too():
    for rewards, make in BANDITS.values():
        pair = rewards({label: np.zeros((2, 3, 3)) for label in LABELS}, horizon=1), oracles.CountDynamics(**ONE_STEP)
        agent = make(Space(**ONE_STEP), *pair, return_range=(0.0, 0.5))
        with pytest.raises(ValueError, match="`return_range` must hold"):
            agent.update(episode("a", [1.0]))
