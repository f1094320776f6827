"""A treatment with side effects: the drug that works best is the one that harms.

A patient is seen H times. One drug is mild, the other strong; how likely each is to work and to harm depends on the
patient. The expected number of side effects of the whole treatment has a budget.

States       0 well, 1 mild, 2 moderate, 3 severe. Patients begin as mild, moderate or severe with probabilities .3, .4,
             .3. The well may fall ill again.
Actions      0 wait, 1 mild drug, 2 strong drug.
Horizon      H = 6 visits.
Contexts     4 patients x = (age, kidneys), scaled to [-1, 1], uniform.
Transitions  A stage better with probability ρ_a(x) = σ(b_a + v_a·x), a stage worse with probability (1 - ρ_a(x))·δ,
             else no change; δ = .1, .15, .25, .35 by stage.
Rewards      1, .7, .35, 0 by stage, Bernoulli. Known: a class of one.
Costs        The expected number of side effects of a visit, τ_a(x) = σ(b'_a + v'·x), none of waiting; known, as they
             are printed on the package. b' = -2, 0, v' = (.5, 1). The budget is .8.
Class        32 hypotheses on the responses: v normal with deviation 1, b with deviation ½ around -2, -½, 1. One is
             true.
Dial         towards responses whose log-odds have the product of age and kidneys besides, with a weight of deviation 4.

Without the budget the best plan has two side effects on average, and up to 3.6. A few patients respond to neither drug
and do best by waiting; their budget does not bind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, frozen, positive_number
from omg_lab.worlds.base import World, patient, sigmoid, streams

QUALITY = np.array([1.0, 0.7, 0.35, 0.0])
ENROLMENT = np.array([0.0, 0.3, 0.4, 0.3])
DECLINE = np.array([0.1, 0.15, 0.25, 0.35])
RESPONSE_MEANS = np.array([-2.0, -0.5, 1.0])
HARM = np.array([[-2.0, 0.5, 1.0], [0.0, 0.5, 1.0]])


@final
@dataclass(kw_only=True, eq=False)
class SideEffects(World):
    """A mild and a strong drug, and a budget of side effects that forbids the strong one to most.

    Parameters
    ----------
    budget : float
        The expected number of side effects that a treatment may have, positive; 0.8 by default.
    horizon : int
        Number H of visits.
    context_count : int
        Number of patients.
    transition_class_size : int
        Number M of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class, its true member and what the dial moves towards.

    >>> world = SideEffects()
    >>> patient = world.contexts[0]
    >>> bool((world.costs(patient)[0, :, 2] > world.costs(patient)[0, :, 1]).all())
    True
    """

    state_names, action_names = ("well", "mild", "moderate", "severe"), ("wait", "mild drug", "strong drug")
    feature_names, cost_names = ("age", "kidneys"), ("side effects",)

    budget: float = 0.8
    horizon: int = 6
    context_count: int = 4
    transition_class_size: int = 32

    def _draw(self) -> None:
        self.space = Space(states=4, actions=3, horizon=self.horizon, start=ENROLMENT)
        self.budgets = np.array([positive_number("budget", self.budget)])
        for_contexts, for_transitions, outside = streams(self.seed, 3)
        self.contexts = tuple(map(frozen, for_contexts.uniform(-1.0, 1.0, size=(self.context_count, 2))))
        self.transition_index = int(for_transitions.integers(self.transition_class_size))
        intercepts = for_transitions.normal(RESPONSE_MEANS, 0.5, size=(self.transition_class_size, 3))
        weights = for_transitions.normal(size=(self.transition_class_size, 3, 2))
        self._responses = np.concatenate([intercepts[..., None], weights], axis=-1)
        self._interactions = outside.normal(scale=4.0, size=3)

    def costs(self, context: Context) -> FloatArray:
        """Return the expected side effects (1, S, A)."""
        harm = sigmoid(HARM @ patient(context, 2))
        return np.tile(np.concatenate([[0.0], harm]), (1, len(QUALITY), 1))

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (1, S, A), which are known."""
        patient(context, 2)
        return np.tile(QUALITY[:, None], (1, 1, 3))

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) under every hypothesis on the responses."""
        return _transitions(self._responses @ patient(context, 2))

    def _outside_transitions(self, context: Context) -> FloatArray:
        alone = self._responses[self.transition_index] @ patient(context, 2)
        return np.asarray(_transitions((alone + self._interactions * np.prod(context))[None])[0])


def _transitions(log_odds: FloatArray) -> FloatArray:
    """Return the transitions (M, S, A, S) for log-odds (M, A) of a response."""
    response = sigmoid(log_odds)
    tables = np.zeros((len(response), len(QUALITY), 3, len(QUALITY)))
    for stage, decline in enumerate(DECLINE):
        tables[:, stage, :, max(stage - 1, 0)] += response
        tables[:, stage, :, stage] += (1.0 - response) * (1.0 - decline)
        tables[:, stage, :, min(stage + 1, len(QUALITY) - 1)] += (1.0 - response) * decline
    return tables
