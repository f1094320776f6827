"""The arguments that choose a regulariser, checked in one place for the planner and the certificate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp import validation
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.solver.kinds import LOG, ROOT
from omg_cmdp.validation import FloatArray

kernels = Lazy("omg_cmdp.mdp.kernels")

SMALLEST_FLOAT = float(np.nextafter(0.0, 1.0))


def regulariser(
    mdp: TabularMDP, gamma: float | None, weights: ArrayLike | None, uncertainty: ArrayLike | None
) -> tuple[int, FloatArray, float]:
    """Return the kind, its coefficients (K, S, A), and the factor that turns a gap into the certificate."""
    if (gamma is None) == (uncertainty is None):
        given = "both" if gamma is not None else "neither"
        raise ValueError(f"one of `gamma` and `uncertainty` must be given, got {given}")
    if uncertainty is not None:
        if weights is not None:
            raise ValueError("`weights` must come with `gamma`, got them with `uncertainty`")
        return ROOT, _coefficients(mdp, "uncertainty", uncertainty, least=0.0), 1.0
    gamma = validation.positive_number("gamma", gamma)
    if weights is None:
        plain = np.empty((1, *mdp.admissible.shape))
        plain.fill(1.0 / gamma)
        return LOG, plain, gamma
    scaled = _coefficients(mdp, "weights", weights, least=SMALLEST_FLOAT)
    scaled /= gamma
    return LOG, scaled, gamma


def _coefficients(mdp: TabularMDP, name: str, value: ArrayLike, *, least: float) -> FloatArray:
    """Return a copy of `value` as (K, S, A); raise unless its entries are finite and at least `least`."""
    table = validation.float_table(name, value)
    step = mdp.admissible.shape
    validation.one_of_shapes(name, table, step, (mdp.horizon, *step))
    coefficients = table if table.ndim == 3 else table[None]
    if not kernels.is_within(coefficients, least, validation.LARGEST_FLOAT):
        validation.in_range(name, table, 0.0, np.inf)
        where = validation.first_index(table == 0.0)
        raise ValueError(f"`{name}` must be positive, got 0.0 at index {where}")
    return coefficients
