"""KWIK-Rmax: what is known is as exact as it says, and what is not known is said seldom enough."""

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp import Space, optimal_policy
from omg_lab.rivals import KWIKRmax
from omg_lab.worlds import LinearWorld

STATES, ACTIONS, HORIZON, DIMENSION = 3, 2, 3, 3
SPACE = Space(states=STATES, actions=ACTIONS, horizon=HORIZON)


def known_pairs(agent, context):
    """Return which pairs are known in a context, (S, A)."""
    return np.abs(agent.state()["inverses"] @ context).sum(axis=-1) <= agent.threshold


def exact(agent, rng, contexts, kernels, rewards):
    """Teach every pair noise-free answers: W is θ's own moments, by the state of an agent that loads it."""
    for context in contexts:
        state = agent.state()
        known = known_pairs(agent, context)
        for s, a in np.argwhere(~known):
            inverse = state["inverses"][s, a]
            gain = inverse @ context
            inverse -= np.outer(gain, gain) / (1.0 + context @ gain)
            answer = np.append(context @ kernels[:, s, a], context @ rewards[:, s, a])
            state["moments"][s, a] += np.outer(context, answer)
        agent.load_state(state)


@pytest.mark.parametrize("threshold", [0.05, 0.3])
def test_without_noise_what_is_known_is_within_the_threshold(threshold, rng):
    """|f̂ - f| <= α and ‖P̂ - P‖₁ <= 2α wherever a pair is known, at contexts that were not seen too."""
    kernels, rewards = rng.dirichlet(np.ones(STATES), (DIMENSION, STATES, ACTIONS)), rng.random((3, STATES, ACTIONS))
    agent = KWIKRmax(SPACE, dimension=DIMENSION, threshold=threshold)
    exact(agent, rng, rng.dirichlet(np.ones(DIMENSION), 150), kernels, rewards)
    checked, worst = 0, 0.0
    for context in rng.dirichlet(np.ones(DIMENSION), 100):
        known, model = known_pairs(agent, context), agent.model(context)
        truth = np.einsum("i,isaj->saj", context, kernels), np.einsum("i,isa->sa", context, rewards)
        wrong = np.abs(model.rewards - truth[1])[known]
        moved = np.abs(model.transitions - truth[0]).sum(axis=2)[known]
        assert (wrong <= threshold + 1e-12).all()
        assert (moved <= 2.0 * threshold + 1e-12).all()
        assert (model.rewards[~known] == 1.0).all()
        checked += known.sum()
        worst = max(worst, wrong.max(initial=0.0) / threshold)
    assert checked > 100
    assert worst > 0.2  # the bound is of the right size


def test_the_regression_is_ridge_regression_on_the_unknown_visits(rng):
    agent = KWIKRmax(SPACE, dimension=DIMENSION, threshold=0.4)
    moments, grams = np.zeros((STATES, ACTIONS, DIMENSION, STATES + 1)), np.tile(np.eye(3), (STATES, ACTIONS, 1, 1))
    for context in rng.dirichlet(np.ones(DIMENSION), 60):
        states, actions = rng.integers(STATES, size=HORIZON + 1), rng.integers(ACTIONS, size=HORIZON)
        rewards, states[0] = rng.random(HORIZON), 0  # where the space starts
        for s, a, j, r in zip(states, actions, states[1:], rewards, strict=False):
            if np.abs(np.linalg.solve(grams[s, a], context)).sum() > 0.4:
                grams[s, a] += np.outer(context, context)
                moments[s, a] += np.outer(context, np.append(np.eye(STATES)[j], r))
        agent.update(omg.Trajectory(context=context, states=states, actions=actions, rewards=rewards))
    state = agent.state()
    np.testing.assert_allclose(state["inverses"], np.linalg.inv(grams), atol=1e-10)
    np.testing.assert_allclose(state["moments"], moments, atol=1e-12)


@pytest.mark.parametrize(("dimension", "threshold"), [(1, 0.9), (2, 0.5), (3, 0.2), (5, 0.5)])
def test_it_does_not_know_at_most_so_often(dimension, threshold, rng):
    """Contexts that are chosen to be unknown, the worst corner of the simplex each time."""
    space = Space(states=1, actions=1, horizon=1)
    agent, asked = KWIKRmax(space, dimension=dimension, threshold=threshold), 0
    corners = np.concatenate([np.eye(dimension), rng.dirichlet(np.ones(dimension), 10)])
    while True:
        unknown = [context for context in corners if not known_pairs(agent, context).all()]
        if not unknown:
            break
        context = max(unknown, key=lambda c: c @ agent.state()["inverses"][0, 0] @ c)
        agent.update(omg.Trajectory(context=context, states=[0, 0], actions=[0], rewards=[0.5]))
        asked += 1
    assert asked > 0
    assert asked * np.log1p(threshold**2 / dimension) <= dimension * np.log1p(asked / dimension)


def test_it_learns_a_linear_world(seed):
    """What it plays after a while is near the optimum, in contexts that share all they have in common."""
    world = LinearWorld(seed=seed)
    agent = KWIKRmax(world.space, dimension=world.dimension, threshold=0.1)
    assert optimal_policy(agent.model(world.contexts[0]))[1] == world.space.horizon
    ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), agent, 600, seed=seed)
    early, late = ledger.regret[:100].mean(), ledger.regret[-100:].mean()
    assert late < 0.5 * early


@pytest.mark.parametrize(("name", "value"), [("threshold", 0.0), ("threshold", np.nan), ("dimension", 0)])
def test_bad_arguments_are_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        KWIKRmax(SPACE, **{"dimension": 2, name: value})
