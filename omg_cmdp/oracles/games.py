"""The two prediction games, square loss and log loss, with what makes them easy: both are *mixable*.

A loss ℓ is η-mixable if for all forecasts f_1..f_N and weights w there is one forecast f̂ with

    ℓ(f̂, y) <= -(1/η)·log Σ w_i·exp(-η·ℓ(f_i, y))     for every outcome y.

Square loss on [0, 1] is 2-mixable, by Vovk's substitution; log loss is 1-mixable, by the mean (Vovk 1990, 1998).
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.validation import FloatArray, distributions, float_table, in_range

IntArray = NDArray[np.intp]
Outcomes = TypeVar("Outcomes", FloatArray, IntArray)

SMALLEST_PROBABILITY = 1e-300
"""Log loss is cut off here (at 691): a transition that a model excludes costs much, but the oracle goes on."""


class Episode(NamedTuple, Generic[Outcomes]):
    """One checked episode: where in a table its H examples are, and what came out."""

    cells: tuple[Any, ...]
    """(states, actions), after (steps,) if tables depend on the step."""
    outcomes: Outcomes
    """Rewards, or next states."""


class Game(abc.ABC, Generic[Outcomes]):
    """A mixable loss between tables of forecasts and the outcomes of an episode."""

    rate: ClassVar[float]
    """The largest η at which the loss is mixable."""

    @abc.abstractmethod
    def aggregate(self, weights: FloatArray, forecasts: FloatArray) -> FloatArray:
        """Return the one forecast (...) that does as well as the `forecasts` (N, ...) under `weights` (N,)."""

    @abc.abstractmethod
    def examples(self, tables: FloatArray, episode: Episode[Outcomes]) -> FloatArray:
        """Return (N, H): what each of `tables` (N, ...) forecast at the examples (log loss: for what came out)."""

    @abc.abstractmethod
    def losses(self, examples: FloatArray, episode: Episode[Outcomes]) -> FloatArray:
        """Return the total loss over the last axis of `examples`."""

    @abc.abstractmethod
    def divergence(self, truth: FloatArray, forecast: FloatArray) -> FloatArray:
        """Return (..., S, A): what the agent pays for, (f* - f̂)² or D²(P*, P̂)."""

    @abc.abstractmethod
    def check_tables(self, name: str, tables: FloatArray) -> None:
        """Raise unless `tables` (N, ...) are tables of this game, stationary or step-dependent."""

    @abc.abstractmethod
    def pairs(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return (S, A) or (H, S, A) of a table of `shape`."""

    @abc.abstractmethod
    def read_outcomes(self, outcomes: ArrayLike, length: int, states: int) -> Outcomes:
        """Return the checked outcomes of an episode."""

    def read(
        self, pairs: tuple[int, ...], horizon: int, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike
    ) -> Episode[Outcomes]:
        """Return the episode, checked against tables over `pairs`, (S, A) or (H, S, A)."""
        visited = _indices("states", states, horizon, pairs[-2])
        taken = _indices("actions", actions, horizon, pairs[-1])
        came_out = self.read_outcomes(outcomes, horizon, pairs[-2])
        if len(pairs) == 2:
            return Episode((visited, taken), came_out)
        if pairs[0] != horizon:
            raise ValueError(f"a step-dependent table must have `horizon` = {horizon} steps, got {pairs[0]}")
        return Episode((np.arange(horizon), visited, taken), came_out)


