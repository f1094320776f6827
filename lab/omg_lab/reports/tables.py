"""Tables of a report: exact numbers in CSV, rounded ones in HTML."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omg_cmdp.logs.exports import csv_cell
from omg_cmdp.persistence import whole_file
from omg_lab.reports.comparisons import PairedComparison
from omg_lab.reports.formats import interval, not_negative, number, percent, plural
from omg_lab.reports.scenarios import Scenario
from omg_lab.reports.words import ENVIRONMENT

Cells = Mapping[str, Any]
"""A row of exact values by name."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportTable:
    """Rows of exact values, and the columns that a reader sees: heading -> the text of a row."""

    name: str
    caption: str
    rows: Sequence[Cells]
    columns: Mapping[str, Callable[[Cells], str]]

    def lines(self) -> list[list[str]]:
        """Return the texts of the rows."""
        return [[text(row) for text in self.columns.values()] for row in self.rows]

    def html(self) -> str:
        """Return the table for a page."""
        return str(ENVIRONMENT.get_template("parts.html").module.table(self))  # type: ignore[attr-defined]

    def save(self, directory: Path) -> Path:
        """Write the table as CSV, and return its path."""
        import pandas

        path = directory / f"{self.name}.csv"
        exact = pandas.DataFrame(self.rows).map(lambda each: csv_cell(each) if isinstance(each, str) else each)
        with whole_file(path) as temporary:
            exact.to_csv(temporary, index=False)
        return path


def cell(name: str, text: Callable[[Any], str] = str) -> Callable[[Cells], str]:
    """Return the text of one value of a row."""
    return lambda row: text(row[name])


def agents_table(scenario: Scenario) -> ReportTable:
    """Return the total regret of every agent, best first; where it is unknown, what the agent earned in an episode."""
    exact, least = scenario.exact, float(scenario.finals.mean().iloc[0])
    measure = "regret" if exact else "return"
    rows = []
    for agent in scenario.agents:
        mean, low, high = scenario.interval(agent)
        row: dict[str, Any] = {"agent": agent, measure: mean, "low": low, "high": high}
        row["last_half"] = scenario.last_half(agent)
        if exact:
            row["share_of_optimum"] = scenario.share(agent)
            row["exploring"] = scenario.exploring(agent)
            row["ratio_to_best"] = mean / least if least > 0.0 else math.nan
        if scenario.budgeted:
            row["violation"] = scenario.mean(agent, "violation")
            row["cost"], row["budget"] = (scenario.mean(agent, name) / scenario.episodes for name in ("cost", "budget"))
        row["milliseconds_per_episode"] = scenario.milliseconds(agent)
        rows.append({**row, "seeds": len(scenario.finals)})
    seeds = plural(len(scenario.finals), "seed")
    regret = {"spent on exploring": cell("exploring", not_negative), "× best": cell("ratio_to_best", number)}
    if exact and not math.isnan(rows[0]["share_of_optimum"]):
        regret = {"earned of the optimum": lambda row: percent(row["share_of_optimum"], 1), **regret}
    spent = {"total violation": cell("violation", number), "cost of an episode": cell("cost", number)}
    within = " against the best policy within the budget (of several, the tightest is shown)" * scenario.budgeted
    measured = f"Total regret{within}, less" if exact else "Return of an episode, more"
    return ReportTable(
        name=f"{scenario.name}-agents",
        caption=f"{measured} is better: mean of {seeds}, with Student's interval, which takes seeds as Gaussian",
        rows=rows,
        columns={
            "agent": cell("agent"),
            f"mean {measure}": cell(measure, number),
            "95 % interval": lambda row: interval(row["low"], row["high"]),
            **({**spent, "budget": cell("budget", number)} if scenario.budgeted else {}),
            "in the last half": cell("last_half", percent if exact else number),
            **(regret if exact else {}),
            "ms per episode": cell("milliseconds_per_episode", number),
        },
    )


def comparisons_table(scenario: Scenario, pairs: Iterable[PairedComparison]) -> ReportTable:
    """Return comparisons of agents: by how much the mean losses differ, and which agent is better by either test."""

    def verdict(name: str, row: Cells) -> str:
        better, p, more = (row[f"{part}_{name}"] for part in ("better", "p", "more_seeds"))
        if p is None:
            return "not tested"
        return f"{better} ({p:.3f})" if better else f"undecided ({p:.3f}): {plural(more, 'more seed') if more else '–'}"

    return ReportTable(
        name=f"{scenario.name}-comparisons",
        caption="Who loses less, on average and on most seeds (p-values in brackets), and a guess of what is missing",
        rows=[pair.record() for pair in pairs],
        columns={
            "first": cell("first"),
            "second": cell("second"),
            "first minus second": cell("difference", number),
            "bounds for that": lambda row: "–" if row["low"] is None else interval(row["low"], row["high"]),
            "better on average": functools.partial(verdict, "mean"),
            "first lost less on": lambda row: f"{row['ahead']} of {len(scenario.finals)}",
            "better on most seeds": functools.partial(verdict, "most"),
        },
    )
