"""Is one agent better than another on the same seeds? Two tests that may be looked at after every seed.

*Means*: is the expected loss of one smaller? That depends on rare disasters that few seeds show, so something has to
bound them: `largest`, the most by which the losses of two agents on one seed can differ (T·H for total regret). *Most
seeds*: does one agent lose less with probability above ½? That needs no bound. The two may disagree, and both be right:
an agent that is 1 better on 95 seeds in 100 and 100 worse on the others is ahead on most seeds, and worse on average.

The assumption of both is that seeds are independent draws, in an order that does not depend on results (that of their
numbers). Differences may have any shape: skewed, heavy-tailed, two values. Neither error grows with looking: a p-value
only falls as seeds are added, and the chance that it is ever at most α is at most α. Differences of total regret up to
10⁻⁹ are rounding, and count as none.

Rejected: sign flips and their martingale (Fisher 1935; de la Peña 1999), which hold for symmetric differences only, and
erred in 65 studies of 100 in the example above; Student's test; the bootstrap. `python -m lab.benchmarks.verdicts`
measures all.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.validation import FloatArray, positive_number, probability
from omg_lab.reports.statistics import NO_REGRET, finite_table

SIGNIFICANT = 0.05
"""Differences with a corrected p up to this count as more than chance."""
STAKES = {1.0: 0.6, 0.7: 0.2, 0.4: 0.1, 0.15: 0.1}
"""The shares of an account that are staked on every seed, and the part of the capital that each account begins with.

