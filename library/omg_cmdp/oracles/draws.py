"""Draws of tables: from weights, from Dirichlet distributions, and around a prediction whose uncertainty is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.jit import Lazy
from omg_cmdp.validation import FloatArray

compiled = Lazy("omg_cmdp.oracles.compiled.draws")

AT_ONCE = 2**20
"""The number of random variates that are held in memory at a time."""

SMALLEST_SHAPE = 1e-300
NARROWEST, WIDEST = 1e12, 1e-3
"""The largest and the smallest total of a Dirichlet distribution around a prediction: a point, and corners."""


def resample(weights: FloatArray, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return `count` indices for `weights` (N,), or (G, count) for (G, N): i about count·wᵢ/Σw times, in random order.

    Systematic resampling. Each index has the law of an independent draw, and i comes ⌊count·wᵢ/Σw⌋ or ⌈count·wᵢ/Σw⌉
    times, so that means over the draws vary far less. The order keeps the draws of two oracles from being paired.

    >>> sorted(resample(np.array([0.25, 0.0, 0.75]), 4, np.random.default_rng(0)).tolist())
    [0, 2, 2, 2]
    """
    shape = (*weights.shape[:-1], count)
    drawn = np.empty(shape, dtype=np.int64)
    uniforms = generator.random(shape)
    compiled.systematic(weights.reshape(-1, weights.shape[-1]), uniforms.reshape(-1, count), drawn.reshape(-1, count))
    return drawn


def draw_rows(shapes: FloatArray, drawn: FloatArray, generator: np.random.Generator) -> None:
    """Fill each table of `drawn` (K, ..., S) with rows from Dirichlet(shapes), `shapes` (..., S).

    Where a shape is zero nothing is drawn, and nothing is changed: give zeros, or rows that stay as they are.
    """
    flat = drawn.reshape(len(drawn), -1)
    places = np.flatnonzero(shapes)
    found = np.maximum(shapes.reshape(-1)[places], SMALLEST_SHAPE)
    step = max(1, AT_ONCE // max(1, len(places)))
    for first in range(0, len(flat), step):
        part = flat[first : first + step]
        # Gamma(a) = Gamma(a + 1)·U^(1/a): for small a the direct draw would underflow to zero.
        gammas = generator.standard_gamma(found + 1.0, (len(part), len(found)))
        exponentials = generator.standard_exponential(gammas.shape)
        compiled.dirichlet(gammas, exponentials, found, places, shapes.shape[-1], part)


def draw_dirichlet(shapes: FloatArray, count: int, generator: np.random.Generator) -> FloatArray:
    """Return (count, ..., S): rows from Dirichlet(shapes), zero where a shape is zero."""
    drawn = np.zeros((count, *shapes.shape))
    draw_rows(shapes, drawn, generator)
    return drawn


def rewards_around(
    prediction: FloatArray, uncertainty: FloatArray, count: int, generator: np.random.Generator
) -> FloatArray:
    """Return (count, ...): N(f̂, u) for each pair, cut to [0, 1]. `uncertainty` may be without steps.

    >>> rewards_around(np.array([[0.5, 0.5]]), np.array([[0.0, 100.0]]), 2, np.random.default_rng(0))
    array([[[0.5, 0. ]],
    <BLANKLINE>
           [[0.5, 1. ]]])
    """
    drawn = prediction + np.sqrt(uncertainty) * generator.standard_normal((count, *np.shape(prediction)))
    return np.clip(drawn, 0.0, 1.0, out=drawn)


def rows_around(
    prediction: FloatArray, uncertainty: FloatArray, count: int, generator: np.random.Generator
) -> FloatArray:
    """Return (count, ...): rows from Dirichlet(α·P̂), α = (k-1)/(4u) - 1, where P̂ leads to k next states.

    Then E[D²] ≈ ¼·Σ Var/P̂ = u. If u = 0 or k = 1, the row is that of P̂.
    """
    prediction = np.asarray(prediction, dtype=np.float64)
    freedoms = (prediction > 0.0).sum(axis=-1) - 1.0
    # Far outside these limits Dirichlet draws are a point or a corner in double precision anyway.
    totals = np.clip(0.25 * freedoms / np.maximum(uncertainty, 1e-300) - 1.0, WIDEST, NARROWEST)
    moving = (freedoms > 0.0) & (np.asarray(uncertainty) > 0.0)
    drawn = np.repeat(prediction[None], count, axis=0)
    draw_rows(np.where(moving, totals, 0.0)[..., None] * prediction, drawn, generator)
    return drawn


def draws_of_parts(
    indices: NDArray[np.int64], shape: tuple[int, ...], draws: Callable[[int, int], FloatArray]
) -> FloatArray:
    """Return (K, *shape): for each of `indices` (K,) a table of that part; `draws(part, n)` are n tables of a part."""
    drawn = np.empty((len(indices), *shape))
    for part in np.unique(indices).tolist():
        places = np.flatnonzero(indices == part)
        # One call for each part: many tables at once cost far less than one by one.
        drawn[places] = draws(part, len(places))
    return drawn
