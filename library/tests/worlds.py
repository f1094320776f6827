"""A small world with function classes, for tests that need one to learn in."""

import numpy as np

import omg_cmdp as omg

SAFE, GOOD, BAD = 0.5, 0.95, 0.1


class SafeArm(omg.ContextualMDP):
    """A safe arm that pays ½, and risky arms that pay .95 in about 30 % of the contexts and states, and else .1.

    Every function of the class says the same of the safe arm, so that an agent that never tries the others learns
    nothing. The transitions are random, and known: a class of one.
    """

    def __init__(self, *, states=3, actions=3, horizon=4, contexts=16, functions=32, seed=0):
        rng = np.random.default_rng(seed)
        self.space = omg.Space(states=states, actions=actions, horizon=horizon)
        self.contexts = tuple(range(contexts))
        good = rng.permuted(
            np.broadcast_to(np.arange(functions) < 0.3 * functions, (contexts, states, actions - 1, functions)), axis=-1
        )
        self._rewards = np.full((contexts, functions, states, actions), SAFE)
        self._rewards[..., 1:] = np.moveaxis(np.where(good, GOOD, BAD), -1, 1)
        self._transitions = rng.dirichlet(np.ones(states), (1, states, actions))

    def reward_functions(self, context):
        if context not in self.contexts:
            raise ValueError(f"`context` must be one of {self.contexts}, got {context!r}")
        return self._rewards[context]

    def transition_functions(self, _):
        return self._transitions

    def mdp(self, context):
        return self.space.mdp(transitions=self._transitions[0], rewards=self._rewards[context, 0])
