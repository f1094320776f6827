"""Is one agent better than another on the same seeds? Tests for a fixed number of seeds, and for one left open.

There is a single assumption: if two agents are equally good, their difference on a seed is as likely positive as
negative, given its size (symmetry about zero). It need not be Gaussian, nor have finite variance, nor the same
distribution on every seed: seeds of several worlds may be combined. R seeds have no two-sided p-value below 2^(1-R), so
fewer than 6 never reach 0.05. Differences of total regret up to 10⁻⁹ are rounding, and count as none.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.validation import FloatArray, probability, seed_number
from omg_lab.reports.statistics import NO_REGRET, finite_table

if TYPE_CHECKING:
    import pandas

SIGNIFICANT = 0.05
"""Differences with an adjusted p up to this count as more than chance."""
EXACT_UP_TO = 14
"""The most seeds for which all sign patterns are tried: half of 2^14, as the other half says the same."""
BETS = (0.25, 0.5, 1.0, 2.0)
"""The bets of `enough_seeds` on a seed, as multiples of x: small bets detect small differences."""


class PairedComparison(NamedTuple):
    """Two agents: the mean of first minus second; its p-value, alone and corrected for all comparisons."""

    first: str
    second: str
    difference: float
    p: float
    adjusted: float


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
    more: int
    """A guess of how many more will decide it if they are like these; 0 when decided. It may be wrong; `verdict` is
    safe however many follow."""
    evidence: float
    """The capital of the better of the two bets; 2/(1 - level) decides."""


def compare_all(
    regrets: Mapping[str, ArrayLike], *, against: str | None = None, seed: int = 0
) -> tuple[PairedComparison, ...]:
    """Return the comparisons of every two agents, or of each one with `against`, with corrected p-values.

    Two agents are compared by the
    two-sided sign-flip test (Fisher 1935): if they are equal, every sign pattern of their differences is as likely as
    the one seen, so that P(p ≤ α) ≤ α for every α and R. Up to 14 seeds all patterns are tried; beyond, 8191 drawn from
    `seed` and the one seen, which keeps the guarantee (Phipson and Smyth 2010). The chance that some pair of
    equal agents has an adjusted p of at most α is at most α, whichever agents are equal and whatever R: maxT step-down
    (Westfall and Young 1993) with one sign per seed for all pairs, which keeps what agents share in a seed (Romano and
    Wolf 2005). The assumption is now about all differences of equal agents on a seed together: both signs of that
    vector are equally likely. Three or more agents that are equal and skewed can break it; the error measured then is
    at most 0.056 for 0.05. Rejected: Holm, which does not need this, but multiplies the least possible p by the number
    of pairs, and could never tell 10 agents apart with 10 seeds.

    Parameters
    ----------
    regrets : mapping
        The regrets of every agent, (R,), on the same seeds in the same order.
    against : str, optional
        The agent with which all others are compared; by default every two agents are.
    seed : int
        The seed of the sign patterns that are drawn if there are more than 14 seeds; 0 by default.

    Examples
    --------
    >>> [comparison] = compare_all({"omg": [1, 2, 1, 2, 1, 2], "greedy": [3, 3, 3, 4, 3, 8]})
    >>> comparison.difference, comparison.adjusted
    (-2.5, 0.03125)
    """
    names, rows = list(regrets), [finite_table(f"regrets[{name!r}]", row, 1) for name, row in regrets.items()]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        lengths = {name: len(row) for name, row in zip(names, rows, strict=True)}
        raise ValueError(f"`regrets` must have two agents or more on the same seeds, got {lengths!r:.200}")
    if against is not None and against not in names:
        raise ValueError(f"`against` must be one of {', '.join(names)}, got {against!r}")
    pairs = [(i, j) for i, j in itertools.combinations(range(len(names)), 2) if against in (None, names[i], names[j])]
    # `against` comes first in every pair, so that signs mean the same.
    pairs = [(j, i) if names[j] == against else (i, j) for i, j in pairs]
    differences = np.stack([rows[i] - rows[j] for i, j in pairs], axis=1)
    alone, adjusted = _step_down(differences, seed_number(seed))
    numbers = zip(differences.mean(axis=0).tolist(), alone.tolist(), adjusted.tolist(), strict=True)
    return tuple(PairedComparison(names[i], names[j], *each) for (i, j), each in zip(pairs, numbers, strict=True))


def _step_down(differences: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the p-values of the columns of `differences` (R, M), alone and corrected."""
    differences = np.where(np.abs(differences) > NO_REGRET, differences, 0.0)
    sizes = np.linalg.norm(differences, axis=0)  # independent of the signs: makes columns comparable, keeps p-values
    columns = np.divide(differences, sizes, out=np.zeros_like(differences), where=sizes > 0.0)
    statistics = np.abs(_signs(len(differences), seed) @ columns)
    seen = statistics[0] - 1e-12  # the same sum in another order is a tie
    alone = np.asarray((statistics >= seen).mean(axis=0))
    # From the largest statistic down: each is compared with itself and those below; p-values never decrease.
    order = np.argsort(-seen, kind="stable")
    among = np.maximum.accumulate(statistics[:, order[::-1]], axis=1)[:, ::-1]
    adjusted = np.empty_like(alone)
    adjusted[order] = np.maximum.accumulate((among >= seen[order]).mean(axis=0))
    return alone, adjusted


def _signs(seeds: int, seed: int) -> FloatArray:
    """Return the sign patterns to try, (F, R), the one seen (all +) first; opposites would say the same."""
    if seeds <= EXACT_UP_TO:
        bits = np.arange(2 ** (seeds - 1))[:, None] >> np.arange(seeds) & 1  # the last sign stays +
    else:
        bits = np.random.default_rng(seed).integers(2, size=(2 ** (EXACT_UP_TO - 1), seeds))
        bits[0] = 0
    return np.where(bits, -1.0, 1.0)


