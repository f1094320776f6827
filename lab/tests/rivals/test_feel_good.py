"""Feel-good Thompson sampling: the tilted posterior, written out; without the tilt it is posterior sampling."""

import math

import numpy as np
import pytest

from library.tests.agents.catalogue import FUNCTIONS, HORIZON, LABELS, ORACLES, REWARDS, SPACES, TRANSITIONS
from library.tests.agents.models import an_episode
from omg_cmdp import Space, Trajectory, optimal_policy, oracles, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import PosteriorSampling
from omg_cmdp.mdp.bellman import value_bounds
from omg_lab.rivals import FeelGoodThompson
from omg_lab.rivals.hypotheses import Hypotheses
from omg_lab.worlds import Decoy, SoftmaxWorld


def agent_on(space="plain", **more):
    return FeelGoodThompson(SPACES[space], *ORACLES["finite"][1](), **more)


def optimal_values(space, rewards, transitions):
    """Return the optimal values of all pairs, (N, M)."""
    pairs = Hypotheses(space, rewards, transitions, value_bounds(space.horizon))
    return pairs.starts.reshape(len(rewards), len(transitions))


def trained(agent, rng, episodes=12):
    for t in range(episodes):
        context = LABELS[t % len(LABELS)]
        agent.update(an_episode(rng, agent.space, context, agent.policy(context)))
    return agent


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("steps", ["", "rewards", "kernels", "rewards and kernels"])
def test_the_values_of_all_pairs_are_those_of_backward_induction(space, steps, rng):
    rewards = rng.random((4, HORIZON, 3, 3) if "rewards" in steps else (4, 3, 3))
    kernels = rng.dirichlet(np.ones(3), (5, HORIZON, 3, 3) if "kernels" in steps else (5, 3, 3))
    pairs = [[optimal_policy(SPACES[space].mdp(rewards=f, transitions=p))[1] for p in kernels] for f in rewards]
    np.testing.assert_allclose(optimal_values(SPACES[space], rewards, kernels), pairs, rtol=1e-12)


@pytest.mark.parametrize("space", SPACES)
def test_the_weights_are_the_formula(space, rng):
    """log w = -2·Σ(f - r)² + Σ log P(s') + (λ/√t)·Σ V*, up to a constant, from the data alone."""
    agent = agent_on(space, optimism=0.7)
    logs = np.zeros((FUNCTIONS, FUNCTIONS))
    for t in range(12):
        context = LABELS[t % len(LABELS)]
        episode = an_episode(rng, agent.space, context, agent.policy(context))
        agent.update(episode)
        for h, (s, a) in enumerate(zip(episode.states[:-1], episode.actions, strict=True)):
            logs -= 2.0 * (REWARDS[context][:, None, s, a] - episode.rewards[h]) ** 2
            # The catalogue's kernels are smoothed, 1 % of uniform.
            logs += np.log(0.99 * TRANSITIONS[context][None, :, s, a, episode.states[h + 1]] + 0.01 / 3.0)
    tables = [(REWARDS[LABELS[t % 3]], TRANSITIONS[LABELS[t % 3]]) for t in range(12)]
    sums = sum(optimal_values(agent.space, *pair) for pair in tables)
    weights = np.exp(logs + 0.7 / math.sqrt(13) * sums)
    np.testing.assert_allclose(agent.weights("a"), weights / weights.sum(), rtol=1e-9)


def test_without_optimism_it_is_posterior_sampling_draw_by_draw(seed):
    world = SoftmaxWorld(seed=seed)
    regrets = []
    for kind, more in ((PosteriorSampling, {}), (FeelGoodThompson, {"optimism": 0})):
        rewards = oracles.FiniteRewards(world.reward_functions, horizon=world.space.horizon)
        dynamics = oracles.FiniteDynamics(world.transition_functions, horizon=world.space.horizon)
        agent = kind(world.space, rewards, dynamics, seed=seed, **more)
        regrets.append(simulate(world, IID(world.contexts), agent, 100, seed=seed).regret)
    np.testing.assert_array_equal(*regrets)


def test_pairs_are_drawn_as_often_as_their_weight(monkeypatch):
    """Two reward functions, two kernels, and sums of values that favour (0, 1) and (1, 0): no product of weights."""
    agent, drawn = agent_on(optimism=1.0), np.zeros((FUNCTIONS, FUNCTIONS))
    agent._value_sums = 3.0 * np.fliplr(np.eye(FUNCTIONS))
    weights = agent.weights("a")
    assert weights[0, -1] == pytest.approx(weights[0, 0] * math.exp(3.0))

    def look(mdp, bounds):
        (reward,), (kernel,) = (
            np.flatnonzero([np.array_equal(table, mine) for table in tables])
            for tables, mine in ((REWARDS["a"], mdp.rewards), (TRANSITIONS["a"], mdp.transitions))
        )
        drawn[reward, kernel] += 1
        return optimal_policy(mdp, bounds=bounds)

    monkeypatch.setattr("omg_lab.rivals.feel_good.optimal_policy", look)
    for seed in range(2000):
        agent.seed = seed
        agent.decide("a")
    deviations = np.sqrt(weights * (1.0 - weights) / 2000)
    np.testing.assert_array_less(np.abs(drawn / 2000 - weights), 5.0 * deviations)


