"""The reduction to offline regression: reachability, the inequality of its proof, and its sample complexity."""

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.rivals.test_pc_igw import every_policy
from library.tests.agents.models import knowing
from library.tests.random_mdps import random_mdp
from omg_cmdp import oracles
from omg_cmdp.adversaries import IID
from omg_cmdp.mdp import occupancy_measure, optimal_policy, policy_value
from omg_lab.rivals import ERMReduction
from omg_lab.rivals.erm_reduction import sample_size
from omg_lab.worlds import CombinationLock, Decoy, LinearWorld


def fitting(world, **more):
    """Return the agent with offline fits of the classes of `world`."""
    horizon = world.space.horizon
    rewards = oracles.OfflineFiniteRewards(world.reward_functions, horizon=horizon)
    dynamics = oracles.OfflineFiniteDynamics(world.transition_functions, horizon=horizon)
    return ERMReduction(world.space, rewards, dynamics, **more)


def loss(world, agent):
    """Return E_c[V* - V^π] after exploration."""
    assert agent.explored
    return np.mean([world.truth(c).best[1] - policy_value(world.mdp(c), agent.policy(c)) for c in world.contexts])


@pytest.mark.parametrize("masked", [False, True])
def test_every_tuple_has_its_turn_with_the_policy_that_visits_it_most(masked, rng):
    mdp = random_mdp(rng, states=2, actions=2, horizon=3, masked=masked)
    agent, most = knowing(mdp, ERMReduction, samples=2), np.zeros((3, 2, 2))
    for policy in every_policy(mdp):
        most = np.maximum(most, occupancy_measure(mdp, policy))
    visited = np.zeros((3, 2, 2))
    while not agent.explored:
        policy = agent.policy("c")
        visited = np.maximum(visited, occupancy_measure(mdp, policy))
        step = omg.Trajectory(context="c", states=[0, 0], actions=[np.argmax(mdp.admissible[0])], rewards=[0.0])
        agent.update(step)
    assert agent.episodes_seen == 2 * len(agent._tuples)
    np.testing.assert_allclose(visited, most, atol=1e-12)
    assert np.array_equal(agent.policy("c"), optimal_policy(mdp)[0])


def test_the_loss_of_a_fit_is_at_most_its_errors_where_states_are_reached_most(rng):
    """V* - V^π̂ <= Σ ρ·|f̂ - f*|, whatever the fit of the rewards; and not always half of it."""
    tightest = 0.0
    for _ in range(300):
        truth = random_mdp(rng, states=2, actions=2, horizon=2)
        most = np.max([occupancy_measure(truth, policy) for policy in every_policy(truth)], axis=0)
        errors = rng.normal(scale=0.5, size=truth.rewards.shape)
        fit = truth.space.mdp(
            transitions=truth.transitions + (1 - truth.transitions.sum(axis=-1, keepdims=True)) / truth.states,
            rewards=np.clip(truth.rewards + errors, 0.0, 1.0),
        )
        lost = optimal_policy(truth)[1] - policy_value(truth, optimal_policy(fit)[0])
        bound = (
            most.max(axis=2, keepdims=True) * np.abs(fit.reward_steps - truth.reward_steps) * truth.admissible
        ).sum()
        assert lost <= bound + 1e-9
        tightest = max(tightest, lost / max(bound, 1e-12))
    assert tightest > 0.5


def test_errors_in_expectation_stay_below_the_size_of_the_class(rng):
    """Σ_t E_t Σ_h (f̂ - f*)² <= D after any number of episodes, whatever the policies."""
    horizon, functions, labels = 2, 64, range(3)
    tables = {c: rng.uniform(0.0, 1.0, (functions, 2, 2)) for c in labels}
    kernel = rng.dirichlet(np.ones(2), (2, 2))
    space = omg.Space(states=2, actions=2, horizon=horizon)
    known = oracles.KnownDynamics(kernel, horizon=horizon)
    agent = ERMReduction(space, oracles.OfflineFiniteRewards(tables, horizon=horizon), known, samples=40)
    truths = [space.mdp(transitions=kernel, rewards=tables[c][0]) for c in labels]
    expected, bound, largest = np.zeros(functions), log_bound(horizon, functions / 1e-3), 0.0
    while not agent.explored:
        for c in labels:
            visits = occupancy_measure(truths[c], agent.policy(c)).sum(axis=0)
            expected += (visits * (tables[c] - tables[c][0]) ** 2).sum(axis=(1, 2)) / len(labels)
        c = int(rng.integers(len(labels)))
        states, actions, policy = [0], [], agent.policy(c)
        for h in range(horizon):
            actions.append(int(rng.choice(2, p=policy[h, states[-1]])))
            states.append(int(rng.choice(2, p=kernel[states[-1], actions[-1]])))
        rewards = rng.random(horizon) < tables[c][0][states[:-1], actions]
        agent.update(omg.Trajectory(context=c, states=states, actions=actions, rewards=rewards * 1.0))
        error = expected[int(agent.reward_oracle.parameters()[0])]
        assert error <= bound
        largest = max(largest, error)
    assert largest > 0.0
    assert expected.max() > bound  # other fits would not do


def log_bound(horizon, ratio):
    """Return D = 2H/(1 - e^(-H/2))·log(N/δ)."""
    return 2.0 * horizon / (1.0 - np.exp(-horizon / 2.0)) * np.log(ratio)


@pytest.mark.parametrize(("sizes", "accuracy"), [((1, 2, 1), 0.3), ((2, 1, 2), 0.7)])
def test_the_stated_sample_is_enough(sizes, accuracy):
    """A decoy, in which dynamics are known: a fit to the safe arm alone would be .4 and more below the optimum."""
    states, arms, horizon = sizes
    world = Decoy(states=states, actions=arms + 1, horizon=horizon, context_count=4, reward_class_size=8, seed=3)
    samples = sample_size(world.space, accuracy=accuracy, functions=8, delta=0.1)
    agent = fitting(world, samples=samples)
    tuples = len(agent._tuples)
    assert np.sqrt(tuples * log_bound(horizon, 8 / 0.1) / samples) == pytest.approx(accuracy, rel=1e-2)
    assert np.mean([world.truth(c).best[1] - 0.5 * horizon for c in world.contexts]) > 0.1
    omg.simulate(world, IID(world.contexts), agent, samples * tuples)
    assert loss(world, agent) <= accuracy


@pytest.mark.parametrize(("kind", "samples"), [(LinearWorld, 4), (CombinationLock, 4)])
def test_it_commits_to_a_good_policy_where_dynamics_are_unknown(kind, samples):
    """The lock opens: that the keys of the first positions are known is what gets it to the next."""
    world = kind(seed=1)
    agent = fitting(world, samples=samples)
    explored = samples * len(agent._tuples)
    regret = omg.simulate(world, IID(world.contexts), agent, explored + 100).regret
    assert loss(world, agent) < 0.05
    assert regret[explored:].sum() < 0.2 * regret[:100].sum()


@pytest.mark.parametrize("value", [0, 1.5, "many", None])
def test_samples_are_a_number(value):
    with pytest.raises(ValueError, match="`samples`"):
        fitting(Decoy(), samples=value)


@pytest.mark.parametrize(("argument", "value"), [("accuracy", 0.0), ("functions", 0), ("delta", 1.0), ("space", None)])
def test_a_sample_size_of_nonsense_is_refused(argument, value):
    good = {"space": Decoy().space, "accuracy": 0.1, "functions": 8, "delta": 0.1}
    with pytest.raises(ValueError, match=f"`{argument}`"):
        sample_size(**{**good, argument: value})
