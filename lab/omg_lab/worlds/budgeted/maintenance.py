"""Maintenance with crews: machines wear, crews travel, and parts are few.

A machine earns by its condition. A crew can service it, which mends a little, or replace its worn part, which makes it
new. Crews have to travel; their hours have a budget, and so have the parts.

States       condition 0 new, 1 good, 2 worn, 3 poor, 4 failed. Episodes start new.
Actions      0 run, 1 service, 2 replace.
Horizon      H = 12 weeks.
Contexts     4 labels: sites.
Transitions  A machine that runs wears a step with probability w, of each condition its own, uniform in [.1, .8]; a
             failed one stays failed. Service mends a step with probability m, uniform in [.3, .9], else changes
             nothing; it cannot mend what has failed. Replacing makes the machine new.
Rewards      1, .9, .7, .35, 0 by condition if it runs, times y if it is serviced, times ¼ if its part is replaced;
             Bernoulli. y is uniform in [.3, .9] for each site.
Costs        Crew hours: 1 for a service and 2 for a replacement, and the travel to the site, uniform in [0, 1]. Parts:
             1 for a replacement. Both are known. The budgets are 3 hours and .5 parts.
Class        32 hypotheses on wear and mending and 16 on y, drawn for each context; one of each is true.
Dial         towards wear that is the same, ½, in all conditions and sites, and the squares of the rewards.

Without the budgets the best plan takes up to 7.8 hours, or up to 1.8 parts. With them both may bind at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, positive_number
from omg_lab.worlds.base import World, streams

OUTPUT = np.array([1.0, 0.9, 0.7, 0.35, 0.0])
REPLACING = 0.25
WORK = np.array([0.0, 1.0, 2.0])
WEAR, MENDING, SERVED = (0.1, 0.8), (0.3, 0.9), (0.3, 0.9)
FAILED = len(OUTPUT) - 1


@final
@dataclass(kw_only=True, eq=False)
class Maintenance(World):
    """Machines that crews may service or replace, with budgets of hours and of parts.

    Parameters
    ----------
    hours, parts : float
        What an episode may use in expectation, positive; 3 and 0.5 by default.
    horizon : int
        Number H of weeks.
    context_count : int
        Number of sites.
    reward_class_size, transition_class_size : int
        Number of reward functions and of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class, its true member and what the dial moves towards.

    >>> Maintenance().costs(0).shape, Maintenance().budgets
    ((2, 5, 3), array([3. , 0.5]))
    """

    state_names, action_names = ("new", "good", "worn", "poor", "failed"), ("run", "service", "replace")
    cost_names = ("hours", "parts")

    hours: float = 3.0
    parts: float = 0.5
    horizon: int = 12
    context_count: int = 4
    reward_class_size: int = 16
    transition_class_size: int = 32

    def _draw(self) -> None:
        self.space = Space(states=len(OUTPUT), actions=3, horizon=self.horizon)
        self.contexts = tuple(range(self.context_count))
        self.budgets = np.array([positive_number("hours", self.hours), positive_number("parts", self.parts)])
        for_costs, for_rewards, for_transitions = streams(self.seed, 3)
        self._travel = for_costs.uniform(0.0, 1.0, size=self.context_count)
        self.reward_index = int(for_rewards.integers(self.reward_class_size))
        self.transition_index = int(for_transitions.integers(self.transition_class_size))
        self._served = for_rewards.uniform(*SERVED, size=(self.reward_class_size, self.context_count))
        cells = (self.transition_class_size, self.context_count)
        self._wear = for_transitions.uniform(*WEAR, size=(*cells, FAILED))
        self._mending = for_transitions.uniform(*MENDING, size=cells)

    def costs(self, context: Context) -> FloatArray:
        """Return hours and parts (2, S, A)."""
        hours = WORK + (WORK > 0.0) * self._travel[self._label(context)]
        return np.repeat(np.stack([hours, [0.0, 0.0, 1.0]])[:, None], len(OUTPUT), axis=1)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) under every hypothesis on what a service leaves."""
        served = self._served[:, self._label(context)]
        shares = np.stack([np.ones_like(served), served, np.full_like(served, REPLACING)], axis=-1)
        return np.asarray(OUTPUT[:, None] * shares[:, None])

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) under every hypothesis on wear and mending."""
        place = self._label(context)
        return _transitions(self._wear[:, place], self._mending[:, place])

    def _outside_rewards(self, context: Context) -> FloatArray:
        return np.asarray(self._reward_member(context) ** 2)

    def _outside_transitions(self, context: Context) -> FloatArray:
        mending = self._mending[[self.transition_index], context]
        return np.asarray(_transitions(np.full((1, FAILED), 0.5), mending)[0])


def _transitions(wear: FloatArray, mending: FloatArray) -> FloatArray:
    """Return the transitions (M, S, A, S) for wear (M, S - 1) and mending (M,)."""
    tables = np.zeros((len(wear), FAILED + 1, 3, FAILED + 1))
    tables[:, FAILED, :2, FAILED] = tables[:, :, 2, 0] = 1.0
    for condition in range(FAILED):
        tables[:, condition, 0, condition + 1] = wear[:, condition]
        tables[:, condition, 0, condition] = 1.0 - wear[:, condition]
        tables[:, condition, 1, max(condition - 1, 0)] += mending
        tables[:, condition, 1, condition] += 1.0 - mending
    return tables
