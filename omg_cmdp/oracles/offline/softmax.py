"""Maximum likelihood for softmax dynamics, over all past episodes: see `offline` for what an offline oracle is."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.jit import lazy
from omg_cmdp.oracles.base import DynamicsOracle
from omg_cmdp.oracles.features import FeatureMap, Features
from omg_cmdp.oracles.frame import DynamicsForecasters
from omg_cmdp.oracles.losses import Episode
from omg_cmdp.oracles.offline.fits import Beside, checked_fit
from omg_cmdp.oracles.softmax import SoftmaxDynamics
from omg_cmdp.validation import FloatArray

likelihood_kernels = lazy("omg_cmdp.oracles.kernels.likelihood")
softmax_kernels = lazy("omg_cmdp.oracles.kernels.softmax")


class Examples:
    """How often each pair led where: one line [pair, z, counts of the next states] for each (z, pair) seen."""

    def __init__(self, lines: FloatArray, dimension: int) -> None:
        self._table, self._used, self._dimension = lines, len(lines), dimension
        self._places = {self._key(line[0], line[1 : 1 + dimension]): place for place, line in enumerate(lines)}

    @property
    def lines(self) -> FloatArray:
        """All of them, (lines, 1 + d + S)."""
        return self._table[: self._used]

    def add(self, pair: int, row: FloatArray, counts: FloatArray) -> None:
        """Add the counts (S,) of an episode at features `row` (d,)."""
        place = self._places.setdefault(self._key(pair, row), self._used)
        if place == self._used:
            if place == len(self._table):  # twice the room, so that a line costs the same however many there are
                self._table = np.concatenate([self._table, np.zeros((place + 16, self._table.shape[1]))])
            self._table[place] = 0.0
            self._table[place, : 1 + self._dimension] = [pair, *row]
            self._used += 1
        self._table[place, 1 + self._dimension :] += counts

    def of(self, pair: int) -> tuple[FloatArray, FloatArray]:
        """Return the features (n, d) and counts (n, S) of one pair."""
        found = self.lines[self.lines[:, 0] == pair, 1:]
        return np.ascontiguousarray(found[:, : self._dimension]), np.ascontiguousarray(found[:, self._dimension :])

    @staticmethod
    def _key(pair: float, row: FloatArray) -> tuple[int, bytes]:
        return int(pair), row.tobytes()


@final
class OfflineSoftmaxDynamics(Beside, DynamicsForecasters):
    """Maximum likelihood for P(s'|c, s, a) ∝ P₀(s'|s, a)·exp(w(s, a, s')·z(c)), with a ridge.

    w minimises Σ -log P + (ridge/2)·‖w‖². The arguments are those of `SoftmaxDynamics`.

    >>> oracle = OfflineSoftmaxDynamics(states=2, actions=1, dimension=1, horizon=3, ridge=1e-6)
    >>> oracle.update([1.0], states=[0, 0, 0], actions=[0, 0, 0], next_states=[1, 0, 1])
    >>> oracle.predict([1.0])[0].round(3)
    array([[0.333, 0.667]])
    """

    kind = DynamicsOracle
    learned = ("fit", "lines")

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        dimension: int,
        horizon: int,
        features: FeatureMap | None = None,
        base: ArrayLike | None = None,
        ridge: float = 1.0,
        feature_norm: float = 1.0,
    ) -> None:
        online = SoftmaxDynamics(
            states=states,
            actions=actions,
            dimension=dimension,
            horizon=horizon,
            features=features,
            base=base,
            rate="realizable",
            ridge=ridge,
            feature_norm=feature_norm,
        )
        super().__init__(online)
        self.dimension, self.ridge, self._shape = dimension, float(ridge), (states, actions, states)
        self._features = Features(features, (dimension,), feature_norm)
        kernel = np.full(self._shape, 1.0 / states) if base is None else np.array(base, dtype=np.float64)
        self._possible = (kernel > 0.0).astype(np.float64).reshape(-1, states)
        with np.errstate(divide="ignore"):
            self._offsets = np.log(kernel).reshape(-1, states)
        self._fit = np.zeros((states * actions, states, dimension))
        self._lines = np.zeros((0, 1 + dimension + states))

    @property
    def _lines(self) -> FloatArray:
        return self._examples.lines

    @_lines.setter
    def _lines(self, lines: FloatArray) -> None:
        self._examples = Examples(lines, self.dimension)

    def predict_with(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return the softmax of w·z, tilted by P₀."""
        table = np.empty(self._shape)
        (row,) = self._features(context)
        weights = checked_fit(parameters, self._fit.shape)
        softmax_kernels.softmax_table(weights, self._offsets, row, table.reshape(self._offsets.shape))
        return table

    def _learn(self, context: Context, episode: Episode) -> None:
        super()._learn(context, episode)
        (row,) = self._features(context)
        distinct, counts = np.empty_like(episode.pairs), np.empty((self.horizon, self._shape[2]))
        found = softmax_kernels.tally(episode.pairs, episode.outcomes, self._possible, distinct, counts)
        for pair, count in zip(distinct[:found].tolist(), counts[:found], strict=True):
            self._examples.add(pair, row, count)
            rows, led_to = self._examples.of(pair)
            likelihood_kernels.maximum_likelihood(self._fit[pair], self._offsets[pair], rows, led_to, self.ridge)

    def _learned_shape(self, name: str) -> tuple[int | None, ...]:
        shape = super()._learned_shape(name)
        return (None, *shape[1:]) if name == "lines" else shape
