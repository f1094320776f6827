"""How often tests between agents err, in simulated studies whose truth is known: `python -m lab.benchmarks.verdicts`.

A study is a row of differences, first agent minus second, a column per seed. It is judged with 10 seeds, and by
somebody who looks again after every seed from the third to the thirtieth and stops at the first verdict. About
averages, a verdict is wrong if the expected difference is zero, or has the other sign; about most seeds, if neither
agent is ahead with a probability above one half, or the other is. `docs/studies.md` has the tables that this prints.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from omg_cmdp.validation import FloatArray
from omg_lab.reports.comparisons import log_capital
from omg_lab.reports.statistics import NO_REGRET

STUDIES, SEEDS, FIXED, LEVEL = 1000, 30, 10, 0.05
FLIPS = 1999

Draw = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]


def two_points(low: float, high: float, chance: float) -> Draw:
    """Return differences that are `high` with this chance, and `low` otherwise."""
    return lambda rng, shape: np.where(rng.uniform(size=shape) < chance, high, low)


def within(largest: float, draw: Draw) -> Draw:
    """Return differences that are cut off at ± `largest`."""
    return lambda rng, shape: np.clip(draw(rng, shape), -largest, largest)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Return Gaussian differences."""
    return rng.normal(size=shape)


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Return Student's t with 1.5 degrees of freedom."""
    return rng.standard_t(1.5, size=shape)


def skewed(centre: float) -> Draw:
    """Return log-normal differences up to 20, minus `centre`."""
    return lambda rng, shape: np.minimum(np.exp(rng.normal(size=shape)), 20.0) - centre


CUT = float(np.exp(0.5) * special.ndtr(np.log(20.0) - 1.0) + 20.0 * special.ndtr(-np.log(20.0)))
"""The mean of a log-normal number that is cut off at 20."""

AVERAGES: dict[str, tuple[Draw, float]] = {
    "normal": (within(3.0, normal), 3.0),
    "heavy (t, 1.5 degrees)": (within(30.0, heavy), 30.0),
    "skewed (log-normal)": (skewed(CUT), 20.0 - CUT),
    "rare disaster (−1, 1 in 20: +19)": (two_points(-1.0, 19.0, 0.05), 19.0),
    "two points (−1, 1 in 5: +4)": (two_points(-1.0, 4.0, 0.2), 4.0),
    "worse by disasters (−1, 1 in 20: +100)": (two_points(-1.0, 100.0, 0.05), 100.0),
}
"""Differences whose mean is zero, and the most that they can be.

In the last the first agent is worse by 4.05, and only its victory is wrong.
"""
MOST: dict[str, Draw] = {
    "normal": normal,
    "heavy (t, 1.5 degrees)": heavy,
    "skewed (log-normal)": skewed(1.0),
    "rare disaster (−1, 1 in 2: +100)": two_points(-1.0, 100.0, 0.5),
    "two points (0, 1 in 2: +1)": two_points(0.0, 1.0, 0.5),
}
"""Differences of which neither sign has a probability above one half."""
REAL: dict[str, tuple[float, float, float]] = {
    "treatment: omg and greedy": (-0.03, 3.3, 9000.0),
    "treatment: omg and epsilon-greedy": (-3.7, 1.6, 9000.0),
    "treatment: omg and ucbvi": (-374.0, 50.0, 9000.0),
    "decoy: omg and epsilon-greedy": (-61.0, 45.0, 6000.0),
    "decoy: omg and greedy": (-1432.0, 215.0, 6000.0),
}
"""Differences like those of `omg-lab demo`: their mean and deviation, and T·H."""


def scores(differences: FloatArray, largest: float | None) -> FloatArray:
    """Return the scores on which `enough_seeds` bets, for the first agent and for the second."""
    if largest is None:
        return np.stack([differences < -NO_REGRET, differences > NO_REGRET]).astype(np.float64)
    return np.asarray(0.5 + np.stack([-differences, differences]) / (2.0 * largest))


def betting(differences: FloatArray, largest: float | None) -> FloatArray:
    """Return the evidence of the test of averages, or of most seeds, for either agent after every seed.

    It is (2, studies, R), as of all tests here; above 1 it decides.
    """
    capital = log_capital(scores(differences, largest))
    return np.asarray(np.maximum.accumulate(capital, axis=-1) / np.log(2.0 / LEVEL))


