"""The arguments that choose a regulariser, checked in one place for the planner and the certificate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp import validation
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray

compiled = Lazy("omg_cmdp.mdp.compiled")

SMALLEST_FLOAT = float(np.nextafter(0.0, 1.0))


def regulariser(
    mdp: TabularMDP,
    gamma: float | None,
    weights: ArrayLike | None,
    uncertainty: ArrayLike | None,
    floor: float,
    least: float = SMALLEST_FLOAT,
) -> tuple[FloatArray, FloatArray, float]:
    """Return u and m of √(u·q) + m·log q, (K, S, A) each, and the factor that turns a gap into the certificate.

    Weights may not be below `least`.
    """
    if (gamma is None) == (uncertainty is None):
        given = "both" if gamma is not None else "neither"
        raise ValueError(f"one of `gamma` and `uncertainty` must be given, got {given}")
    floor = validation.at_least_zero("floor", floor)
    other = np.zeros((1, mdp.space.states, mdp.space.actions))
    if uncertainty is not None:
        if weights is not None:
            raise ValueError("`weights` must come with `gamma`, got them with `uncertainty`")
        if floor != 0.0:
            other.fill(validation.positive_number("floor", floor))
        return _coefficients(mdp, "uncertainty", uncertainty, least=0.0), other, 1.0
    if floor != 0.0:
        raise ValueError(f"`floor` must come with `uncertainty`, got {floor!r} with `gamma`")
    gamma = validation.positive_number("gamma", gamma)
    if weights is None:
        plain = np.empty(other.shape)
        plain.fill(1.0 / gamma)
        return other, plain, gamma
    scaled = _coefficients(mdp, "weights", weights, least=least)
    scaled /= gamma
    return other, scaled, gamma


def _coefficients(mdp: TabularMDP, name: str, value: ArrayLike, *, least: float) -> FloatArray:
    """Return a copy of `value` as (K, S, A); raise unless its entries are finite and at least `least`."""
    table = validation.float_table(name, value)
    step = mdp.admissible.shape
    validation.one_of_shapes(name, table, step, (mdp.horizon, *step))
    coefficients = table if table.ndim == 3 else table[None]
    if not compiled.is_within(coefficients, least, validation.LARGEST_FLOAT):
        validation.in_range(name, table, 0.0, np.inf)
        where = validation.first_index(table == 0.0)
        raise ValueError(f"`{name}` must be positive, got 0.0 at index {where}")
    return coefficients
