"""Square loss and log loss, both of which are *mixable*.

A loss ℓ is η-mixable if for all forecasts f_1..f_N and weights w there is one forecast f̂ with

    ℓ(f̂, y) <= -(1/η)·log Σ w_i·exp(-η·ℓ(f_i, y))     for every outcome y.

Square loss on [0, 1] is 2-mixable, by Vovk's substitution f̂ = ½ + (g(0) - g(1))/2, g(y) the right side above; log loss
is 1-mixable, by the mean (Vovk 1990, 1998). Log loss is -log(P + ε) here, with ε = 1e-150: finite where a forecast is
zero, and mixable all the same, because exp(-ℓ) = P + ε is affine in P. Cut off, -log max(P, ε), it is not: the maximum
of the mean is below the mean of the maxima (docs/oracles.md, *What a forecast excludes*).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.base import DynamicsOracle, Oracle, RewardOracle
from omg_cmdp.oracles.draws import rewards_around, rows_around
from omg_cmdp.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    distributions,
    float_table,
    in_range,
    indices,
    integer_vector,
)

compiled = Lazy("omg_cmdp.oracles.compiled.losses")

# Compared with on every update: made once.
_INTEGERS, _REALS = np.dtype(np.int64), np.dtype(np.float64)

SMALLEST_PROBABILITY = 1e-150
"""The ε of log loss: a transition that a forecast excludes costs 345, and above 1e-134 no double holds P + ε ≠ P."""


class Examples(NamedTuple):
    """One checked episode of L examples, 1 <= L <= H."""

    states: IntArray
    actions: IntArray
    outcomes: NDArray[Any]
    """Rewards, or next states."""
    pairs: IntArray
    """The places of the examples in a flattened table over (S, A) or (H, S, A)."""
    cells: IntArray
    """The places of the examples in a flattened table of forecasts: the pair, and for transitions the next state."""


class _Mixable:
    """The part that both losses share: the aggregate of forecasts, at a rate of at most `rate`."""

    rate: ClassVar[float]
    """The largest η at which the loss is mixable."""

    def aggregate(self, losses: FloatArray, rate: float, forecasts: FloatArray) -> FloatArray:
        """Return one table (...) for K `forecasts` (K, ...) with weights ∝ exp(-rate·losses).

        >>> SQUARE.aggregate(np.zeros(2), 2.0, np.array([[0.0, 0.3], [1.0, 0.3]])).round(12)
        array([0.5, 0.3])
        """
        if len(losses) == 1:
            return np.array(forecasts[0])
        aggregate = np.empty(forecasts.shape[1:])
        # By the class, not by `self is SQUARE`: a copied oracle has a loss that is another object.
        squares = isinstance(self, SquareLoss)
        compiled.aggregate(losses, rate, np.ascontiguousarray(forecasts), squares, aggregate)
        return aggregate


class SquareLoss(_Mixable):
    """ℓ(f, y) = (f - y)², both in [0, 1]; forecasts are aggregated by Vovk's substitution."""

    rate, judges, outcome = 2.0, RewardOracle, "rewards"
    draws = staticmethod(rewards_around)

    def charge(self, losses: FloatArray, rate: float, forecasts: FloatArray, episode: Examples) -> float:
        """Add Σ (f - r)² of each of K `forecasts` in the episode to `losses`; return the loss of their aggregate."""
        tables = np.ascontiguousarray(forecasts)
        return float(compiled.charge_square(losses, rate, tables, episode.cells, episode.outcomes))

    def divergence(self, truth: FloatArray, forecast: FloatArray) -> FloatArray:
        """Return (f* - f̂)², (..., S, A)."""
        return np.asarray((truth - forecast) ** 2)

    def check_tables(self, name: str, tables: FloatArray) -> None:
        """Raise unless `tables` are (N, S, A) or (N, H, S, A), in [0, 1]."""
        if tables.ndim not in (3, 4) or tables.size == 0:
            raise ValueError(f"`{name}` must return shape (N, S, A) or (N, H, S, A), got {tables.shape}")
        in_range(name, tables, 0.0, 1.0)

    def pairs(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return (S, A) or (H, S, A) of a table of `shape`: the shape itself."""
        return shape

    def place(
        self, shape: tuple[int, ...], horizon: int, visited: IntArray, taken: IntArray, earned: NDArray[Any]
    ) -> Examples:
        """Return the episode of vectors that fit each other, and its places in a table of `shape`."""
        pairs = np.empty(len(visited), dtype=_INTEGERS)
        if not compiled.read_rewards(visited, taken, earned, *_sizes(shape, horizon), pairs):
            indices("states", visited, shape[-2])
            indices("actions", taken, shape[-1])
            bad = next(r for r in earned.tolist() if not 0.0 <= r <= 1.0)
            raise ValueError(f"`rewards` must lie in [0, 1], got {bad}")
        return Examples(visited, taken, earned, pairs, pairs)


class LogLoss(_Mixable):
    """ℓ(P, s') = -log(P(s') + ε), ε = `SMALLEST_PROBABILITY`; forecasts are aggregated by their mean."""

    rate, judges, outcome = 1.0, DynamicsOracle, "next_states"
    draws = staticmethod(rows_around)

    def charge(self, losses: FloatArray, rate: float, forecasts: FloatArray, episode: Examples) -> float:
        """Charge -Σ log(P + ε)."""
        tables = np.ascontiguousarray(forecasts)
        return float(compiled.charge_log(losses, rate, tables, episode.cells, SMALLEST_PROBABILITY))

    def divergence(self, truth: FloatArray, forecast: FloatArray) -> FloatArray:
        """Return D² = Σ (√P* - √P̂)² over next states, (..., S, A)."""
        return np.asarray(((np.sqrt(truth) - np.sqrt(forecast)) ** 2).sum(axis=-1))

    def check_tables(self, name: str, tables: FloatArray) -> None:
        """Raise unless `tables` are (N, S, A, S) or (N, H, S, A, S), rows on the simplex."""
        if tables.ndim not in (4, 5) or tables.shape[-1] != tables.shape[-3] or tables.size == 0:
            raise ValueError(f"`{name}` must return shape (N, S, A, S) or (N, H, S, A, S), got {tables.shape}")
        distributions(name, tables)

    def pairs(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return (S, A) or (H, S, A) of a table of `shape`: without the next state."""
        return shape[:-1]

    def place(
        self, shape: tuple[int, ...], horizon: int, visited: IntArray, taken: IntArray, reached: NDArray[Any]
    ) -> Examples:
        """Return the episode of vectors that fit each other, and its places in a table of `shape`."""
        pairs, cells = np.empty(len(visited), dtype=_INTEGERS), np.empty(len(visited), dtype=_INTEGERS)
        if not compiled.read_transitions(visited, taken, reached, *_sizes(shape[:-1], horizon), pairs, cells):
            indices("states", visited, shape[-3])
            indices("actions", taken, shape[-2])
            indices("next_states", reached, shape[-1])
        return Examples(visited, taken, reached, pairs, cells)


