"""Points of the simplex: which next states are possible, smoothing, Dirichlet, the log barrier."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY, Examples
from omg_cmdp.oracles.memory import check_memory
from omg_cmdp.validation import BoolArray, FloatArray, first_index, one_of_shapes, real_number, typed_array


def support_mask(support: ArrayLike | None, states: int, actions: int) -> BoolArray:
    """Return the boolean mask (S, A, S) of possible transitions; None admits all."""
    if support is None:
        check_memory("a table of transitions", states**2 * actions, "merge states")
        return np.ones((states, actions, states), dtype=np.bool_)
    mask = typed_array("support", support, "b", "a boolean table")
    one_of_shapes("support", mask, (states, actions, states))
    closed = np.asarray(~mask.any(axis=-1))
    if closed.any():
        rule = "leave a next state for every (state, action)"
        raise ValueError(f"`support` must {rule}, got none for {first_index(closed)}")
    return mask


class Smoothing:
    """P → (1-ν)·P + ν·uniform over the support: no transition that can happen has probability zero."""

    def __init__(self, amount: float, support: ArrayLike | None) -> None:
        number = real_number(amount)
        if not 0.0 <= number < 1.0:
            raise ValueError(f"`smoothing` must be a number in [0, 1), got {amount!r:.60}")
        self.amount = float(number)
        self._uniform: FloatArray | None = None
        if support is not None:
            try:
                states, actions, _ = np.shape(support)
            except Exception:  # whatever a foreign object raises
                raise ValueError(f"`support` must have shape (S, A, S), got {support!r:.60}") from None
            # The sizes are those of the support itself until tables come, which are then compared with it.
            mask = support_mask(support, states, actions)
            self._uniform = mask / mask.sum(axis=-1, keepdims=True)

    def __call__(self, tables: FloatArray) -> FloatArray:
        """Return `tables` (..., S, A, S), smoothed."""
        if self.amount == 0.0:
            return tables
        return (1.0 - self.amount) * tables + self.amount * self._target(tables.shape[-3:])

    def examples(self, shape: tuple[int, ...], episode: Examples) -> tuple[float, FloatArray]:
        """Return k and b such that the log loss of smoothed transitions P in the steps seen is -log(k·P + b)."""
        if self.amount == 0.0:
            return 1.0, np.full(len(episode.cells), SMALLEST_PROBABILITY)
        seen = self._target(shape[-3:])[episode.states, episode.actions, episode.outcomes]
        return 1.0 - self.amount, self.amount * seen + SMALLEST_PROBABILITY

    def __str__(self) -> str:
        support = "" if self._uniform is None else f" over {fingerprint(self._uniform)}"
        return f"smoothing {self.amount}{support}"

    def most_loss(self, shape: tuple[int, ...]) -> float:
        """Return the largest difference of log losses in a step, for tables of `shape`, all smoothed.

        Where a support leaves something out, functions may differ by all that ε allows: 345.
        """
        least = 1.0 / shape[-1] if self._uniform is None else float(self._uniform.min())
        return -math.log(self.amount * least + SMALLEST_PROBABILITY)

    def price(self, examples: int) -> float:
        """Return the most that smoothing adds to the log loss of transitions."""
        return -examples * math.log1p(-self.amount)

    def _target(self, shape: tuple[int, ...]) -> FloatArray:
        if self._uniform is None:
            return np.full(shape, 1.0 / shape[-1])
        if self._uniform.shape != shape:
            raise ValueError(f"`support` must have shape {shape}, got {self._uniform.shape}")
        return self._uniform


def dirichlet_divergence(shapes: FloatArray, prediction: FloatArray) -> FloatArray:
    """Return E[D²(θ, P̂)] = 2 - 2·Σ √P̂·E√θ for θ from Dirichlet(shapes), where E√θ_i is a ratio of Gammas.

    `shapes` and `prediction` are (..., S); zero where there is nothing to draw.
    """
    # E√θ_i = [Γ(a_i + ½)/Γ(a_i)]/[Γ(a + ½)/Γ(a)], a the total.
    totals = shapes.sum(axis=-1, keepdims=True)
    roots = np.where(shapes > 0.0, half_rise(np.maximum(shapes, 1e-300)), 0.0) / half_rise(totals)
    return np.asarray(2.0 - 2.0 * (np.sqrt(prediction) * roots).sum(axis=-1))


def half_rise(a: FloatArray) -> FloatArray:
    """Return Γ(a + ½)/Γ(a) for a > 0: by log Γ below 100, and above, where that loses digits, by Stirling's series.

    >>> half_rise(np.array([0.5, 1e8])) / np.sqrt([1 / math.pi, 1e8 - 0.25])  # Γ(1)/Γ(½), and the limit √(a - ¼)
    array([1., 1.])
    """
    from scipy.special import poch  # imported with the first use: the package's import stays light

    x = 1.0 / np.maximum(a, 100.0)
    series = 1.0 + x * (-1 / 8 + x * (1 / 128 + x * (5 / 1024 + x * (-21 / 32768 - x * 399 / 262144))))
    return np.where(a < 100.0, poch(np.minimum(a, 100.0), 0.5), np.sqrt(1.0 / x) * series)


def barrier_leader(gains: FloatArray, rate: FloatArray | float) -> FloatArray:
    """Return the maximiser of ⟨gains, w⟩ + (1/rate)·Σ log w over simplices along the last axis; 0 where a gain is -inf.

    w_i = 1/(rate·(μ - gain_i)), with μ such that they sum to one. Newton's method on 1/Σ(μ - gain)⁻¹ = 1/rate, which
    is concave and increasing: from the left it climbs to the root without overshooting. Each simplex stops on
    its own, so that its bits do not depend on the others.

    >>> barrier_leader(np.array([0.0, 0.0, -np.inf]), 0.5)
    array([0.5, 0.5, 0. ])
    """
    rate = np.asarray(rate)[..., None]
    behind = gains.max(axis=-1, keepdims=True) - gains
    # A point left of the root: there the largest weight alone would be one.
    lead = np.broadcast_to(1.0 / rate, (*gains.shape[:-1], 1))
    climbing = np.ones(lead.shape, dtype=np.bool_)
    for _ in range(60):
        terms = 1.0 / (lead + behind)
        total = terms.sum(axis=-1, keepdims=True)
        step = (total / rate - 1.0) * total / (terms**2).sum(axis=-1, keepdims=True)
        climbing = climbing & (step > 1e-14 * lead)
        if not climbing.any():
            break
        lead = np.where(climbing, lead + step, lead)
    weights = 1.0 / (lead + behind)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def barrier_bound(episodes: int, groups: int, coordinates: int) -> float:
    """Return G·[2DL + L·√(D(1 + T/G)) + 1.6·√(D·T/G)] + 1, L = log(T + 1): docs/oracles.md, Theorem 5."""
    growth, share = math.log1p(episodes), episodes / groups
    regulariser = 2.0 * coordinates * growth + growth * math.sqrt(coordinates * (1.0 + share))
    return groups * (regulariser + 1.6 * math.sqrt(coordinates * share)) + 1.0
