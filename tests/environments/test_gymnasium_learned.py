"""OMG learns Gymnasium's FrozenLake, its success rate as context, by oracles that know neither kernels nor rewards.

The lake has its usual 100 steps and earns nothing but at its goal. What the oracles know: rewards and transitions are
linear in the success rate (exactly so, by `test_frozen_lake_is_affine_in_its_success_rate`), with coefficients of which
they know nothing, and a move leads one cell on at most, or ends the episode. They are not told where holes and goal
are, which action is which direction, nor how ice slips.

The default κ is made for short episodes: the rule takes every one of H·S·A tuples for an unknown of its own, while
these oracles have S·A unknowns and meet them in every step. So κ is smaller here, by about 1/H.
"""

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.agents.gamma import Adaptive
from omg_cmdp.environments import from_gymnasium
from omg_cmdp.oracles import BasisDynamics, LinearRewards

RATES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
EPISODES, HORIZON, SIDE = 3000, 100, 4
KAPPA = 0.0015 / HORIZON


def within_one_cell():
    """Return which transitions can happen, (S, A, S): to a cell at most one away, or to the end."""
    places = np.array([divmod(cell, SIDE) for cell in range(SIDE**2)])
    near = np.abs(places[:, None] - places).sum(axis=-1) <= 1
    reachable = np.zeros((SIDE**2 + 1, SIDE**2 + 1), dtype=bool)
    reachable[:-1, :-1], reachable[:, -1] = near, True
    return np.repeat(reachable[:, None], 4, axis=1)


def mixture(rate):
    return [rate, 1.0 - rate]


@pytest.mark.slow
def test_omg_learns_the_lake_for_every_success_rate(seed):
    """Within 5 % of the optimum on average over contexts and 10 % in each, exactly, after 3000 episodes."""
    lake = from_gymnasium("FrozenLake-v1", RATES, arguments="success_rate")
    assert lake.space.horizon == HORIZON
    sizes = {"states": SIDE**2 + 1, "actions": 4, "horizon": HORIZON, "features": mixture}
    rewards = LinearRewards(dimension=2, **sizes)
    dynamics = BasisDynamics(bases=2, support=within_one_cell(), **sizes)
    agent = omg.OMG(lake.space, rewards, dynamics, gamma=Adaptive(kappa=KAPPA), episodes=EPISODES)
    contexts = np.random.default_rng(seed).choice(RATES, size=EPISODES).tolist()
    log = omg.play(lake, agent, contexts, seed=seed)  # in Gymnasium itself
    shares = [lake.truth(rate).value(agent.policy(rate)) / lake.optimal_value(rate) for rate in RATES]
    print("shares of the optimum", np.round(shares, 3), "mean", np.mean(shares).round(3))
    assert np.mean(shares) >= 0.95
    assert min(shares) >= 0.9
    assert log.returns[-500:].mean() >= 0.75  # and this is what it earned
