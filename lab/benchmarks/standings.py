"""The tables of a league: ratios to the best agent of each cell and to posterior sampling, and the regrets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from omg_lab.studies.results import Results

from .grid import markdown

NEARLY_NOTHING = 1.0
"""Added to both sides of a ratio of regrets: below it, differences are luck."""

EPSILON = 0.2
"""An episode that loses more is a mistake."""

OWN_SECONDS = ["seconds_deciding", "seconds_learning"]
REFERENCE = "posterior sampling"


def table(results: Results, constants: Mapping[str, float | None]) -> pd.DataFrame:
    """Return the runs, with the constant of the agent, its mistakes, what the first episode lost, and its own time."""
    rows = []
    for run in results.runs.to_dict("records"):
        log = results.log_of(run["run"], columns=["regret", *OWN_SECONDS])
        own = 1e6 * log[OWN_SECONDS].sum(axis=1).to_numpy()
        tenths = np.array_split(own, 10)
        times = zip(("µs", "µs early", "µs late"), (own, tenths[1], tenths[-1]), strict=True)
        constant = constants[run["agent"]]
        medians = {name: float(np.median(part)) for name, part in times if len(part)}
        lost = {"first": log["regret"].iloc[0], "mistakes": int((log["regret"] > EPSILON).sum())}
        rows.append({**run, **medians, **lost, "constant": "" if constant is None else f"{constant:g}"})
    return pd.DataFrame(rows)


def mean_regrets(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean regret over seeds: a row for each world and adversary, a column for each agent."""
    return runs.pivot_table(index=["world", "adversary"], columns="agent", values="regret", sort=False)


def ratios_to_the_best(regret: pd.DataFrame) -> pd.DataFrame:
    """Return (R + 1)/(R of the best agent of the cell + 1)."""
    return (regret + NEARLY_NOTHING).div(regret.min(axis=1) + NEARLY_NOTHING, axis=0)


def geometric_mean(ratio: pd.DataFrame) -> pd.Series[float]:
    """Return the geometric mean over the cells in which an agent played."""
    return np.exp(np.log(ratio).mean())


def standings(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the league table, the best agent first."""
    regret = mean_regrets(runs)
    ratio, agents = ratios_to_the_best(regret), runs.groupby("agent")
    means = [name for name in ("mistakes", "µs", "µs early", "µs late") if name in runs]
    made = pd.DataFrame(
        {
            "constant": agents["constant"].first(),
            "ratio, geometric mean": geometric_mean(ratio).round(2),
            "worst ratio": ratio.max().round(1),
            "where": ratio.idxmax().map(", ".join),
            "mean rank": regret.rank(axis=1).mean().round(1),
            "mean regret": regret.mean().round(1),
            **{name: agents[name].mean().round() for name in means},
            "scenarios": regret.count(),
        }
    )
    return made.sort_values("ratio, geometric mean")


def over_posterior_sampling(regret: pd.DataFrame) -> pd.DataFrame:
    """Return (R + 1)/(R of posterior sampling + 1): geometric mean, worst cell, and the mean under each adversary."""
    ratio = (regret + NEARLY_NOTHING).div(regret[REFERENCE] + NEARLY_NOTHING, axis=0)
    # "adaptive of 3" is adaptive too.
    kinds = ratio.index.get_level_values("adversary").str.partition(" ").get_level_values(0)
    columns = {
        "geometric mean": geometric_mean(ratio),
        "worst": ratio.max(),
        "where": ratio.idxmax().map(", ".join),
        **{str(kind): geometric_mean(ratio[kinds == kind]) for kind in dict.fromkeys(kinds)},
    }
    return pd.DataFrame(columns).round(2).sort_values("geometric mean")


def summary(runs: pd.DataFrame) -> str:
    """Return the league table, the ratios to posterior sampling if it played, and the mean regret of each cell."""
    league, regret = standings(runs), mean_regrets(runs)
    parts = [markdown(league.reset_index())]
    if REFERENCE in regret:
        parts += [f"Over {REFERENCE}:", markdown(over_posterior_sampling(regret).reset_index())]
    return "\n\n".join([*parts, "Mean regret:", markdown(regret[league.index].round(1).reset_index())])


def at_the_end(grids: Mapping[str, tuple[float, ...]], constants: Mapping[str, float | None]) -> str:
    """Return the names of agents whose constant is an end of their grid.

    >>> at_the_end({"a": (1.0, 2.0, 3.0), "b": (1.0, 2.0, 3.0), "c": (1.0, 2.0)}, {"a": 2.0, "b": 1.0, "c": 2.0})
    'b (smallest, 1), c (largest, 2)'
    """
    ends = {
        name: "smallest" if constants[name] == min(grid) else "largest"
        for name, grid in grids.items()
        if constants[name] in (min(grid), max(grid))
    }
    return ", ".join(f"{name} ({end}, {constants[name]:g})" for name, end in ends.items()) or "none"
