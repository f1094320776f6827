"""The arguments that choose a regulariser, checked once for the planner and the certificate alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp import validation
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray

LOG, ROOT = 0, 1


def regulariser(
    mdp: TabularMDP, gamma: float | None, weights: ArrayLike | None, uncertainty: ArrayLike | None
) -> tuple[int, FloatArray, float]:
    """Return kind, coefficients (K, S, A), and what turns a gap into the certificate."""
    if (gamma is None) == (uncertainty is None):
        given = "both" if gamma is not None else "neither"
        raise ValueError(f"one of `gamma` and `uncertainty` must be given, got {given}")
    if uncertainty is not None:
        if weights is not None:
            raise ValueError("`weights` must come with `gamma`, got them with `uncertainty`")
        return ROOT, _coefficients(mdp, "uncertainty", uncertainty), 1.0
    gamma = validation.positive_number("gamma", gamma)
    if weights is None:
        plain = np.empty((1, *mdp.admissible.shape))
        plain.fill(1.0 / gamma)
        return LOG, plain, gamma
    return LOG, _coefficients(mdp, "weights", weights) / gamma, gamma


def _coefficients(mdp: TabularMDP, name: str, value: ArrayLike) -> FloatArray:
    table = validation.float_table(name, value)
    step = (mdp.states, mdp.actions)
    validation.one_of_shapes(name, table, step, (mdp.horizon, *step))
    validation.in_range(name, table, 0.0, np.inf)
    if name == "weights" and not table.all():
        where = validation.first_index(table == 0.0)
        raise ValueError(f"`weights` must be positive, got 0.0 at index {where}")
    return table.reshape(-1, *step)
