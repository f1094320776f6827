"""Every bandit learns: regret per episode falls, on linear rewards and on many arms. And none has a second step."""

import functools

import numpy as np
import pytest

from library.tests.agents.models import learning
from omg_cmdp import Space, oracles, simulate
from omg_cmdp.adversaries import IID
from omg_lab.rivals import (
    ILTCB,
    UCCB,
    AdaCB,
    EpochGreedy,
    LinMED,
    RegCB,
    RegressorElimination,
)
from omg_lab.worlds import Arms, ContextualBandit

EPISODES = 400
BANDITS = {
    "AdaCB": (AdaCB, {}, 0.05),
    "Epoch-Greedy": (EpochGreedy, {"scale": 0.3}, 0.4),  # explores as often as T^(-1/3)
    "LinMED": (LinMED, {}, 0.05),
    "RegCB": (RegCB, {}, 0.05),
    "RegCB, elimination": (RegCB, {"optimistic": False}, 0.05),
    "UCCB": (UCCB, {"contexts": None}, 0.1),
}
POLICIES = {  # estimates by r/p are noisy, and settle late; a function is dropped when all policies have been tried
    "ILTCB": (ILTCB, {"scale": 0.1, "psi": 1.0, "contexts": None}, 0.6),
    "Regressor Elimination": (RegressorElimination, {"contexts": None}, 0.6),
}
"""Kind, options (the contexts are those of the world), and what is left of the regret of uniform play at the end."""
ALL = BANDITS | POLICIES
WORLDS = {
    "linear": functools.partial(ContextualBandit, actions=2, reward_class_size=8),
    "arms": functools.partial(Arms, actions=3, reward_class_size=8),
}


def given(options, contexts):
    return {key: contexts if key == "contexts" else value for key, value in options.items()}


def uniform_regret(world):
    rewards = [world.mdp(context).rewards[0] for context in world.contexts]
    return float(np.mean([each.max() - each.mean() for each in rewards]))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("make", WORLDS)
def test_regret_per_episode_falls(make, name, seed):
    world, (kind, options, left) = WORLDS[make](seed=seed), ALL[name]
    episodes = 1000 if name in POLICIES else EPISODES
    agent = learning(world, kind, **given(options, world.contexts))
    regret = simulate(world, IID(world.contexts), agent, episodes, seed=seed).regret
    assert regret[-100:].mean() <= left * uniform_regret(world)


@pytest.mark.parametrize("name", BANDITS)
def test_tables_that_are_learned_are_played_too(name, seed):
    world, (kind, options, _) = Arms(actions=3, seed=seed), BANDITS[name]
    counts = oracles.CountRewards(states=1, actions=3, horizon=1, contexts=world.contexts)
    dynamics = oracles.KnownDynamics(np.ones((1, 3, 1)), horizon=1)
    agent = kind(world.space, counts, dynamics, **given(options, world.contexts))
    regret = simulate(world, IID(world.contexts), agent, 2 * EPISODES, seed=seed).regret
    assert regret[-100:].mean() < 0.5 * uniform_regret(world)


@pytest.mark.parametrize("name", ["AdaCB", "LinMED", "RegCB"])
def test_regressions_are_played_too(name, seed):
    """Those that ask for variances, or for covariances."""
    world, (kind, options, _) = ContextualBandit(seed=seed), BANDITS[name]
    sizes = {"states": 1, "actions": 4, "horizon": 1, "dimension": world.dimension}
    agent = kind(
        world.space, oracles.LinearRewards(**sizes), oracles.KnownDynamics(np.ones((1, 4, 1)), horizon=1), **options
    )
    regret = simulate(world, IID(world.contexts), agent, EPISODES, seed=seed).regret
    assert regret[-100:].mean() < 0.6 * uniform_regret(world)


@pytest.mark.parametrize("name", ALL)
def test_more_steps_than_one_are_refused(name):
    kind, options, _ = ALL[name]
    rewards = oracles.FiniteRewards({"c": np.zeros((1, 1, 2))}, horizon=2)
    parts = rewards, oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=2)
    with pytest.raises(ValueError, match="`space` must have horizon 1 for a bandit, got 2"):
        kind(Space(states=1, actions=2, horizon=2), *parts, **given(options, ["c"]))
