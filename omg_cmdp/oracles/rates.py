"""The three rates of an oracle whose predictions are frozen for the H steps of an episode.

The textbook's rate η is for an update after every example; with it, an adversary makes the regret of a frozen
prediction grow linearly. The rate η/H is safe (docs/oracles.md, Theorem 1): by Hölder's inequality the regret is at
most **H times the textbook's bound for T examples**.

    "proven"      the class at rate η/H
    "realizable"  the class at rate η: faster on data that fit the class, no adversarial bound
    "guarded"     both, aggregated at rate η/H: the proven bound plus (H/η)·log 2, and nearly the textbook's speed
"""

from __future__ import annotations

import math
from typing import TypeVar, final

import numpy as np

from omg_cmdp.validation import one_of, positive_integer

RATES = ("guarded", "proven", "realizable")

T = TypeVar("T")


@final
class Rate:
    """Which forecasters of a class an oracle aggregates: the practical one, the proven one, or both.

    In a *tempered* class the two differ only in their temper τ: the weight of the prior is multiplied by τ. The
    textbook has τ = 1, the proven forecaster τ = H. For H = 1 they are the same.

    >>> Rate("guarded", 5, tempered=True).tempers, Rate("guarded", 1, tempered=True).tempers
    (array([1., 5.]), array([1.]))
    """

    def __init__(self, name: str, horizon: int, *, tempered: bool = False) -> None:
        one_of("rate", name, RATES)
        self.name = name
        self.horizon = positive_integer("horizon", horizon)
        self._is_one = tempered and self.horizon == 1
        self.is_proven = self._is_one or name != "realizable"
        self.tempers = np.array(self.choose(1.0, float(self.horizon)))

    def choose(self, practical: T, proven: T) -> list[T]:
        """Return those of the two that are used."""
        if self._is_one:
            return [proven]
        return {"realizable": [practical], "proven": [proven], "guarded": [practical, proven]}[self.name]

    def frozen_bound(self, textbook_bound: float) -> float:
        """Return H times the textbook's bound for T examples (Theorem 1); inf if the proven forecaster is not used."""
        return self.horizon * textbook_bound if self.is_proven else math.inf