Loss = SquareLoss | LogLoss
SQUARE, LOG = SquareLoss(), LogLoss()


def loss_of(oracle: Oracle) -> Loss:
    """Return the loss by which an oracle is judged."""
    if isinstance(oracle, SQUARE.judges):
        return SQUARE
    if isinstance(oracle, LOG.judges):
        return LOG
    raise ValueError(f"`oracle` must be a RewardOracle or a DynamicsOracle, got {type(oracle).__name__}")


def exponential_weights(losses: FloatArray, rate: float | FloatArray) -> FloatArray:
    """Return w ∝ exp(-rate·losses) along the last axis, none below e⁻⁷⁰⁰ of the largest: none is lost for good."""
    weights = np.exp(np.maximum(-rate * (losses - losses.min(axis=-1, keepdims=True)), -700.0))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _sizes(shape: tuple[int, ...], horizon: int) -> tuple[int, ...]:
    """Return (steps, S, A) of a table over `shape`, (S, A) or (H, S, A)."""
    if len(shape) == 2:
        return 1, *shape
    if shape[0] != horizon:
        raise ValueError(f"`horizon` must be the number of steps of the tables, {shape[0]}, got {horizon}")
    return shape


def refuse_impossible(possible: BoolArray, states: IntArray, actions: IntArray, reached: IntArray) -> None:
    """Raise if one of the transitions is not among the `possible` (S, A, S)."""
    can = possible[states, actions, reached]
    if not can.all():
        state, action, excluded = (int(each[~can][0]) for each in (states, actions, reached))
        rule = f"lie in `support`, which excludes {excluded} after action {action} in state {state}"
        raise ValueError(f"`next_states` must {rule}; correct the episode, or the support")


def read_episode(
    loss: Loss, shape: tuple[int, ...], horizon: int, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike
) -> Examples:
    """Return the episode of a caller's vectors, as copies that are checked against a table of `shape`."""
    found: list[NDArray[Any]] = []
    for name, values in (("states", states), ("actions", actions), (loss.outcome, outcomes)):
        dtype, convert = (_REALS, float_table) if name == "rewards" else (_INTEGERS, integer_vector)
        # The usual case, without the cost of a conversion; a copy, because callers may reuse their arrays.
        fits = type(values) is np.ndarray and values.dtype == dtype and values.ndim == 1
        found.append(values.copy() if fits else convert(name, values))  # type: ignore[union-attr]
    shapes = [values.shape for values in found]
    if len(set(shapes)) > 1 or not 1 <= len(found[0]) <= horizon:
        rule = f"have one entry each per step of the episode, 1 to {horizon}"
        raise ValueError(f"`states`, `actions` and `{loss.outcome}` must {rule}, got shapes {shapes}")
    return loss.place(shape, horizon, *found)
