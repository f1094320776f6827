"""OMG learns Gymnasium's FrozenLake for every success rate, by oracles that are told no tables.

The oracles know that rewards and transitions are linear in the success rate, with unknown coefficients, and that a move
leads at most one cell on, or ends the episode: neither where the holes and the goal are, nor how the ice slips.
"""

import numpy as np
import pytest

from omg_cmdp import OMG, play
from omg_cmdp.environments import from_gymnasium
from omg_cmdp.oracles import BasisDynamics, LinearRewards

RATES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
EPISODES, SIDE = 3000, 4


def within_one_cell():
    """Return which transitions can happen, (S, A, S): to a cell at most one away, or to the end."""
    places = np.array([divmod(cell, SIDE) for cell in range(SIDE**2)])
    reachable = np.zeros((SIDE**2 + 1, SIDE**2 + 1), dtype=np.bool_)
    reachable[:-1, :-1], reachable[:, -1] = np.abs(places[:, None] - places).sum(axis=-1) <= 1, True
    return np.repeat(reachable[:, None], 4, axis=1)


@pytest.mark.slow
def test_omg_learns_the_lake_for_every_success_rate(seed):
    """Within 5 % of the optimum on average over contexts and 10 % in each, exactly, after 3000 episodes."""
    world = from_gymnasium("FrozenLake-v1", RATES, arguments="success_rate")
    space = world.space
    sizes = {"states": space.states, "actions": space.actions, "horizon": space.horizon}
    sizes["features"] = lambda rate: [rate, 1.0 - rate]
    rewards = LinearRewards(dimension=2, **sizes)
    dynamics = BasisDynamics(bases=2, support=within_one_cell(), **sizes)
    agent = OMG(space, rewards, dynamics, episodes=EPISODES, return_range=(0.0, 1.0))
    contexts = np.random.default_rng(seed).choice(RATES, size=EPISODES).tolist()
    log = play(world, agent, contexts, seed=seed)
    shares = np.array([world.truth(c).value(agent.policy(c)) / world.optimal_value(c) for c in RATES])
    assert shares.mean() >= 0.95
    assert shares.min() >= 0.9
    assert log.returns.sum() >= 0.75 * sum(world.optimal_value(c) for c in contexts)