class SquareLoss(Game[FloatArray]):
    """ℓ(f, y) = (f - y)², both in [0, 1]."""

    rate = 2.0

    def aggregate(self, weights: FloatArray, forecasts: FloatArray) -> FloatArray:
        """Return ½ + (g(0) - g(1))/2 with g(y) = -½·log Σ w·exp(-2(f - y)²): Vovk's substitution function.

        >>> SQUARE.aggregate(np.array([0.5, 0.5]), np.array([0.0, 1.0]))
        np.float64(0.5)
        """
        if len(forecasts) == 1:
            return np.array(forecasts[0])
        at_zero = weighted_sum(weights, np.exp(-2.0 * forecasts**2))
        at_one = weighted_sum(weights, np.exp(-2.0 * (1.0 - forecasts) ** 2))
        return substitution(at_zero, at_one)

    def examples(self, tables: FloatArray, episode: Episode[FloatArray]) -> FloatArray:
        """Return the forecasts at the pairs visited."""
        return np.asarray(tables[:, *episode.cells])

    def losses(self, examples: FloatArray, episode: Episode[FloatArray]) -> FloatArray:
        """Return Σ (f - r)²."""
        errors = examples - episode.outcomes
        return np.asarray((errors * errors).sum(axis=-1))

    def divergence(self, truth: FloatArray, forecast: FloatArray) -> FloatArray:
        """Return (f* - f̂)²."""
        return np.asarray((truth - forecast) ** 2)

    def check_tables(self, name: str, tables: FloatArray) -> None:
        """Raise unless `tables` are (N, S, A) or (N, H, S, A), in [0, 1]."""
        if tables.ndim not in (3, 4) or tables.size == 0:
            raise ValueError(f"`{name}` must return shape (N, S, A) or (N, H, S, A), got {tables.shape}")
        in_range(name, tables, 0.0, 1.0)

    def pairs(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape itself."""
        return shape

    def read_outcomes(self, outcomes: ArrayLike, length: int, states: int) -> FloatArray:
        """Return rewards (H,), in [0, 1]."""
        rewards = float_table("rewards", outcomes)
        _of_length("rewards", rewards, length)
        in_range("rewards", rewards, 0.0, 1.0)
        return rewards


class LogLoss(Game[IntArray]):
    """ℓ(P, s') = -log P(s'), cut off at `SMALLEST_PROBABILITY`."""

    rate = 1.0

    def aggregate(self, weights: FloatArray, forecasts: FloatArray) -> FloatArray:
        """Return the mean, Σ w·P."""
        return np.array(forecasts[0]) if len(forecasts) == 1 else weighted_sum(weights, forecasts)

    def examples(self, tables: FloatArray, episode: Episode[IntArray]) -> FloatArray:
        """Return the probabilities of the transitions seen."""
        return np.asarray(tables[:, *episode.cells, episode.outcomes])

    def losses(self, examples: FloatArray, episode: Episode[IntArray]) -> FloatArray:
        """Return -Σ log P."""
        return np.asarray(-np.log(np.maximum(examples, SMALLEST_PROBABILITY)).sum(axis=-1))

    def divergence(self, truth: FloatArray, forecast: FloatArray) -> FloatArray:
        """Return D² = Σ (√P* - √P̂)² over next states."""
        return np.asarray(((np.sqrt(truth) - np.sqrt(forecast)) ** 2).sum(axis=-1))

    def check_tables(self, name: str, tables: FloatArray) -> None:
        """Raise unless `tables` are (N, S, A, S) or (N, H, S, A, S), rows on the simplex."""
        if tables.ndim not in (4, 5) or tables.shape[-1] != tables.shape[-3] or tables.size == 0:
            raise ValueError(f"`{name}` must return shape (N, S, A, S) or (N, H, S, A, S), got {tables.shape}")
        distributions(name, tables)

    def pairs(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape without the next state."""
        return shape[:-1]

    def read_outcomes(self, outcomes: ArrayLike, length: int, states: int) -> IntArray:
        """Return next states (H,)."""
        return _indices("next_states", outcomes, length, states)


SQUARE, LOG = SquareLoss(), LogLoss()


def weighted_sum(weights: FloatArray, tables: FloatArray) -> FloatArray:
    """Return Σ_i w_i·tables[i], in one pass over memory."""
    return np.asarray((weights @ tables.reshape(len(tables), -1)).reshape(tables.shape[1:]))


def substitution(at_zero: FloatArray, at_one: FloatArray) -> FloatArray:
    """Return ½ + (g(0) - g(1))/2 from exp(-2·g(0)) and exp(-2·g(1)); both lie in [e⁻², 1]."""
    return np.minimum(np.maximum(0.5 + 0.25 * np.log(at_one / at_zero), 0.0), 1.0)


def exponential_weights(losses: FloatArray, rate: float) -> FloatArray:
    """Return w ∝ exp(-rate·losses), none below e⁻⁷⁰⁰ of the largest: whoever was wrong is never quite forgotten."""
    if len(losses) == 1:
        return np.ones(1)
    weights = np.exp(np.maximum(-rate * (losses - losses.min()), -700.0))
    return np.asarray(weights / weights.sum())


def _indices(name: str, values: ArrayLike, length: int, count: int) -> IntArray:
    """Return `values` as a fresh vector of integers in 0..count-1."""
    array = np.array(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"`{name}` must be integers, got dtype {array.dtype}")
    _of_length(name, array, length)
    if array.min() < 0 or array.max() >= count:
        bad = int(array[(array < 0) | (array >= count)][0])
        raise ValueError(f"`{name}` must lie in 0..{count - 1}, got {bad}")
    return array.astype(np.intp, copy=False)


def _of_length(name: str, array: NDArray[np.generic], length: int) -> None:
    if array.shape != (length,):
        raise ValueError(f"`{name}` must have shape ({length},), one entry per step of the episode, got {array.shape}")
