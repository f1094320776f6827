"""The statistics of the league, as its protocol states them. Families are the units: a world more is not a fact more.

For an agent and a family, L = log(mean regret over seeds + 1). The primary statistic of an agent is the mean of L over
the families; two agents are compared by the differences of L in the families where both play.
"""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from omg_cmdp.validation import FloatArray

FLIPS, RESAMPLES = 100_000, 2_000
LEVEL, FEWEST = 0.05, 12
"""A difference is shown at this level, and not looked for in fewer families."""
VERDICTS = {-1: "better", 0: "no difference shown", 1: "worse"}
"""What is said of OMG beside a rival."""


def log_regrets(runs: pd.DataFrame, added: float = 1.0, over_seeds: str = "mean") -> pd.DataFrame:
    """Return L: a row for each family, a column for each agent; NaN where it does not play."""
    regret = runs.pivot_table(index="family", columns="agent", values="regret", aggfunc=over_seeds, sort=False)
    return pd.DataFrame(np.log(regret + added))


def sign_flip(differences: FloatArray) -> float:
    """Return the p-value of "the differences are symmetric around 0": how often random signs reach a mean as large.

    >>> sign_flip(np.ones(10)) < 0.005 < 0.5 < sign_flip(np.array([1.0, -1.0, 1.0, -1.0]))
    True
    """
    reached = np.abs(_signs(len(differences)) @ differences) >= abs(differences.sum()) * (1.0 - 1e-12)
    return float((reached.sum() + 1.0) / (FLIPS + 1.0))


@functools.lru_cache(maxsize=2)
def _signs(count: int) -> FloatArray:
    return np.random.default_rng(0).choice([-1.0, 1.0], (FLIPS, count))


def holm(p_values: pd.Series[float]) -> pd.Series[float]:
    """Return the p-values corrected for their number (Holm 1979).

    >>> holm(pd.Series([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    ordered = p_values.sort_values()
    factors = np.arange(len(ordered), 0, -1)
    return pd.Series(np.minimum(np.maximum.accumulate(ordered * factors), 1.0), ordered.index)[p_values.index]


def interval(runs: pd.DataFrame, ours: str, rival: str) -> tuple[float, float]:
    """Return a 95 % interval of the mean difference of L, by a bootstrap of families and of seeds within them."""
    generator, tables = np.random.default_rng(0), []
    for _, family in runs[runs["agent"].isin((ours, rival))].groupby("family", sort=False):
        both = family.pivot_table(index="seed", columns="agent", values="regret")
        if {ours, rival} <= set(both):
            tables.append(both[[ours, rival]].dropna().to_numpy())
    resampled = []
    for table in tables:  # of the seeds of a family, as often as there are leagues
        means = table[generator.integers(len(table), size=(RESAMPLES, len(table)))].mean(axis=1)
        resampled.append(-np.diff(np.log(means + 1.0), axis=1)[:, 0])
    families = generator.integers(len(tables), size=(RESAMPLES, len(tables)))
    # A family that is drawn twice comes with other seeds each time.
    leagues = generator.integers(RESAMPLES, size=families.shape)
    means = np.array(resampled)[families, leagues].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def comparisons(runs: pd.DataFrame, ours: str) -> pd.DataFrame:
    """Return OMG beside every rival: the difference of L, its interval, p-values, and the verdict in words.

    Rivals that play in fewer than `FEWEST` families are not tested, and do not count for Holm's method.
    """
    logs = log_regrets(runs)
    rivals = [agent for agent in logs if agent != ours]
    differences = {rival: (logs[ours] - logs[rival]).dropna() for rival in rivals}
    table = pd.DataFrame({"families": {rival: len(differences[rival]) for rival in rivals}})
    table["difference"] = pd.Series({rival: float(differences[rival].mean()) for rival in rivals})
    bounds = {rival: interval(runs, ours, rival) for rival in rivals}
    table["low"], table["high"] = (pd.Series({rival: bounds[rival][side] for rival in rivals}) for side in (0, 1))
    tested = table.index[table["families"] >= FEWEST]
    table["p, Holm"] = holm(
        pd.Series({rival: sign_flip(differences[rival].to_numpy()) for rival in tested}, dtype=float)
    )
    sides = np.sign(table["difference"]).astype(int).where(table["p, Holm"] <= LEVEL, 0)
    return table.assign(verdict=sides.map(VERDICTS).where(table["p, Holm"].notna(), "not tested"))


def sensitivity(runs: pd.DataFrame, ours: str, rivals: list[str]) -> pd.DataFrame:
    """Return the mean difference of L to each rival under other choices, and the range when a family is left out."""
    variants = {
        "+ 0.1": log_regrets(runs, 0.1),
        "+ 1": log_regrets(runs),
        "+ 10": log_regrets(runs, 10.0),
        "median over seeds": log_regrets(runs, over_seeds="median"),
        "over uniform's": log_regrets(_over_uniform(runs), 1e-3),
    }
    rows = {}
    for rival in rivals:
        row = {name: float((logs[ours] - logs[rival]).mean()) for name, logs in variants.items()}
        each = (variants["+ 1"][ours] - variants["+ 1"][rival]).dropna()
        without = (each.sum() - each) / (len(each) - 1)
        rows[rival] = {**row, "least without one": without.min(), "most without one": without.max()}
    return pd.DataFrame(rows).T


def _over_uniform(runs: pd.DataFrame) -> pd.DataFrame:
    scale = runs[runs["agent"] == "uniform"].groupby("family")["regret"].mean()
    return runs.assign(regret=runs["regret"] / runs["family"].map(scale))


def disasters(runs: pd.DataFrame) -> pd.DataFrame:
    """Return, for each agent, its worst family beside the best agent there, and the worst tenth of its seeds.

    The worst tenth is the mean, over families, of log(1 + the mean regret of the worst tenth of the seeds).
    """
    regret = np.exp(log_regrets(runs))
    over_best = regret.div(regret.min(axis=1), axis=0)
    tail = runs.groupby(["family", "agent"])["regret"].agg(lambda each: each.nlargest(max(1, len(each) // 10)).mean())
    return pd.DataFrame(
        {
            "worst family": over_best.max(),
            "where": over_best.idxmax(),
            "worst tenth": np.log(tail + 1.0).groupby("agent").mean(),
        }
    )
