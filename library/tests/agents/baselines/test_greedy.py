"""Where no exploration fails, and OMG does not."""

import numpy as np

from omg_cmdp import OMG, ContextualMDP, Space, oracles, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Greedy


class Unpromising(ContextualMDP):
    """A safe arm that pays ½, and a risky one that pays .9; the class also holds a function by which it pays .1."""

    space = Space(states=1, actions=2, horizon=1)
    functions = np.array([[[0.5, 0.1]], [[0.5, 0.9]]])

    def mdp(self, context):
        return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=self.functions[1])


def test_a_fit_that_is_wrong_and_content_holds_greedy_for_ever():
    """On a finite class the offline fit commits to a function; nothing that greedy sees speaks against this one."""
    world, dynamics = Unpromising(), oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=1)
    stuck = Greedy(world.space, oracles.OfflineFiniteRewards(lambda _: world.functions, horizon=1), dynamics)
    free = OMG(world.space, oracles.FiniteRewards(lambda _: world.functions, horizon=1), dynamics)
    regret = [simulate(world, IID(["c"]), agent, 300, seed=1).regret for agent in (stuck, free)]
    np.testing.assert_allclose(regret[0], 0.4)
    assert regret[1].sum() < 30.0