def enough_seeds(differences: ArrayLike, level: float = 0.95) -> SeedDecision:
    """Return which agent is better as soon as the seeds show it; look after every seed, stop whenever you like.

    Two gamblers
    start with 1 each; one bets on +, one on -. With x_i = d_i / √(mean of d_1², …, d_i²), which has the sign of d_i,
    and a bet λ > 0, the capital

        M_n(λ) = Π_{i ≤ n} e^(λ·x_i) / cosh(λ·x_i)

    is a martingale if the sign of d_i is a fair coin given |d_i| and the past, since cosh averages e^x over both signs;
    the average over `BETS` is one too. It ever reaches 2/(1 - level) with probability at most (1 - level)/2 (Ville
    1939). Hence, over all times together, the chance of any verdict for equal agents is at most 1 - `level`, and of
    the wrong verdict at most half of that. (Test martingales for symmetry: de la Peña 1999; Ramdas, Ruf, Larsson and
    Koolen 2020.) Of m pairs watched at once, use the level 1 - (1 - level)/m.

    Measured, 95 %, Gaussian differences: for a mean of 2, 1 and 0.5 standard deviations, half of all studies decide
    within 8, 12 and 35 seeds; 7 is the least. Rejected: tests in stages (AdaStop: Mathieu et al. 2023), which need
    their number of looks in advance.

    Parameters
    ----------
    differences : array (R,)
        The regrets of the first agent minus those of the second, in the order in which the seeds were run.
    level : float
        The confidence of the verdict, 0.95 by default.

    Examples
    --------
    >>> enough_seeds([-3.0, -2.0, -4.0, -3.5, -1.0, -2.0, -3.0, -2.5]).verdict.value
    'The first agent is better.'
    >>> enough_seeds([-3.0, -2.0, -4.0, 3.5, -1.0]).more
    10
    """
    differences = finite_table("differences", differences, 1)
    to_reach = math.log(2.0 / (1.0 - probability("level", level)))
    capital = log_capital(np.stack([-differences, differences]))  # (2, bets, R): on the first agent, on the second
    mixed = np.logaddexp.reduce(capital, axis=1) - math.log(len(BETS))
    reached = mixed >= to_reach
    if reached.any():
        when = int(np.argmax(reached.any(axis=0)))
        winner = int(np.argmax(reached[:, when]))
        return SeedDecision((Verdict.FIRST, Verdict.SECOND)[winner], when + 1, 0, math.exp(mixed[winner, when]))
    seeds, growth = len(differences), float(capital[..., -1].max()) / len(differences)
    most = max(seeds, 10)  # suggests at most twice the seeds at a time, as the guess is rough
    needed = math.ceil((to_reach + math.log(len(BETS))) / growth) - seeds if growth > 0.0 else most
    return SeedDecision(Verdict.UNDECIDED, seeds, min(max(needed, 1), most), math.exp(mixed[:, -1].max()))


def log_capital(differences: FloatArray) -> FloatArray:
    """Return log M_n(λ) for every λ of `BETS` and n up to R, (..., bets, R), for `differences` (..., R)."""
    counted = np.where(np.abs(differences) > NO_REGRET, differences, 0.0)
    squares = np.cumsum(counted**2, axis=-1) / np.arange(1, counted.shape[-1] + 1)
    x = np.divide(counted, np.sqrt(squares), out=np.zeros_like(counted), where=squares > 0.0)
    # e^y / cosh y = 2 / (1 + e^(-2y))
    gains = math.log(2.0) - np.logaddexp(0.0, -2.0 * np.array(BETS)[:, None] * x[..., None, :])
    return np.asarray(np.cumsum(gains, axis=-1))


def compare_runs(runs: pandas.DataFrame, *, against: str | None = None) -> list[dict[str, Any]]:
    """Return a record for each world, adversary and pair of agents: `compare_all` and `enough_seeds` on their regrets.

    Only seeds that all agents have finished count. In a world whose truth is unknown, minus the return takes the place
    of regret: the same differences, but for noise.

    Parameters
    ----------
    runs : DataFrame
        A row for each run, as in `Results`.
    against : str, optional
        The agent with which all others are compared; by default every two agents are.

    Examples
    --------
    >>> import pandas
    >>> lost = {"omg": [1.0, 2.0], "greedy": [3.0, 3.0]}
    >>> runs = [(agent, seed, each) for agent, all in lost.items() for seed, each in enumerate(all)]
    >>> table = pandas.DataFrame(runs, columns=["agent", "seed", "regret"])
    >>> compare_runs(table.assign(world="decoy", adversary="iid", **{"return": 0.0}))[0]["difference"]
    -1.5
    """
    if runs.empty:
        raise ValueError("`runs` must hold a finished run, got none")
    records = []
    runs = runs.assign(regret=runs["regret"].fillna(-runs["return"]))
    for (world, adversary), group in runs.groupby(["world", "adversary"], sort=False):
        regrets = group.pivot_table(index="seed", columns="agent", values="regret", sort=False).dropna()
        pairs = compare_all({str(agent): regrets[agent] for agent in regrets}, against=against)
        for pair in pairs:
            difference = (regrets[pair.first] - regrets[pair.second]).sort_index()
            decision = enough_seeds(difference, 1.0 - SIGNIFICANT / len(pairs))  # corrected for the number of pairs
            verdict = decision.verdict.value.replace("The first agent", pair.first)
            verdict = verdict.replace("The second agent", pair.second)
            labels = {"world": str(world), "adversary": str(adversary)}
            records.append({**labels, **pair._asdict(), "sequential": verdict, "more_seeds": decision.more})
    return records
