"""Maximum likelihood for softmax dynamics, over all past episodes: see `offline.fits` for what an offline oracle is."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.base import DynamicsOracle
from omg_cmdp.oracles.frame import Frame, learn_transitions
from omg_cmdp.oracles.losses import LOG, Examples
from omg_cmdp.oracles.offline.fits import Fitted, checked_fit, current_fit, predict_with_fit
from omg_cmdp.oracles.softmax import SoftmaxDynamics
from omg_cmdp.validation import FloatArray

compiled_likelihood = Lazy("omg_cmdp.oracles.compiled.likelihood")


class SeenCounts:
    """Counts of next states: one line [pair, z, counts] for each (z, pair) seen."""

    def __init__(self, lines: FloatArray, dimension: int) -> None:
        self._table, self._used, self._dimension = lines, len(lines), dimension
        self._places = {self._key(line[0], line[1 : 1 + dimension]): place for place, line in enumerate(lines)}

    @property
    def lines(self) -> FloatArray:
        """The lines in use, (lines, 1 + d + S)."""
        return self._table[: self._used]

    def add(self, pair: int, row: FloatArray, counts: FloatArray) -> None:
        """Add the counts (S,) of an episode at features `row` (d,)."""
        # One line for equal features: a recurring context costs no more than its first visit.
        place = self._places.setdefault(self._key(pair, row), self._used)
        if place == self._used:
            if place == len(self._table):  # twice the room: a line costs the same however many there are
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


class _MaximumLikelihood(Fitted):
    """Maximum likelihood from the counts of all past examples."""

    learned = ("fit", "lines")

    def __init__(self, online: SoftmaxDynamics) -> None:
        super().__init__(online, LOG)
        self._softmax = online.forecasters
        self.fit = np.zeros_like(self._softmax.weights)
        _, states, dimension = self.fit.shape
        self.lines = np.zeros((0, 1 + dimension + states))

    @property
    def lines(self) -> FloatArray:
        """The examples, (lines, 1 + d + S)."""
        return self._examples.lines

    @lines.setter
    def lines(self, lines: FloatArray) -> None:
        self._examples = SeenCounts(lines, self.fit.shape[-1])

    def shape_of(self, name: str) -> tuple[int | None, ...]:
        shape = super().shape_of(name)
        return (None, *shape[1:]) if name == "lines" else shape

    def table_of(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return the softmax of w·z, tilted by P₀."""
        return self._softmax.table(checked_fit(parameters, self.fit.shape), self._softmax.prepare(context))

    def learn(self, context: Context, episode: Examples) -> None:
        """Fit the pairs that the episode visited again, from where they are."""
        super().learn(context, episode)
        row, offsets = self._softmax.prepare(context), self._softmax.offsets
        # Other pairs have the same examples as before, and so the same fit.
        for pair, count in zip(*self._softmax.tally(episode), strict=True):
            self._examples.add(pair, row, count)
            rows, led_to = self._examples.of(pair)
            compiled_likelihood.maximum_likelihood(self.fit[pair], offsets[pair], rows, led_to, self._softmax.ridge)


@final
class OfflineSoftmaxDynamics(Frame[_MaximumLikelihood], DynamicsOracle):
    """Maximum likelihood with a ridge for P(s'|c, s, a) ∝ P₀(s'|s, a)·exp(w(s, a, s')·z(c)).

    w minimises Σ -log P + (ridge/2)·‖w‖² over all past examples. Against an adversary nothing is proven, and
    `regret_bound` is inf.

    Parameters
    ----------
    **arguments
        Those of `SoftmaxDynamics` but for `rate`: `states`, `actions`, `dimension` and `horizon`, which are required,
        and `features`, `base`, `ridge`, `feature_norm`, `weight_norm`.

    Examples
    --------
    >>> oracle = OfflineSoftmaxDynamics(states=2, actions=1, dimension=1, horizon=3, ridge=1e-6)
    >>> oracle.update([1.0], states=[0, 0, 0], actions=[0, 0, 0], next_states=[1, 0, 1])
    >>> oracle.predict([1.0])[0].round(3)
    array([[0.333, 0.667]])
    """

    update, parameters, predict_with = learn_transitions, current_fit, predict_with_fit

    def __init__(self, **arguments: Any) -> None:
        super().__init__(_MaximumLikelihood(SoftmaxDynamics(**arguments, rate="realizable")))
