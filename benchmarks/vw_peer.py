"""Vowpal Wabbit's SquareCB (`--cb_explore A --squarecb`) as a learner of the digits, with every advantage.

Pixels have names, not numbers: numbers are used as hashes, so that the features of different actions collide, which
costs half of the reward. Examples are written as text beforehand, outside its time. Its answers are probabilities,
and actions are drawn from them as for every other learner.
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

    learning_rate: float = 0.5
    gamma_scale: float = 10.0
    cost_of_nothing: float = 0.0
    """The cost of reward 0; reward 1 costs one less. At first Vowpal Wabbit expects cost 0 of every action."""

    def __str__(self) -> str:
        return f"-l {self.learning_rate:g} --gamma_scale {self.gamma_scale:g}, cost {self.cost_of_nothing:g} - reward"


def grid() -> Iterator[Settings]:
    """Yield the defaults and 59 other settings; beyond learning rate 8 and γ scale 1000 nothing changes much."""
    for rate, scale, cost in itertools.product((0.5, 2.0, 4.0, 8.0, 16.0), (10.0, 1e2, 1e3, 1e4), (0.0, 0.5, 1.0)):
        yield Settings(rate, scale, cost)


def available() -> bool:
    """Return whether the package is installed."""
    return importlib.util.find_spec("vowpalwabbit") is not None


def written(pixels: FloatArray) -> list[str]:
    """Return the examples (n, 64) in Vowpal Wabbit's format, without labels."""
    return ["|p " + " ".join(f"x{i}:{x:g}" for i, x in enumerate(row) if x) for row in pixels.tolist()]


class SquareCBPeer:
    """A workspace that predicts and learns one example at a time."""

    def __init__(self, texts: list[str], actions: int, settings: Settings) -> None:
        self._texts, self._settings = texts, settings
        options = f"--learning_rate {settings.learning_rate} --gamma_scale {settings.gamma_scale}"
        package: Any = importlib.import_module("vowpalwabbit")
        self._workspace = package.Workspace(f"--cb_explore {actions} --squarecb --cb_type mtr {options} --quiet")

    def probabilities(self, example: int) -> FloatArray:
        """Return the probabilities of the actions."""
        return np.array(self._workspace.predict(self._texts[example]))

    def learn(self, example: int, action: int, probability: float, reward: float) -> None:
        """Learn from one action, played with `probability`."""
        cost = self._settings.cost_of_nothing - reward
        self._workspace.learn(f"{action + 1}:{cost}:{probability} {self._texts[example]}")
