"""Reminders with fatigue: messages help in the right moment, and every one of them burdens.

An app may remind a person to exercise, once a day. Each reminder is a burden, and an episode has a budget for it. A
reminder helps most in a receptive moment, a little in others, and less the more tired the person is of them.

States       fatigue 0 fresh, 1 tired, 2 annoyed, each in a moment 0 busy or 1 receptive: 2·fatigue + moment. Episodes
             start fresh and busy.
Actions      0 silence, 1 message, 2 call.
Horizon      H = 7 days.
Contexts     4 labels: kinds of people.
Rewards      .2 + effect·(1, .6, .2 by fatigue), Bernoulli. An effect is uniform in [.05, .2] of a message and [.1, .3]
             of a call in a busy moment, in [.2, .45] and [.3, .6] in a receptive one, and 0 of silence.
Transitions  Fatigue rises a step with probability u after a message or a call, and falls a step with probability u
             after silence; u is uniform in [.2, .4], [.3, .6] and [.3, .6]. The next moment is receptive with
             probability ρ, uniform in [.3, .6].
Costs        1 a message, 2 a call: the burden. The budget is 2 an episode.
Class        32 hypotheses on the effects and 32 on fatigue and moments, drawn for each context; one of each is true.
Dial         towards effects that fatigue does not weaken, and moments that fatigue makes rarer: ρ·(1, .6, .2).

Without the budget the best plan reminds in busy moments as well, and costs three to six times as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, positive_number
from omg_lab.worlds.base import World, streams

FATIGUE, MOMENTS = ("fresh", "tired", "annoyed"), ("busy", "receptive")
LEFT = np.array([1.0, 0.6, 0.2])
BASE = 0.2
EFFECTS = np.array([[[0.05, 0.2], [0.1, 0.3]], [[0.2, 0.45], [0.3, 0.6]]])
MOVES = np.array([[0.3, 0.6], [0.2, 0.4], [0.3, 0.6], [0.3, 0.6]])
BURDEN = np.array([0.0, 1.0, 2.0])


@final
@dataclass(kw_only=True, eq=False)
class Reminders(World):
    """Messages and calls that help in receptive moments, tire, and are limited by a budget.

    Parameters
    ----------
    budget : float
        The burden that an episode may have in expectation, positive; 2 by default.
    horizon : int
        Number H of days.
    context_count : int
        Number of kinds of people.
    reward_class_size, transition_class_size : int
        Number of reward functions and of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class, its true member and what the dial moves towards.

    >>> world = Reminders()
    >>> world.costs(0)[0, 0], world.budgets
    (array([0., 1., 2.]), array([2.]))
    """

    state_names = tuple(f"{fatigue}, {moment}" for fatigue in FATIGUE for moment in MOMENTS)
    action_names = ("silence", "message", "call")
    cost_names = ("burden",)

    budget: float = 2.0
    horizon: int = 7
    context_count: int = 4
    reward_class_size: int = 32
    transition_class_size: int = 32

    def _draw(self) -> None:
        self.space = Space(states=6, actions=3, horizon=self.horizon)
        self.contexts = tuple(range(self.context_count))
        self.budgets = np.array([positive_number("budget", self.budget)])
        for_rewards, for_transitions = streams(self.seed, 2)
        self.reward_index = int(for_rewards.integers(self.reward_class_size))
        self.transition_index = int(for_transitions.integers(self.transition_class_size))
        sizes = (self.reward_class_size, self.context_count), (self.transition_class_size, self.context_count)
        self._effects = for_rewards.uniform(EFFECTS[..., 0], EFFECTS[..., 1], size=(*sizes[0], 2, 2))
        self._moves = for_transitions.uniform(MOVES[:, 0], MOVES[:, 1], size=(*sizes[1], 4))

    def costs(self, context: Context) -> FloatArray:
        """Return the burden (1, S, A), which is the same for all."""
        self._label(context)
        return np.tile(BURDEN, (1, 6, 1))

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) under every hypothesis on the effects."""
        return _rewards(self._effects[:, self._label(context)], LEFT)

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) under every hypothesis on fatigue and moments."""
        return _transitions(self._moves[:, self._label(context)], np.ones(3))

    def _outside_rewards(self, context: Context) -> FloatArray:
        return np.asarray(_rewards(self._effects[[self.reward_index], context], np.ones(3))[0])

    def _outside_transitions(self, context: Context) -> FloatArray:
        return np.asarray(_transitions(self._moves[[self.transition_index], context], LEFT)[0])


def _rewards(effects: FloatArray, left: FloatArray) -> FloatArray:
    """Return (N, S, A) for effects (N, moment, action), of which `left` (3,) is left by fatigue."""
    weakened = BASE + left[:, None, None] * np.pad(effects, [(0, 0), (0, 0), (1, 0)])[:, None]
    return np.asarray(weakened.reshape(-1, 6, 3))


def _transitions(moves: FloatArray, share: FloatArray) -> FloatArray:
    """Return (M, S, A, S) for moves (M, 4): fatigue by action, and receptive moments, times `share` (3,) by fatigue."""
    fatigue = np.zeros((len(moves), 3, 3, 3))
    for now in range(3):
        for action in range(3):
            then = max(now - 1, 0) if action == 0 else min(now + 1, 2)
            fatigue[:, now, action, now] += 1.0 - moves[:, action]
            fatigue[:, now, action, then] += moves[:, action]
    receptive = moves[:, 3, None] * share
    moments = np.stack([1.0 - receptive, receptive], axis=-1)  # of the next day, by the fatigue of this one
    tables = fatigue[:, :, None, :, :, None] * moments[:, :, None, None, None]
    return np.repeat(tables, 2, axis=2).reshape(-1, 6, 3, 6)