Six seeds that agree are enough for one comparison (44 > 40), and eight for four. Rejected: bets that follow the
variance seen so far, cut off at 0.9 (Waudby-Smith and Ramdas 2023, section 4), which need as many seeds if these agree,
and twice as many if 7 in 10 do.
"""


class Verdict(enum.Enum):
    """The verdict of the seeds so far; the value is the sentence shown to the user."""

    FIRST = "The first agent is better."
    SECOND = "The second agent is better."
    UNDECIDED = "Not decided yet."


class SeedDecision(NamedTuple):
    """The verdict of the seeds so far, and how many more are suggested."""

    verdict: Verdict
    seeds: int
    """Number of seeds that decided it; all of them if nothing is decided."""
    more: float
    """A guess of how many more will decide it if they are like these; 0 when decided, inf where they point nowhere."""
    p: float
    """The largest chance with which two equal agents look as different as this, at any number of seeds."""


class PairedComparison(NamedTuple):
    """Two agents on the same seeds. p-values, bounds and verdicts are corrected for the number of comparisons."""

    first: str
    second: str
    difference: float
    """The mean loss of the first minus that of the second."""
    low: float
    high: float
    """Bounds for its expectation: of all comparisons at once, and at every number of seeds, with 95 % confidence."""
    mean: SeedDecision | None
    """Which agent has the smaller expected loss; None if nothing bounds the differences."""
    ahead: int
    """On this many seeds the first agent lost less."""
    behind: int
    most: SeedDecision
    """Which agent loses less on most seeds."""

    def better(self, test: SeedDecision | None) -> str | None:
        """Return the agent that is better by one of the two tests; None if it has not decided."""
        named = {Verdict.FIRST: self.first, Verdict.SECOND: self.second, Verdict.UNDECIDED: None}
        return named[test.verdict] if test else None

    def record(self) -> dict[str, Any]:
        """Return everything as JSON can hold it; None for what is not known."""
        flat: dict[str, Any] = {"first": self.first, "second": self.second, "difference": self.difference}
        flat |= {"low": self.low, "high": self.high} if self.mean else {"low": None, "high": None}
        flat |= {"ahead": self.ahead, "behind": self.behind}
        for name, test in {"mean": self.mean, "most": self.most}.items():
            flat |= {f"better_{name}": self.better(test), f"p_{name}": test.p if test else None}
            flat[f"more_seeds_{name}"] = int(test.more) if test and math.isfinite(test.more) else None
        return flat


def log_capital(scores: FloatArray, centre: float = 0.5) -> FloatArray:
    """Return the log of the capital of a gambler who bets that the mean of `scores` (..., R) is above `centre`.

    Scores lie in [0, 1]. The capital 1 is shared among accounts by `STAKES`; in each, the share f is staked every time:

        K_n = Σ_f w_f · Π_{i ≤ n} (1 - f + f·x_i / m),   Σ_f w_f = 1.

    No factor is negative, and if E[x_i | past] ≤ m its expectation is at most 1 - f + f = 1. So every account, and
    their sum, is a supermartingale that begins at 1, and P(K_n ≥ 1/α for some n) ≤ α (Ville 1939). Every factor falls
    in m, so K does, too (betting: Waudby-Smith and Ramdas 2023).

    >>> np.exp(log_capital(np.ones(6))).round(1).tolist()
    [1.8, 3.3, 6.2, 11.8, 22.8, 44.2]
    """
    accounts = []
    with np.errstate(divide="ignore"):  # an account that is lost stays at 0
        for stake, begun in STAKES.items():
            accounts.append(math.log(begun) + np.cumsum(np.log(1.0 - stake + stake * scores / centre), axis=-1))
    return np.asarray(np.logaddexp.reduce(accounts, axis=0))


def enough_seeds(differences: ArrayLike, *, largest: float | None = None, level: float = 0.95) -> SeedDecision:
    """Return which agent is better as soon as the seeds show it; look after every seed, stop whenever you like.

    With `largest` it is about means, without about most seeds. Two gamblers bet on the two agents (`log_capital` at m =
    ½): on means by the scores ½ ∓ d/(2·largest), on most seeds by 1 where their agent lost less, and 0 elsewhere. The
    verdict is for the first whose capital reaches 2/(1 - level): over all numbers of seeds together, it is wrong with
    probability at most (1 - level)/2, and any verdict on two equal agents has at most twice that. Equal means: the same
    expected loss; or neither loses less on more than half of the seeds. Of m pairs, use the level 1 - (1 - level)/m.

    Means need many seeds where a seed could differ by much more than these did: about 4.2·largest/|difference| for a
    level of 0.95. Most seeds need 6 that agree, about 20 if 8 in 10 do, and 50 if 7 in 10 do.

    Parameters
    ----------
    differences : array (R,)
        The losses of the first agent minus those of the second, in an order that does not depend on them.
    largest : float, optional
        The most by which the losses of two agents can differ, such as T·H. By default the test is about most seeds.
    level : float
        The confidence of the verdict, 0.95 by default.

    Examples
    --------
    >>> rare = [-1.0] * 19 + [100.0]
    >>> enough_seeds(rare).verdict.value, enough_seeds(rare, largest=1000.0).verdict.value
    ('The first agent is better.', 'Not decided yet.')
    """
    differences = finite_table("differences", differences, 1)
    scores = _scores(differences, largest)
    capital = log_capital(scores)
    to_reach = math.log(2.0 / (1.0 - probability("level", level)))
    p = min(1.0, 2.0 * math.exp(-capital.max()))
    reached = capital >= to_reach
    if reached.any():
        when = int(np.argmax(reached.any(axis=0)))
        return SeedDecision((Verdict.FIRST, Verdict.SECOND)[int(np.argmax(reached[:, when]))], when + 1, 0.0, p)
    seeds = len(differences)
    return SeedDecision(Verdict.UNDECIDED, seeds, max(1.0, _needed(scores, to_reach) - seeds), p)


def _scores(differences: FloatArray, largest: float | None) -> FloatArray:
    """Return the scores of the first agent and of the second, (2, R): above ½ in the mean if it is the better."""
    if largest is None:
        return np.stack([differences < -NO_REGRET, differences > NO_REGRET]).astype(np.float64)
    if np.abs(differences).max() > positive_number("largest", largest) * (1.0 + 1e-9):
        raise ValueError(f"`largest` must bound all differences, got {largest!r} and {np.abs(differences).max()}")
    return np.clip(0.5 + np.stack([-differences, differences]) / (2.0 * largest), 0.0, 1.0)


def _needed(scores: FloatArray, to_reach: float) -> float:
    """Return about how many seeds like those of `scores` (2, R) make a capital of e^`to_reach`; inf if it never is."""
    seeds = np.unique(np.ceil(np.geomspace(1.0, 1e6, 1000)))
    with np.errstate(divide="ignore"):
        growth = [np.log(1.0 - stake + 2.0 * stake * scores).mean(axis=1) for stake in STAKES]
    accounts = np.log([*STAKES.values()])[:, None, None] + np.array(growth)[..., None] * seeds
    reached = (np.logaddexp.reduce(accounts, axis=0) >= to_reach).any(axis=0)
    return float(seeds[np.argmax(reached)]) if reached.any() else math.inf


def mean_bounds(differences: ArrayLike, largest: float, level: float = 0.95) -> tuple[float, float]:
    """Return bounds for the expected difference that hold at every number of seeds at once, with this confidence.

    They are the running intersection of a confidence sequence: the values at which neither gambler of `log_capital` has
    ever reached 2/(1 - level). As capital falls in m, these are an interval, and more seeds never widen it.

    Parameters
    ----------
    differences : array (R,)
        The losses of the first agent minus those of the second, in an order that does not depend on them.
    largest : float
        The most by which the losses of two agents can differ, such as T·H.
    level : float
        The confidence, 0.95 by default.

    Examples
    --------
    >>> [round(bound, 2) for bound in mean_bounds([-0.5, -0.6, -0.4, -0.5] * 5, largest=1.0)]
    [-0.6, -0.22]
    """
    differences = finite_table("differences", differences, 1)
    to_reach = math.log(2.0 / (1.0 - probability("level", level)))
    edges = []
    for scores in _scores(differences, largest):
        low, high = 0.0, 1.0
        for _ in range(50):  # bisection: below the bound this capital has reached what is needed
            middle = (low + high) / 2.0
            low, high = (middle, high) if log_capital(scores, middle).max() >= to_reach else (low, middle)
        edges.append((2.0 * low - 1.0) * largest)
    return edges[1], -edges[0]


def compare_all(
    regrets: Mapping[str, ArrayLike], *, largest: float | None = None, against: str | None = None
) -> tuple[PairedComparison, ...]:
    """Return the comparisons of every two agents, or of each one with `against`, corrected for their number.

    Of m comparisons each has the level 1 - 0.05/m (Bonferroni), so that the chance of any wrong verdict about means, at
    any number of seeds, is at most 0.05, and so is that of any wrong verdict about most seeds, whatever agents share in
    a seed. Rejected: step-down corrections, which need symmetry (maxT), or gain less than a factor of 2 if directions
    are to be right as well (Holm).

    Parameters
    ----------
    regrets : mapping
        The losses of every agent, (R,), on the same seeds in the same order.
    largest : float, optional
        The most by which the losses of two agents on one seed can differ; without it means are not compared.
    against : str, optional
        The agent with which all others are compared; by default every two agents are.

    Examples
    --------
    >>> [found] = compare_all({"omg": [1, 2, 1, 2, 1, 2], "greedy": [3, 3, 3, 4, 3, 8]}, largest=100)
    >>> found.difference, found.ahead, found.most.verdict.value, found.mean.verdict.value
    (-2.5, 6, 'The first agent is better.', 'Not decided yet.')
    """
    names, rows = list(regrets), [finite_table(f"regrets[{name!r}]", row, 1) for name, row in regrets.items()]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        lengths = {name: len(row) for name, row in zip(names, rows, strict=True)}
        raise ValueError(f"`regrets` must have two agents or more on the same seeds, got {lengths!r:.200}")
    if against is not None and against not in names:
        raise ValueError(f"`against` must be one of {', '.join(names)}, got {against!r}")
    if against is None:
        pairs = list(itertools.combinations(range(len(names)), 2))
    else:
        pairs = [(names.index(against), i) for i in range(len(names)) if names[i] != against]
    found, level = [], 1.0 - SIGNIFICANT / len(pairs)
    for i, j in pairs:
        differences, mean, low, high = rows[i] - rows[j], None, math.nan, math.nan
        if largest is not None:
            mean = _corrected(enough_seeds(differences, largest=largest, level=level), len(pairs))
            low, high = mean_bounds(differences, largest, level)
        most = _corrected(enough_seeds(differences, level=level), len(pairs))
        ahead, behind = (int((signed < -NO_REGRET).sum()) for signed in (differences, -differences))
        difference = float(differences.mean())
        found.append(PairedComparison(names[i], names[j], difference, low, high, mean, ahead, behind, most))
    return tuple(found)


def _corrected(decision: SeedDecision, comparisons: int) -> SeedDecision:
    return decision._replace(p=min(1.0, comparisons * decision.p))
