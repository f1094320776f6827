"""Sample complexity: how many episodes an agent needs until what it plays, or would put out, is within ε."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from omg_cmdp.runs.ledger import Ledger
from omg_cmdp.validation import FloatArray, instance_of, positive_integer, positive_number


class SampleComplexity(NamedTuple):
    """What a run says of the episodes that it takes to be within ε; inf if it ended before."""

    mistakes: int
    """How many episodes lost more than ε: what agents such as Rmax bound."""
    played: float
    """After how many the policies played stay within ε, on average over a window."""
    output: float
    """The same for `best_policy`, what the agent would put out if it had to stop; nan if it has no model."""


def sample_complexity(ledger: Ledger, epsilon: float, *, window: int = 50) -> SampleComplexity:
    """Return how many episodes it took to be within `epsilon`.

    One context may be harder than another, so `played` and `output` average: they are the least n such that every
    `window` consecutive episodes after the first n lose at most ε on average. With window 1 they count until every
    single episode does. A number near the end of the run says little: what comes after it was not seen for long.
    """
    instance_of("ledger", ledger, Ledger)
    wanted, width = positive_number("epsilon", epsilon), positive_integer("window", window)
    if len(ledger) < width:
        raise ValueError(f"`window` must be at most the {len(ledger)} episodes of the ledger, got {width}")
    lost, unknown = ledger.regret, ledger.column("best_policy_regret")
    return SampleComplexity(int((lost > wanted).sum()), _settled(lost, wanted, width), _settled(unknown, wanted, width))


def _settled(losses: FloatArray, epsilon: float, width: int) -> float:
    """Return after how many episodes all means of `width` losses are at most `epsilon`."""
    if np.isnan(losses).any():
        return math.nan
    means = np.convolve(losses, np.full(width, 1.0 / width), mode="valid")
    above = np.flatnonzero(means > epsilon)
    if not len(above):
        return 0.0
    return float(above[-1] + 1) if above[-1] + 1 < len(means) else math.inf
