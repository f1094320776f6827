"""Tables of a report: exact numbers in CSV, rounded ones in HTML and LaTeX."""

from __future__ import annotations

import csv
import dataclasses
import html
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omg_cmdp.logs.writers import csv_cell
from omg_cmdp.persistence import whole_file
from omg_lab.reports.comparisons import compare_all
from omg_lab.reports.formats import chance, number
from omg_lab.reports.scenarios import regret_interval

if TYPE_CHECKING:
    import pandas

SIGNIFICANT = 0.05
_TEX = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{letter: f"\\{letter}" for letter in "&%#_${}"},
    **{letter: f"{{{letter}}}" for letter in "[]*"},  # behind the end of a row they would be its options
    **{"−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "–": "--", "\N{NARROW NO-BREAK SPACE}": r"\,"},
}
_EXPONENT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of raw values, and the columns that a reader sees: heading -> text of each row."""

    name: str
    caption: str
    raw: Sequence[Mapping[str, Any]]
    shown: Mapping[str, Sequence[str]]

    def html(self) -> str:
        """Return the table for a page; a wide one scrolls on its own."""
        caption = html.escape(self.caption)
        head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in self.shown)
        rows = [
            f'<th scope="row">{_broken(first)}</th>' + "".join(f"<td>{html.escape(text)}</td>" for text in rest)
            for first, *rest in zip(*self.shown.values(), strict=True)
        ]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return (
            f'<div class="table" role="region" aria-label="{caption}" tabindex="0"><table><caption>{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def latex(self) -> str:
        r"""Return a tabular of the package booktabs."""
        lines = [list(self.shown), *zip(*self.shown.values(), strict=True)]
        head, *body = [" & ".join(_tex(text) for text in line) + r" \\" for line in lines]
        columns = "l" + "r" * (len(self.shown) - 1)
        rules = [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join([f"% {' '.join(self.caption.split())}", *rules]) + "\n"

    def save(self, directory: Path) -> list[Path]:
        """Write the table as CSV and LaTeX, and return the paths."""
        paths = [directory / f"{self.name}.{kind}" for kind in ("csv", "tex")]
        with whole_file(paths[0]) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.raw[0])
            writer.writerows(
                [csv_cell(each) if isinstance(each, str) else each for each in row.values()] for row in self.raw
            )
        with whole_file(paths[1]) as temporary:
            temporary.write_text(self.latex(), encoding="utf-8")
        return paths


def agents_table(
    name: str, finals: pandas.DataFrame, exploring: Mapping[str, float], milliseconds: Mapping[str, float]
) -> Table:
    """Return the final regret of every agent: `finals` has a row per seed and a column per agent, best first.

    `exploring` is the part of it that is the price of exploring; nan for an agent without a model.
    """
    rows = []
    least = float(finals.mean().iloc[0])
    for agent in finals.columns:
        mean, low, high = regret_interval(finals[agent])
        ratio = mean / least if least > 0.0 else math.nan
        rows.append(
            {
                "agent": agent,
                "regret": mean,
                "low": low,
                "high": high,
                "exploring": exploring[agent],
                "ratio_to_best": ratio,
                "milliseconds_per_episode": milliseconds[agent],
                "seeds": len(finals),
            }
        )
    intervals = ["–" if math.isnan(row["low"]) else f"{number(row['low'])} to {number(row['high'])}" for row in rows]
    return Table(
        name=f"{name}-agents",
        caption=f"Total regret, mean of {len(finals)} seeds; less is better",
        raw=rows,
        shown={
            "agent": [row["agent"] for row in rows],
            "regret": [number(row["regret"]) for row in rows],
            "95 % interval": intervals,
            "of it for exploring": [number(row["exploring"]) for row in rows],
            "× best": [number(row["ratio_to_best"]) for row in rows],
            "ms per episode": [number(row["milliseconds_per_episode"]) for row in rows],
        },
    )


def comparisons_table(name: str, finals: pandas.DataFrame, focus: str) -> Table | None:
    """Return the comparisons of all pairs of agents; those with `focus` are shown. None if it is alone."""
    if len(finals.columns) < 2:
        return None
    order = [focus, *(agent for agent in finals.columns if agent != focus)]
    every = compare_all({agent: finals[agent].to_numpy() for agent in order})
    own = [each for each in every if each.first == focus]
    verdicts = [
        ("lost less" if each.difference < 0.0 else "lost more") if each.adjusted <= SIGNIFICANT else "undecided"
        for each in own
    ]
    return Table(
        name=f"{name}-comparisons",
        caption=f"The regret of {focus} minus that of each of the others",
        raw=[each._asdict() for each in every],
        shown={
            f"{focus} against": [each.second for each in own],
            "difference": [number(each.difference) for each in own],
            "p, corrected": [chance(each.adjusted) for each in own],
            f"result for {focus}": verdicts,
        },
    )


def _broken(name: str) -> str:
    """Return a name that may be broken after its underscores on a narrow screen."""
    return html.escape(name).replace("_", "_<wbr>")


def _tex(text: str) -> str:
    escaped = "".join(_TEX.get(letter, letter) for letter in text)
    return re.sub("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda found: f"$^{{{found[0].translate(_EXPONENT)}}}$", escaped)