@pytest.mark.parametrize("space", SPACES)
def test_more_optimism_draws_larger_values(space, rng):
    """The mean of Σ V* under w ∝ w₀·exp(λ·Σ V*) grows with λ: its derivative is a variance."""
    means = []
    for optimism in (0.0, 0.1, 1.0, 1000.0):
        agent = agent_on(space, optimism=optimism)
        for t in range(12):  # the same episodes for all
            policy = np.where(agent.space.admissible, 1.0, 0.0) * np.ones((HORIZON, 1, 1))
            context = LABELS[t % len(LABELS)]
            agent.update(an_episode(np.random.default_rng(t), agent.space, context, policy))
        means.append(float((agent.weights("a") * agent.state()["value_sums"]).sum()))
    assert all(np.diff(means) > 0.0)
    assert means[-1] > 0.99 * agent.state()["value_sums"].max()


def test_the_tilt_couples_rewards_and_dynamics(rng):
    """Optimal values depend on rewards and kernel together: with a tilt, the weights are no product."""
    ranks = [np.linalg.matrix_rank(trained(agent_on(optimism=x), rng).weights("a"), tol=1e-6) for x in (0.0, 5.0)]
    assert ranks[0] == 1 < ranks[1]


def test_a_pessimist_by_prior_is_persuaded():
    """One function says that the unknown arm is bad, the other that it is good; both agree on the arm that is played.

    Posterior sampling tries it in every second episode, until it has tried it. With optimism the good
    function gains weight in every episode in which the arm was not.
    """
    space = Space(states=1, actions=2, horizon=1)
    rewards = oracles.FiniteRewards({"c": [[[0.5, 0.0]], [[0.5, 1.0]]]}, horizon=1)
    dynamics = oracles.FiniteDynamics({"c": np.ones((1, 1, 2, 1))}, horizon=1)
    agent = FeelGoodThompson(space, rewards, dynamics, optimism=1.0)
    hopeful = []
    for _ in range(10):
        hopeful.append(agent.weights("c")[1, 0])
        agent.update(Trajectory(context="c", states=[0, 0], actions=[0], rewards=[0.5]))
    assert hopeful[0] == 0.5
    assert all(np.diff(hopeful) > 0.0)


def test_regret_stays_flat_where_greed_is_misled(seed):
    """The decoy: greedy loses about 0.5 per episode forever."""
    world = Decoy(seed=seed)
    rewards = oracles.FiniteRewards(world.reward_functions, horizon=world.space.horizon)
    dynamics = oracles.FiniteDynamics(world.transition_functions, horizon=world.space.horizon)
    agent = FeelGoodThompson(world.space, rewards, dynamics, seed=seed)
    regret = simulate(world, IID(world.contexts), agent, 400, seed=seed).regret
    assert regret[200:].mean() < 0.02


def test_sums_of_values_are_saved(rng, tmp_path):
    agent, other, plain = (trained(agent_on(optimism=3.0), rng, n) for n in (9, 0, 9))
    agent.save(tmp_path / "agent")
    other.restore(tmp_path / "agent")
    np.testing.assert_array_equal(other.weights("a"), agent.weights("a"))
    for t in range(9, 15):
        episode = an_episode(rng, agent.space, LABELS[t % 3], agent.policy(LABELS[t % 3]))
        for each in (agent, other):
            each.update(episode)
    np.testing.assert_array_equal(other.state()["value_sums"], agent.state()["value_sums"])
    with pytest.raises(ValueError, match="`state` must hold 'value_sums' of shape"):
        plain.load_state({**agent.state(), "value_sums": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="`state` must come from"):
        agent_on(optimism=1.0).load_state(agent.state())


def test_contexts_that_were_forgotten_are_computed_again(rng, monkeypatch):
    monkeypatch.setattr("omg_lab.rivals.feel_good.KEPT_BYTES", 1)
    forgetful = trained(agent_on(), np.random.default_rng(0))
    monkeypatch.undo()
    np.testing.assert_array_equal(forgetful.weights("a"), trained(agent_on(), np.random.default_rng(0)).weights("a"))


@pytest.mark.parametrize("optimism", [-0.1, math.nan, math.inf, "much", None, [0.1]])
def test_nonsense_is_refused_by_name(optimism):
    with pytest.raises(ValueError, match="`optimism` must be a finite number of at least 0"):
        agent_on(optimism=optimism)
    with pytest.raises(ValueError, match="`seed`"):
        agent_on(seed=-1)
    _, counted = ORACLES["counts"][1]()
    with pytest.raises(ValueError, match="`dynamics_oracle` must be a FiniteDynamics, got CountDynamics"):
        FeelGoodThompson(SPACES["plain"], ORACLES["finite"][1]()[0], counted)
