"""The three rates of an oracle whose predictions are frozen for the H steps of an episode.

The textbook's rate η is for an update after every example; with it, an adversary makes the regret of a frozen
prediction grow linearly. The rate η/H is safe (docs/oracles.md, Theorem 1): by Hölder's inequality the regret is at
most **H times the textbook's bound for T examples**.

    "proven"      the class at rate η/H
    "realizable"  the class at rate η: faster on data that fit the class, no adversarial bound
    "guarded"     both, aggregated at rate η/H: the proven bound plus (H/η)·log 2, and nearly the textbook's speed

If outcomes come late, so that up to d other updates lie between a prediction and its own, weights at a rate of
0.567·η/(H·(d + 1)·(2 + ηM)) are safe, M the largest loss of a step (docs/oracles.md, Theorem 7). Nothing is proven for
a guard over late outcomes: it charges forecasters what they say on arrival, and not what they said.
"""

from __future__ import annotations

import math
from typing import TypeVar, final

import numpy as np

from omg_cmdp.validation import FloatArray, one_of, positive_integer, whole_number

RATES = ("guarded", "proven", "realizable")

STEADY = 0.567
"""The largest b, in three digits, with b·e^b <= 1: the factor by which a rate is reduced for late outcomes."""

T = TypeVar("T")


@final
class Rate:
    """The choice of forecasters that an oracle aggregates: the practical one, the proven one, or both.

    In a *tempered* class the two differ only in their temper τ: the weight of the prior is multiplied by τ. The
    textbook has τ = 1, the proven forecaster τ = H. For H = 1 they are the same.

    >>> Rate("guarded", 5, tempered=True).tempers, Rate("guarded", 1, tempered=True).tempers
    (array([1., 5.]), array([1.]))
    """

    def __init__(self, name: str, horizon: int, *, tempered: bool = False, delay: int = 0) -> None:
        one_of("rate", name, RATES)
        self.name = name
        self.delay = whole_number("delay", delay)
        """The number d of other updates that may lie between a prediction and its own."""
        if self.delay and name != "proven":
            raise ValueError(f"`rate` must be 'proven' if `delay` is positive, got {name!r}")
        self.settings = (f"delay {self.delay}",) if self.delay else ()
        self.horizon = positive_integer("horizon", horizon)
        # For one step nothing is frozen, and both forecasters are the same.
        self._is_one = tempered and self.horizon == 1
        self.is_proven = self._is_one or name != "realizable"
        self.tempers = np.array(self.choose(1.0, float(self.horizon)))

    def choose(self, practical: T, proven: T) -> list[T]:
        """Return the one of the two that is used, or both."""
        if self._is_one:
            return [proven]
        return {"realizable": [practical], "proven": [proven], "guarded": [practical, proven]}[self.name]

    def weights_at(self, eta: float, most: float) -> FloatArray:
        """Return the rates of exponential weights, for a loss whose η-fold is at most `most` in a step."""
        return np.asarray(eta / (np.array([self.temper(most)]) if self.delay else self.tempers))

    def temper(self, most: float) -> float:
        """Return the factor by which the proven rate is smaller than η, for such a loss."""
        return self.horizon * ((self.delay + 1) * (2.0 + most) / STEADY if self.delay else 1.0)

    def frozen_bound(self, textbook_bound: float, most: float = 0.0) -> float:
        """Return H times the textbook's bound for T examples (Theorem 1); inf if the proven forecaster is not used.

        For late outcomes it is the temper times that bound (Theorem 7).
        """
        return self.temper(most) * textbook_bound if self.is_proven else math.inf