def student(differences: FloatArray) -> FloatArray:
    """Return the evidence of the paired t-test."""
    n = np.arange(1, differences.shape[-1] + 1)
    mean = differences.cumsum(axis=-1) / n
    spread = np.maximum((differences**2).cumsum(axis=-1) / n - mean**2, 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = mean / np.sqrt(spread / (n - 1)) / special.stdtrit(n - 1, 1.0 - LEVEL / 2.0)
    return np.asarray(np.nan_to_num(np.stack([-evidence, evidence]), nan=0.0, posinf=0.0, neginf=0.0))


def sign_flips(differences: FloatArray) -> FloatArray:
    """Return the evidence of the sign-flip permutation test, which reports had earlier."""
    rng, evidence = np.random.default_rng(0), np.zeros((2, *differences.shape))
    for n in range(6, differences.shape[-1] + 1):
        flips = rng.choice([-1.0, 1.0], size=(FLIPS, n))
        sums, seen = np.abs(differences[:, :n] @ flips.T), differences[:, :n].sum(axis=1)
        p = (1.0 + (sums >= np.abs(seen)[:, None] - 1e-9).sum(axis=1)) / (1.0 + FLIPS)
        evidence[:, :, n - 1] = np.stack([seen < 0.0, seen > 0.0]) * (LEVEL / p)
    return evidence


def symmetric_bets(differences: FloatArray) -> FloatArray:
    """Return the evidence of the martingale for symmetric differences, which reports had earlier."""
    scale = np.sqrt((differences**2).cumsum(axis=-1) / np.arange(1, differences.shape[-1] + 1))
    x = np.stack([-differences, differences]) / np.maximum(scale, 1e-300)
    gains = [np.cumsum(np.log(2.0) - np.logaddexp(0.0, -2.0 * bet * x), axis=-1) for bet in (0.25, 0.5, 1.0, 2.0)]
    capital = np.logaddexp.reduce(gains, axis=0) - np.log(4.0)
    return np.asarray(np.maximum.accumulate(capital, axis=-1) / np.log(2.0 / LEVEL))


def wrong(evidence: FloatArray, sides: slice) -> list[float]:
    """Return the share of studies with a wrong verdict: with `FIXED` seeds, and looking after every seed."""
    decides = evidence[sides] >= 1.0
    return [float(decides[..., FIXED - 1].any(axis=0).mean()), float(decides[..., 2:].any(axis=(0, -1)).mean())]


def percent(shares: list[float]) -> str:
    """Return shares in per cent, for a table."""
    return " / ".join(f"{100.0 * share:.1f}" for share in shares)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table for the guide."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows])


def errors(rng: np.random.Generator) -> str:
    """Return how often each test about averages is wrong, by shape, in per cent."""
    rows = []
    for name, (draw, largest) in AVERAGES.items():
        differences = draw(rng, (STUDIES, SEEDS))
        sides = slice(0, 1) if name.startswith("worse") else slice(0, 2)
        tests = [test(differences) for test in (student, sign_flips, symmetric_bets)]
        rows.append([name, *(percent(wrong(found, sides)) for found in (*tests, betting(differences, largest)))])
    return table(["differences", "Student", "sign flips", "symmetric bets", "**averages**"], rows)


def errors_of_most(rng: np.random.Generator) -> str:
    """Return how often the test of most seeds is wrong, by shape, in per cent."""
    rows = []
    for name, draw in MOST.items():
        rows.append([name, percent(wrong(betting(draw(rng, (STUDIES, SEEDS)), None), slice(0, 2)))])
    return table(["differences", "**most seeds**"], rows)


def coverage(rng: np.random.Generator) -> str:
    """Return how often Student's 95 % interval holds the mean, by shape and number of seeds, in per cent."""
    rows = []
    for name, (draw, _) in list(AVERAGES.items())[:5]:
        evidence = np.abs(student(draw(rng, (20 * STUDIES, SEEDS)))).max(axis=0)
        rows.append([name, *(f"{100.0 * (evidence[:, seeds - 1] < 1.0).mean():.0f}" for seeds in (6, 10, 30))])
    return table(["differences", "6 seeds", "10 seeds", "30 seeds"], rows)


def needed(rng: np.random.Generator) -> str:
    """Return how many seeds half of all studies need for a verdict, for differences like those of the demo."""
    rows = []
    for name, (mean, deviation, largest) in REAL.items():
        differences = rng.normal(mean, deviation, size=(200, 2000))
        found = [betting(differences, bound).max(axis=0) >= 1.0 for bound in (largest, None)]
        medians = [np.median(np.where(each.any(axis=1), each.argmax(axis=1) + 1.0, np.inf)) for each in found]
        texts = [f"{median:.0f}" if np.isfinite(median) else "more than 2000" for median in medians]
        rows.append([name, f"{mean:g} ± {deviation:g}", f"{largest:g}", *texts])
    return table(["differences", "mean ± deviation", "T·H", "**averages**", "**most seeds**"], rows)


if __name__ == "__main__":
    generator = np.random.default_rng(0)
    for part in (errors, errors_of_most, coverage, needed):
        print(f"{part(generator)}\n")
