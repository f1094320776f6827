"""A world for tests of UC³RL: random classes of functions, not far from one another."""

import numpy as np

import omg_cmdp as omg
from omg_cmdp.oracles import OfflineFiniteDynamics, OfflineFiniteRewards

STATES, ACTIONS, HORIZON, FUNCTIONS = 3, 3, 4, 16
LABELS = ("a", "b", "c", "d")
MASK = np.array([[True, True, True], [False, True, True], [True, False, True]])
SPACES = {
    "plain": omg.Space(states=STATES, actions=ACTIONS, horizon=HORIZON),
    "restricted": omg.Space(states=STATES, actions=ACTIONS, horizon=HORIZON, start=[0.5, 0.2, 0.3], admissible=MASK),
}


class Small(omg.ContextualMDP):
    """Random classes of sixteen functions, not far from one another; the sixth are true."""

    def __init__(self, rng, space=SPACES["plain"]):
        self.space = space
        self.rewards = {c: rng.uniform(0.4, 0.6, (FUNCTIONS, HORIZON, STATES, ACTIONS)) for c in LABELS}
        self.kernels = {c: rng.dirichlet(np.full(STATES, 5.0), (FUNCTIONS, STATES, ACTIONS)) for c in LABELS}

    def mdp(self, context):
        return self.space.mdp(transitions=self.kernels[context][5], rewards=self.rewards[context][5])

    def offline(self):
        return (
            OfflineFiniteRewards(self.rewards, horizon=HORIZON),
            OfflineFiniteDynamics(self.kernels, horizon=HORIZON, smoothing=1e-3),
        )
