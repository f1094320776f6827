"""`return_range`: what an episode can earn. Units, refusals, and what agents do with it."""

import copy

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.agents.catalogue import HORIZON, KINDS, LABELS, OWN_STATISTICS, SPACES, build
from library.tests.worlds import SafeArm
from omg_cmdp import OMG, Space, Trajectory, oracles
from omg_cmdp.agents import Greedy, PosteriorSampling
from omg_cmdp.mdp.bellman import best_response, value_bounds

MAKERS = {kind: (LABELS, lambda kind=kind, **more: build(kind, **more)[1]) for kind in KINDS}
MAKERS |= {
    kind: (contexts, lambda make=make, **more: make(SPACES["plain"], **more))
    for kind, (contexts, make) in OWN_STATISTICS.items()
}


def episode(context, rewards, seed=0):
    rng = np.random.default_rng(seed)
    states, actions = rng.integers(3, size=len(rewards) + 1), rng.integers(3, size=len(rewards))
    states[0] = 0  # where the space starts
    return Trajectory(context=context, states=states, actions=actions, rewards=rewards)


def bits(agent, contexts):
    arrays = {**agent.state(), **{str(i): agent.policy(context) for i, context in enumerate(contexts)}}
    return {name: (array.shape, array.tobytes()) for name, array in arrays.items()}


def refuses_other_returns(contexts, make):
    agent = make(return_range=(0.5, 1.0))
    agent.update(episode(contexts[0], [0.5, 0.0, 0.5, 0.0]))
    before = bits(agent, contexts)
    for rewards in ([1.0, 0.0, 0.0, 0.001], [0.0, 0.25, 0.0, 0.0]):
        with pytest.raises(
            ValueError, match=rf"`return_range` must hold .*got \[0.5, 1\] and .* earned {sum(rewards):g}"
        ):
            agent.update(episode(contexts[0], rewards))
        assert agent.episodes_seen == 1
        assert bits(agent, contexts) == before


def ignores_a_wide_range(contexts, make, rng):
    """To the bit, and a state saved by one is loaded by the other."""
    agents = [make(return_range=given) for given in (None, (0.0, HORIZON), (-1.0, 2.0 * HORIZON))]
    for t in range(6):
        context = contexts[t % 3]
        policies, rewards = [agent.policy(context) for agent in agents], rng.random(HORIZON).round()
        for agent, policy in zip(agents, policies, strict=True):
            np.testing.assert_array_equal(policy, policies[0])
            agent.update(episode(context, rewards, seed=t))
    agents[1].load_state(agents[0].state())


def depends_on_units_only(contexts, make, rng):
    """Rewards -2 + 7r and returns -2H + 7R in the range (-2, 5) teach what r and R teach in (0, 1)."""
    returns = (1.0, 2.5)
    plain = make(return_range=returns)
    moved = make(reward_range=(-2, 5), return_range=tuple(-2.0 * HORIZON + 7.0 * bound for bound in returns))
    assert moved.returns == pytest.approx(returns)
    for t in range(8):
        context = contexts[t % 3]
        np.testing.assert_allclose(moved.policy(context), plain.policy(context), atol=1e-6)
        rewards = rng.permutation([1.0, 0.0, 0.5, 0.0])
        plain.update(episode(context, rewards, seed=t))
        moved.update(episode(context, -2.0 + 7.0 * rewards, seed=t))


@pytest.mark.parametrize("kind", MAKERS)
def test_episodes_outside_are_refused_and_change_nothing(kind):
    refuses_other_returns(*MAKERS[kind])


@pytest.mark.parametrize("kind", MAKERS)
def test_a_range_that_says_no_more_than_that_of_rewards_changes_nothing(kind, rng):
    ignores_a_wide_range(*MAKERS[kind], rng)


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind not in ("theory", "float", "callable")])
def test_the_range_of_returns_is_in_the_units_of_rewards(kind, rng):
    depends_on_units_only(*MAKERS[kind], rng)


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


def plans_otherwise_if_told(make):
    """At the start nothing is known, and an agent that clips plans another policy, or with other weights."""
    size = {"states": 4, "actions": 2, "horizon": 10}
    pairs = [(oracles.CountRewards(**size), oracles.CountDynamics(**size, contexts=(0, 1))) for _ in range(2)]
    told, free = make(pairs[0], return_range=(0.0, 1.0)), make(pairs[1])
    differ = 0
    world, rng = Lake(), np.random.default_rng(0)
    for t in range(12):
        policies = [agent.policy(t % 2) for agent in (told, free)]
        differ += not np.array_equal(*policies)
        played = world.sample(t % 2, policies[0], rng)
        for agent in (told, free):
            agent.update(played)
    assert differ


@pytest.mark.parametrize("kind", [OMG, PosteriorSampling])
def test_agents_that_bound_values_use_the_range(kind):
    plans_otherwise_if_told(lambda pair, **more: kind(Lake.space, *pair, **more))


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


def test_plays_and_warm_starts_refuse_too(rng):
    """The error names the range, and the agent is as it was before."""
    size = {"states": 3, "actions": 3, "horizon": 4}
    world = SafeArm()
    agent = Greedy(world.space, oracles.CountRewards(**size), oracles.CountDynamics(**size), return_range=(0.0, 0.5))
    fresh = copy.deepcopy(agent).state()
    parts = {"context": 0, "states": [0] * 5, "actions": [0] * 4}
    log = omg.Log(Space(**size), [omg.Episode(**parts, rewards=[reward] * 4) for reward in (0.0, 1.0)])
    with pytest.raises(ValueError, match="episode 1: `return_range` must hold"):
        omg.logs.warm_start(agent, log)
    assert {name: array.tobytes() for name, array in agent.state().items()} == {
        name: array.tobytes() for name, array in fresh.items()
    }
    with pytest.raises(ValueError, match="`return_range` must hold"):
        omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=50)
    assert agent.episodes_seen < 50
