"""ICU-Sepsis, made contextual: the published tables at full size, tilted by features of the patient.

No patient data, and no clinical claim. The tables are those of ICU-Sepsis (Choudhary, Gupta and Thomas, 2024; package
`icu-sepsis`), estimated by its authors from records of intensive care. How patients differ is invented here: the tilts
below are semi-synthetic, and no patient was observed to follow them.

States       716: clusters of conditions 0..712, then 713 death, 714 survival, 715 the end. The start is the tables'.
Actions      25, action 5i + j for level i of fluids and j of vasopressors; admissible where the tables' authors saw
             them often enough, 3.1 on average; in 713..715 only action 0.
Horizon      H = 10 steps of four hours; by the last one 70 % of the patients have died or survived if
             actions are drawn at random, 79 % under the best policies.
Contexts     12 patients c = (age, urea nitrogen, lactate), scaled to [-1, 1], uniform.
Transitions  P_c(s'|s,a) ∝ P(s'|s,a)·exp(β·c·φ(s')), β = ½: a patient with a high lactate tends to conditions of high
             lactate. φ(s') is the centre of the cluster in the three features, standardised, clipped to ±3.
Outcomes     Death becomes more likely by exp(η·c·ψ(a)), survival less by the same factor, η = 1. ψ(a) = (1, fluids,
             -vasopressors), levels scaled to [-1, 1]: age, weak kidneys that get fluids, a high lactate without
             vasopressors.
Rewards      1 for the step spent in state 714, else 0; known. A value is the probability to survive within H - 1 steps.
Class        4 hypotheses on how the features act: R·c in place of c, for orthogonal matrices R. One of them is the
             identity, and the truth. All are softmax in c around the known P, so that `SoftmaxDynamics` with
             `base=tables().transitions`, their `support` and `feature_norm=√3` holds the truth as well; its weights
             have norm 10.2 at most, which `weight_norm` has to allow if the oracle's bound is to hold.

The package does not name the 47 features of a centre. Their order is taken to be that of the AI Clinician (Komorowski
et al., 2018), from whose code the clusters come: 4 binary, 32 normal and 11 log-normal ones, so that age, lactate and
urea nitrogen are features 4, 30 and 37. One feature can be checked, and is where it should be: 31 is the SOFA score.
The rest fits: urea nitrogen has its closest partner in creatinine, feature 38, and where much fluid was given, feature
44, or vasopressors, feature 2, the admissible actions have high levels of it.

A table has 12.8 million entries, 100 MB: the class is evaluated for one context at a time, and the truth is kept for
the 16 contexts used last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import BoolArray, FloatArray, frozen, positive_number
from omg_lab.data.packaged import packaged_file
from omg_lab.worlds.base import World, streams, vector

FEATURES = {"age": 4, "urea nitrogen": 37, "lactate": 30}
"""The context's features, and their place among the 47 of a cluster's centre."""

DEATH, SURVIVAL = -3, -2
"""The places of these states, from the end; the last one is the end of the stay."""

FURTHEST = 3.0


class Tables(NamedTuple):
    """What the package publishes."""

    transitions: FloatArray
    """(716, 25, 716)."""
    start: FloatArray
    """(716,)."""
    admissible: BoolArray
    """(716, 25)."""
    centres: FloatArray
    """(716, 47), standardised features of each cluster; zero for the last three states."""
    sofa: FloatArray
    """(716,), the clusters' SOFA scores."""


def tables() -> Tables:
    """Return the tables from the files of the package `icu-sepsis`.

    The package itself is not imported: it would pull in the legacy `gym`.
    """
    dynamics, actions_seen = (
        packaged_file("icu-sepsis", name, extra="icu-sepsis") for name in ("dynamics.npz", "admissible_actions.txt")
    )
    with np.load(dynamics, allow_pickle=False) as arrays:
        transitions, start = arrays["tx_mat"], arrays["d_0"]
        centres, sofa = arrays["state_cluster_centers"], arrays["sofa_scores"]
    admissible = np.zeros(transitions.shape[:2], dtype=np.bool_)
    # The first line counts the actions of each state, each further line lists those of one.
    _, *lists = actions_seen.read_text(encoding="ascii").splitlines()
    for state, actions in enumerate(lists):
        admissible[state, [int(action) for action in actions.split()]] = True
    return Tables(transitions, start, admissible, centres, sofa)


