"""ICU-Sepsis in small: the same patients, tilts and rewards, with 33 states and 4 actions in place of 716 and 25.

For studies: an episode takes milliseconds. What holds for `ICUSepsis` holds here: semi-synthetic, no clinical claim.

States       30 groups of conditions, then death, survival and the end. The clusters are cut into sixths by their SOFA
             score, and each sixth into fifths by lactate. Starts are summed.
Actions      4, action 2i + j: little or much of fluids, levels 0, 1 or 2, 3, 4; vasopressors or none. Admissible where
             it is in a cluster of the group.
Horizon      H = 10.
Contexts     12 patients c = (age, urea nitrogen, lactate), scaled to [-1, 1], uniform.
Transitions  The mean of the published rows that a group and an action stand for, weighted by how often they are met if
             actions are drawn uniformly for 10 steps; then tilted by the patient as in `ICUSepsis`, φ being the mean
             centre of a group, standardised over the groups.
Rewards      1 for the step spent in the state of survival, else 0; known. An episode earns 1 at most.
Class        8 hypotheses, as in `ICUSepsis`: rotated patients, one of them not rotated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import KEPT_BYTES
from omg_cmdp.validation import FloatArray
from omg_lab.data.icu_sepsis import DEATH, FEATURES, ICUSepsis, Tables, tables

SOFA_BANDS, LACTATE_BANDS = 6, 5
STEPS = 10
MUCH_FLUID, ANY_VASOPRESSOR = 2, 1
"""The levels from which on a dose counts as the higher one of two."""


@final
@dataclass(kw_only=True, eq=False)
class ReducedSepsis(ICUSepsis):
    """The tables of ICU-Sepsis in 30 groups and four actions; needs the extra `icu-sepsis`.

    Parameters
    ----------
    transition_class_size : int
        Number M of rotated patients in the class; 8 by default.
    horizon, context_count, tilt, outcome_tilt, misspecification, seed
        As for `ICUSepsis`.

    >>> world = ReducedSepsis(context_count=2)  # doctest: +SKIP
    >>> world.space.states, world.space.actions  # doctest: +SKIP
    (33, 4)
    """

    transition_class_size: int = 8

    kept_bytes = KEPT_BYTES

    def _draw(self) -> None:
        super()._draw()
        possible = self._rows > 0.0
        self.support = possible[self._row_of]

    def _tables(self) -> Tables:
        return reduced(tables())


def reduced(full: Tables) -> Tables:
    """Return the tables in groups of states and of actions.

    With weights w(s, a), P(g'|g, b) = Σ w(s, a)·P(g'|s, a)/Σ w(s, a) over the s of g and the a of b.
    """
    member, choice = np.eye(SOFA_BANDS * LACTATE_BANDS + 3)[groups(full)], np.eye(4)[doses(full.admissible.shape[1])]
    weights = visits(full)[:, None] * full.admissible / full.admissible.sum(axis=1, keepdims=True)
    mass = member.T @ weights @ choice
    flow = np.einsum("sg,sa,ab,sat,th->gbh", member, weights, choice, full.transitions, member, optimize=True)
    admissible = mass > 0.0
    table = np.divide(flow, mass[..., None], out=np.zeros_like(flow), where=admissible[..., None])
    table /= np.where(admissible, table.sum(axis=-1), 1.0)[..., None]
    table[..., -1] += ~admissible  # rows that nobody may use lead to the end
    shares = member * visits(full)[:, None]
    centres, sofa = (shares.T @ table / shares.sum(axis=0)[:, None] for table in (full.centres, full.sofa[:, None]))
    return Tables(table, full.start @ member, admissible, centres, sofa[:, 0])


def groups(full: Tables) -> NDArray[np.int64]:
    """Return the group of every state, (S,); the last three keep places of their own."""
    found = np.empty(len(full.sofa), dtype=np.int64)
    lactate = full.centres[:, FEATURES["lactate"]]
    by_score = np.argsort(full.sofa[:DEATH], kind="stable")
    for score, band in enumerate(np.array_split(by_score, SOFA_BANDS)):
        by_lactate = band[np.argsort(lactate[band], kind="stable")]
        for place, group in enumerate(np.array_split(by_lactate, LACTATE_BANDS)):
            found[group] = LACTATE_BANDS * score + place
    found[DEATH:] = SOFA_BANDS * LACTATE_BANDS + np.arange(3)
    return found


def doses(actions: int) -> NDArray[np.int64]:
    """Return the action, in 0..3, that every published one becomes, (A,)."""
    levels = round(actions**0.5)
    fluids, vasopressors = np.divmod(np.arange(actions), levels)
    return np.asarray(2 * (fluids >= MUCH_FLUID) + (vasopressors >= ANY_VASOPRESSOR), dtype=np.int64)


def visits(full: Tables) -> FloatArray:
    """Return how often every state is met in ten steps, (S,), if admissible actions are drawn uniformly."""
    uniform = full.admissible / full.admissible.sum(axis=1, keepdims=True)
    table, here, total = np.einsum("sa,sat->st", uniform, full.transitions), full.start, np.zeros(len(full.start))
    for _ in range(STEPS):
        total, here = total + here, here @ table
    return total
