"""A trial of two drugs: which of them helps depends on the patient.

A patient enrols and is seen H times. At each visit the doctor finds the stage of the disease and chooses a treatment.
Age, weight, kidneys and heart do not change during the trial, with any treatment; but they determine how likely a drug
is to work and how bad its side effects are. They are the context. As part of the state they would make every patient a
state of their own.

States       0 recovered, 1 mild, 2 moderate, 3 severe, 4 dead. Patients enrol as mild, moderate or severe with
             probabilities .3, .5, .2. Recovered and dead are absorbing, and only waiting is admissible there.
Actions      0 wait, 1 drug A, 2 drug B.
Horizon      H = 6 visits.
Contexts     20 patients x = (age, weight, kidneys, heart), scaled to [-1, 1], uniform.
Transitions  A stage better with probability ρ_a(x), a stage worse with probability (1 - ρ_a(x))·δ, else no change;
             response ρ_a(x) = σ(b_a + v_a·x), decline δ = .15, .25, .35 when mild, moderate, severe.
Rewards      quality·(1 - ½·τ_a(x)), Bernoulli; quality 1, .8, .5, .2, 0 by stage; side effects of a drug
             τ_a(x) = σ(b'_a + v'_a·x), none of waiting.
Class        32 hypotheses on the responses and 32 on the side effects; v and v' normal with deviation 2 around 0, b
             with deviation ¼ around -2, -½, -½, and b' around -1. The truth is one of each.
Dial         towards responses and side effects whose log-odds have products of two features besides, with weights of
             deviation 4: age and weak kidneys together do what neither does alone, and no hypothesis allows for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, frozen
from omg_lab.worlds.base import World, patient, sigmoid, streams

STAGES = ("recovered", "mild", "moderate", "severe", "dead")
TREATMENTS = ("wait", "drug A", "drug B")
FEATURES = ("age", "weight", "kidneys", "heart")

ENROLMENT = np.array([0.0, 0.3, 0.5, 0.2, 0.0])
QUALITY = np.array([1.0, 0.8, 0.5, 0.2, 0.0])
DECLINE = np.array([0.15, 0.25, 0.35])
BURDEN = 0.5
INTERACTION = 4.0
RESPONSE_MEANS = np.array([-2.0, -0.5, -0.5])
SIDE_EFFECT_MEANS = np.array([-1.0, -1.0])
PAIRS = np.triu_indices(len(FEATURES), k=1)


@final
@dataclass(kw_only=True, eq=False)
class TreatmentTrial(World):
    """Patients in five stages of a disease, two drugs, and features that determine response and side effects.

    Parameters
    ----------
    horizon : int
        Number H of visits.
    context_count : int
        Number of patients.
    reward_class_size : int
        Number N of reward functions in the class.
    transition_class_size : int
        Number M of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class, its true member and what the dial moves towards.

    >>> trial = TreatmentTrial()
    >>> trial.space.admissible.sum(axis=1)  # recovered and dead: nothing to choose
    array([1, 3, 3, 3, 1])
    """

    state_names, action_names, feature_names = STAGES, TREATMENTS, FEATURES

    horizon: int = 6
    context_count: int = 20
    reward_class_size: int = 32
    transition_class_size: int = 32

    def _draw(self) -> None:
        admissible = np.ones((len(STAGES), len(TREATMENTS)), dtype=np.bool_)
        admissible[[0, -1], 1:] = False
        states, actions = len(STAGES), len(TREATMENTS)
        self.space = Space(states=states, actions=actions, horizon=self.horizon, start=ENROLMENT, admissible=admissible)
        for_contexts, for_rewards, for_transitions, outside = streams(self.seed, 4)
        drawn = for_contexts.uniform(-1.0, 1.0, size=(self.context_count, len(FEATURES)))
        self.contexts = tuple(map(frozen, drawn))
        self.reward_index = int(for_rewards.integers(self.reward_class_size))
        self.transition_index = int(for_transitions.integers(self.transition_class_size))
        self._side_effects = _hypotheses(for_rewards, SIDE_EFFECT_MEANS, self.reward_class_size)
        self._responses = _hypotheses(for_transitions, RESPONSE_MEANS, self.transition_class_size)
        interactions = outside.normal(scale=INTERACTION, size=(2 * len(TREATMENTS) - 1, len(PAIRS[0])))
        self._side_effect_interactions, self._response_interactions = np.split(interactions, [len(SIDE_EFFECT_MEANS)])

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) under every hypothesis on the side effects."""
        return _rewards(self._side_effects @ patient(context, len(FEATURES)))

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) under every hypothesis on the responses."""
        return _transitions(self._responses @ patient(context, len(FEATURES)))

    def _outside_rewards(self, context: Context) -> FloatArray:
        alone = self._side_effects[self.reward_index] @ patient(context, len(FEATURES))
        together = self._side_effect_interactions @ np.outer(context, context)[PAIRS]
        return np.asarray(_rewards((alone + together)[None])[0])

    def _outside_transitions(self, context: Context) -> FloatArray:
        alone = self._responses[self.transition_index] @ patient(context, len(FEATURES))
        together = self._response_interactions @ np.outer(context, context)[PAIRS]
        return np.asarray(_transitions((alone + together)[None])[0])


def _hypotheses(generator: np.random.Generator, means: FloatArray, count: int) -> FloatArray:
    """Return (count, treatments, 1 + features): an intercept, and the weights of the features."""
    intercepts = generator.normal(means, 0.25, size=(count, len(means)))
    weights = generator.normal(scale=2.0, size=(count, len(means), len(FEATURES)))
    return np.concatenate([intercepts[..., None], weights], axis=-1)


def _rewards(log_odds: FloatArray) -> FloatArray:
    """Return the rewards (N, S, A) for log-odds (N, drugs) of side effects."""
    side_effects = np.pad(sigmoid(log_odds), [(0, 0), (1, 0)])  # waiting has none
    return np.asarray(QUALITY[:, None] * (1.0 - BURDEN * side_effects[:, None, :]))


def _transitions(log_odds: FloatArray) -> FloatArray:
    """Return the transitions (M, S, A, S) for log-odds (M, treatments) of a response."""
    response = sigmoid(log_odds)
    tables = np.zeros((len(response), len(STAGES), len(TREATMENTS), len(STAGES)))
    tables[:, 0, :, 0] = tables[:, -1, :, -1] = 1.0
    for stage, decline in enumerate(DECLINE, start=1):
        tables[:, stage, :, stage - 1] = response
        tables[:, stage, :, stage] = (1.0 - response) * (1.0 - decline)
        tables[:, stage, :, stage + 1] = (1.0 - response) * decline
    return tables
