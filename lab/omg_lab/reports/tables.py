"""Tables of a report: exact numbers in CSV, rounded ones in HTML and LaTeX."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omg_cmdp.logs.writers import csv_cell
from omg_cmdp.persistence import whole_file
from omg_lab.reports.comparisons import SIGNIFICANT, compare_all
from omg_lab.reports.formats import chance, interval, number
from omg_lab.reports.scenarios import Scenario, regret_interval, totals
from omg_lab.reports.words import ENVIRONMENT

if TYPE_CHECKING:
    import pandas

_TEX = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{letter: f"\\{letter}" for letter in "&%#_${}"},
    **{letter: f"{{{letter}}}" for letter in "[]*"},  # behind the end of a row they would be its options
    **{"−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "–": "--", "\N{NARROW NO-BREAK SPACE}": r"\,"},
}
_EXPONENT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

Cells = Mapping[str, Any]
"""A row of exact values by name."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportTable:
    """Rows of exact values, and the columns that a reader sees: heading -> the text of a row."""

    name: str
    caption: str
    rows: Sequence[Cells]
    columns: Mapping[str, Callable[[Cells], str]]
    shown: Callable[[Cells], bool] = lambda row: True
    """Which rows a reader sees; the CSV file has all."""

    def lines(self) -> list[list[str]]:
        """Return the texts of the rows that are shown."""
        return [[text(row) for text in self.columns.values()] for row in self.rows if self.shown(row)]

    def html(self) -> str:
        """Return the table for a page."""
        return str(ENVIRONMENT.get_template("parts.html").module.table(self))  # type: ignore[attr-defined]

    def latex(self) -> str:
        """Return a tabular of the package booktabs."""
        import pandas

        # pandas escapes neither "[" behind the end of a row nor the signs of our numbers, so that is done here.
        shown = pandas.DataFrame(
            [[_tex(text) for text in line] for line in self.lines()], columns=map(_tex, self.columns)
        )
        body = shown.to_latex(index=False, escape=False, column_format="l" + "r" * (len(self.columns) - 1))
        return f"% {' '.join(self.caption.split())}\n{body}"

    def save(self, directory: Path) -> list[Path]:
        """Write the table as CSV and LaTeX, and return the paths."""
        import pandas

        paths = [directory / f"{self.name}.{kind}" for kind in ("csv", "tex")]
        exact = pandas.DataFrame(self.rows).map(lambda each: csv_cell(each) if isinstance(each, str) else each)
        for path, text in zip(paths, (exact.to_csv(index=False), self.latex()), strict=True):
            with whole_file(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return paths


def cell(name: str, text: Callable[[Any], str] = str) -> Callable[[Cells], str]:
    """Return the text of one value of a row."""
    return lambda row: text(row[name])


def between(row: Cells) -> str:
    """Return the interval of a row, from `low` to `high`."""
    return interval(row["low"], row["high"])


def regret_table(found: Sequence[Scenario]) -> ReportTable:
    """Return the regret of every agent in a scenario, or in several together."""
    finals = totals(found)
    exploring = {agent: sum(each.exploring(agent) for each in found) for agent in finals}
    milliseconds = {agent: sum(each.milliseconds(agent) for each in found) / len(found) for agent in finals}
    return agents_table(found[0].name if len(found) == 1 else "overview", finals, exploring, milliseconds)


def agents_table(
    name: str, finals: pandas.DataFrame, exploring: Mapping[str, float], milliseconds: Mapping[str, float]
) -> ReportTable:
    """Return the final regret of every agent: `finals` has a row per seed and a column per agent, best first.

    `exploring` is the part of it that is the price of exploring; nan for an agent without a model.
    """
    least = float(finals.mean().iloc[0])
    rows = [
        {
            "agent": agent,
            **dict(zip(("regret", "low", "high"), regret_interval(finals[agent]), strict=True)),
            "exploring": exploring[agent],
            "ratio_to_best": float(finals[agent].mean()) / least if least > 0.0 else math.nan,
            "milliseconds_per_episode": milliseconds[agent],
            "seeds": len(finals),
        }
        for agent in finals.columns
    ]
    return ReportTable(
        name=f"{name}-agents",
        caption=f"Total regret, mean of {len(finals)} seeds; less is better",
        rows=rows,
        columns={
            "agent": cell("agent"),
            "regret": cell("regret", number),
            "95 % interval": between,
            "spent on exploring": cell("exploring", number),
            "× best": cell("ratio_to_best", number),
            "ms per episode": cell("milliseconds_per_episode", number),
        },
    )


def comparisons_table(name: str, finals: pandas.DataFrame, focus: str) -> ReportTable:
    """Return the comparisons of all pairs of agents, two or more; those with `focus` are shown."""
    order = [focus, *(agent for agent in finals.columns if agent != focus)]

    def verdict(row: Cells) -> str:
        decided = "lost less" if row["difference"] < 0.0 else "lost more"
        return decided if row["adjusted"] <= SIGNIFICANT else "undecided"

    return ReportTable(
        name=f"{name}-comparisons",
        caption=f"The regret of {focus} minus that of each of the others",
        rows=[each._asdict() for each in compare_all({agent: finals[agent].to_numpy() for agent in order})],
        columns={
            f"{focus} against": cell("second"),
            "difference": cell("difference", number),
            "p, corrected": cell("adjusted", chance),
            f"result for {focus}": verdict,
        },
        shown=lambda row: row["first"] == focus,
    )


def _tex(text: str) -> str:
    escaped = "".join(_TEX.get(letter, letter) for letter in text)
    return re.sub("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda found: f"$^{{{found[0].translate(_EXPONENT)}}}$", escaped)