@dataclass(kw_only=True, eq=False)
class ICUSepsis(World):
    """The tables of ICU-Sepsis, tilted by three features of a patient; needs the extra `icu-sepsis`.

    Parameters
    ----------
    horizon : int
        The size H.
    context_count : int
        Number of patients.
    tilt : float
        How much a patient's features tilt the moves between conditions.
    outcome_tilt : float
        How much doses tilt death against survival.
    transition_class_size : int
        Number M of rotated patients in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> world = ICUSepsis(context_count=2)  # doctest: +SKIP
    >>> world.space.states, world.space.actions  # doctest: +SKIP
    (716, 25)
    """

    package = "icu-sepsis"
    kept_bytes = 2**31  # twenty patients
    return_range = (0.0, 1.0)

    horizon: int = 10
    context_count: int = 12
    tilt: float = 0.5
    outcome_tilt: float = 1.0
    transition_class_size: int = 4

    def _draw(self) -> None:
        published, hypotheses = self._tables(), self.transition_class_size
        admissible = published.admissible
        admissible[DEATH:, 1:] = False
        (states, actions), start = admissible.shape, published.start
        self.space = Space(states=states, actions=actions, horizon=self.horizon, start=start, admissible=admissible)
        for_contexts, for_transitions = streams(self.seed, 2)
        drawn = for_contexts.uniform(-1.0, 1.0, size=(self.context_count, len(FEATURES)))
        self.contexts = tuple(map(frozen, drawn))
        self.tilt = positive_number("tilt", self.tilt)
        self.outcome_tilt = positive_number("outcome_tilt", self.outcome_tilt)
        self.transition_index = int(for_transitions.integers(hypotheses))
        self._rotations = _rotations(for_transitions, hypotheses)
        self._rotations[self.transition_index] = np.eye(len(FEATURES))
        # Only admissible rows are tilted; the others are never used, and repeat the first admissible row of the state.
        borrowed = np.where(admissible, np.arange(actions), admissible.argmax(axis=1)[:, None])
        numbers = admissible.cumsum().reshape(admissible.shape) - 1
        self._row_of = np.take_along_axis(numbers, borrowed, axis=1)
        self._rows = published.transitions[admissible]
        self._features = _features(published.centres)
        self._doses = _doses(np.nonzero(admissible)[1], levels=math.isqrt(actions))

    def _tables(self) -> Tables:
        return tables()

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (1, S, A), which are known: 1 for survival."""
        vector(context, len(FEATURES))
        rewards = np.zeros((1, self.space.states, self.space.actions))
        rewards[:, SURVIVAL] = 1.0
        return rewards

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the tilted transitions (M, S, A, S) under every hypothesis, 100 MB each at full size."""
        patient = vector(context, len(FEATURES))
        tables = np.empty((len(self._rotations), *self._row_of.shape, self.space.states))
        for table, rotation in zip(tables, self._rotations, strict=True):
            table[:] = self._tilted(rotation @ patient)
        return tables

    def _transition_member(self, context: Context) -> FloatArray:
        return self._tilted(vector(context, len(FEATURES)))

    def _tilted(self, patient: FloatArray) -> FloatArray:
        """Return the transitions (S, A, S) of a patient (d,)."""
        rows = self._rows * np.exp(self.tilt * (self._features @ patient))
        toll = np.exp(self.outcome_tilt * (self._doses @ patient))
        rows[:, DEATH] *= toll
        rows[:, SURVIVAL] /= toll
        rows /= rows.sum(axis=1, keepdims=True)
        return np.asarray(rows[self._row_of])


def _features(centres: FloatArray) -> FloatArray:
    """Return φ (S, 3); zero for the last three states."""
    features = np.zeros((len(centres), len(FEATURES)))
    clusters = centres[:DEATH, list(FEATURES.values())]
    features[:DEATH] = (clusters - clusters.mean(axis=0)) / clusters.std(axis=0)
    return np.clip(features, -FURTHEST, FURTHEST)


def _doses(actions: NDArray[np.int64], levels: int) -> FloatArray:
    """Return ψ (n, 3) of n actions, i·levels + j for level i of fluids and j of vasopressors."""
    fluids, vasopressors = actions // levels, actions % levels
    middle = (levels - 1) / 2
    return np.stack([np.ones(len(actions)), fluids / middle - 1.0, 1.0 - vasopressors / middle], axis=1)


def _rotations(generator: np.random.Generator, count: int) -> FloatArray:
    """Return orthogonal matrices (count, 3, 3), drawn uniformly."""
    q, r = np.linalg.qr(generator.normal(size=(count, len(FEATURES), len(FEATURES))))
    return np.asarray(q * np.sign(np.einsum("nii->ni", r))[:, None, :])
