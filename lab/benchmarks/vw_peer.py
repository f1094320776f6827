"""Vowpal Wabbit's contextual bandits (`--cb_explore A`) as learners of a classification, with every advantage.

SquareCB, RegCB (elimination and optimistic) and online cover. Features have names, not numbers: numbers are used as
hashes, so that the features of different actions collide, which costs half of the reward. Examples are written as text
beforehand, outside its time. Its answers are probabilities, and actions are drawn from them as for every other learner.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.validation import FloatArray


class Settings(NamedTuple):
    """What is worth tuning; the defaults are Vowpal Wabbit's own."""

    method: str = "--squarecb"
    learning_rate: float = 0.5
    cost_of_nothing: float = 0.0
    """The cost of reward 0; reward 1 costs one less. At first Vowpal Wabbit expects cost 0 of every action."""

    def __str__(self) -> str:
        return f"{self.method} -l {self.learning_rate:g}, cost {self.cost_of_nothing:g} - reward"

    @property
    def options(self) -> str:
        """As on its command line; RegCB needs to know the range of costs."""
        costs = f"--cb_min_cost {self.cost_of_nothing - 1.0} --cb_max_cost {self.cost_of_nothing}"
        return f"{self.method} --learning_rate {self.learning_rate} {costs if '--regcb' in self.method else ''}"


MELLOW = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
METHODS: dict[str, tuple[list[str], tuple[float, ...], tuple[float, ...]]] = {
    "SquareCB": ([f"--squarecb --gamma_scale {c:g}" for c in (10, 1e2, 1e3, 1e4)], (0.5, 2, 4, 8, 16), (0, 0.5, 1)),
    "RegCB": ([f"--regcb --mellowness {c:g}" for c in MELLOW], (0.5, 2, 8), (0, 1)),
    "RegCB, optimistic": ([f"--regcbopt --mellowness {c:g}" for c in MELLOW], (0.5, 2, 8), (0, 1)),
    "online cover": ([f"--cover {size}" for size in (3, 8, 16)], (0.5, 2, 8), (0, 1)),
}
"""Of each: its options with a constant, learning rates, and costs of nothing."""


def grid(method: str) -> Iterator[Settings]:
    """Yield the settings of one method; the first is Vowpal Wabbit's default."""
    for options, rate, cost in itertools.product(*METHODS[method]):
        yield Settings(options, rate, cost)


def available() -> bool:
    """Return whether the package is installed."""
    return importlib.util.find_spec("vowpalwabbit") is not None


def written(features: FloatArray) -> list[str]:
    """Return the examples (n, d) in Vowpal Wabbit's format, without labels."""
    return ["|p " + " ".join(f"x{i}:{x:g}" for i, x in enumerate(row) if x) for row in features.tolist()]


class Peer:
    """A workspace that predicts and learns one example at a time."""

    def __init__(self, texts: list[str], actions: int, settings: Settings) -> None:
        self._texts, self._settings = texts, settings
        package: Any = importlib.import_module("vowpalwabbit")
        self._workspace = package.Workspace(f"--cb_explore {actions} --cb_type mtr {settings.options} --quiet")

    def probabilities(self, example: int) -> FloatArray:
        """Return the probabilities of the actions; optimistic RegCB gives each of equals the weight 1."""
        weights = np.array(self._workspace.predict(self._texts[example]))
        return np.asarray(weights / weights.sum())

    def learn(self, example: int, action: int, probability: float, reward: float) -> None:
        """Learn from one action, played with `probability`."""
        cost = self._settings.cost_of_nothing - reward
        self._workspace.learn(f"{action + 1}:{cost}:{probability} {self._texts[example]}")
