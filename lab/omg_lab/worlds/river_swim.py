"""RiverSwim (Strehl and Littman, 2008): the reward is upstream, and for a long time nothing says so.

States       n = 6 places along the river, 0 downstream; episodes start there.
Actions      2: one swims against the current, the other drifts. Which is which depends on the context.
Horizon      H = 20.
Contexts     4 labels; each has a current w and its own names of the actions.
Transitions  Drifting leads one place down. Swimming leads one place up with probability .4 - w, stays with .6, and
             loses a place with w. At place 0 it leads up with .65 - w, and else stays; at the last place it stays with
             .65 - w, and else loses it. w = .05 is the river of Osband, Russo and Van Roy (2013).
Rewards      .005 for drifting at place 0, 1 for swimming at the last place, else 0; Bernoulli. Known: a class of one.
Class        16 hypotheses on the currents, w uniform in [.02, .1] for each context; one of them is true. The names of
             the actions are the same in all.
Dial         towards rapids: a current of its own, uniform in [.02, .3], at every place.

An agent that chooses at random is carried back, and spends fewer than .05 of the 20 steps at the last place, while .005
is there from the first step. V* is 1.9 to 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, integer
from omg_lab.worlds.base import World, streams

STAY, UP_OR_BACK, AT_AN_END = 0.6, 0.4, 0.65
CURRENTS, RAPIDS = (0.02, 0.1), (0.02, 0.3)
SMALL, LARGE = 0.005, 1.0


@final
@dataclass(kw_only=True, eq=False)
class RiverSwim(World):
    """Swim against a current to a large reward, or drift to a small one; `swim` (C,) is the action that swims.

    Parameters
    ----------
    states : int
        Number S of places, at least 3.
    horizon : int
        The size H.
    context_count : int
        Number of contexts.
    transition_class_size : int
        Number M of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class, its true member and what the dial moves towards.

    >>> river = RiverSwim()
    >>> drift = 1 - river.swim[0]
    >>> float(river.mdp(0).rewards[0, drift]), float(river.mdp(0).transitions[3, drift, 2])
    (0.005, 1.0)
    """

    states: int = 6
    horizon: int = 20
    context_count: int = 4
    transition_class_size: int = 16

    def _draw(self) -> None:
        self.space = Space(states=integer("states", self.states, 3), actions=2, horizon=self.horizon)
        self.contexts = tuple(range(self.context_count))
        for_names, for_transitions, outside = streams(self.seed, 3)
        self.swim = for_names.permutation(np.arange(self.context_count) % 2)
        self.transition_index = int(for_transitions.integers(self.transition_class_size))
        self._currents = for_transitions.uniform(*CURRENTS, size=(self.transition_class_size, self.context_count, 1))
        self._rapids = outside.uniform(*RAPIDS, size=(1, self.context_count, self.states))
        place = np.arange(self.states)
        self.support = np.repeat(np.abs(place[:, None] - place)[:, None] <= 1, 2, axis=1)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (1, S, A), which are known."""
        swim = self.swim[self._label(context)]
        rewards = np.zeros((1, self.space.states, 2))
        rewards[:, 0, 1 - swim] = SMALL
        rewards[:, -1, swim] = LARGE
        return rewards

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) of all hypotheses on the current."""
        return self._transition_tables(self._currents[:, self._label(context)], context)

    def _outside_transitions(self, context: Context) -> FloatArray:
        return np.asarray(self._transition_tables(self._rapids[:, context], context)[0])

    def _transition_tables(self, currents: FloatArray, context: Context) -> FloatArray:
        """Return (M, S, A, S) for currents (M, S), or (M, 1) if they are the same at all places."""
        states, swim = self.space.states, self.swim[context]
        currents = np.broadcast_to(currents, (len(currents), states))
        tables = np.zeros((len(currents), states, 2, states))
        place, inner = np.arange(states), np.arange(1, states - 1)
        tables[:, place, 1 - swim, np.maximum(place - 1, 0)] = 1.0
        tables[:, inner, swim, inner + 1] = UP_OR_BACK - currents[:, 1:-1]
        tables[:, inner, swim, inner] = STAY
        tables[:, inner, swim, inner - 1] = currents[:, 1:-1]
        for end, inward, outward in ((0, 1, 0), (-1, -1, -2)):
            tables[:, end, swim, inward] = AT_AN_END - currents[:, end]
            tables[:, end, swim, outward] = 1.0 - AT_AN_END + currents[:, end]
        return tables
