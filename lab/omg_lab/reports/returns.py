"""Worlds whose truth is unknown: what the agents earned in them, and whether a difference is more than chance.

There is no regret: nobody knows what could have been earned.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_lab.reports.comparisons import SIGNIFICANT, compare_all
from omg_lab.reports.drawing import Figure, canvas, draw_band, legend, looks
from omg_lab.reports.formats import chance, number, plural
from omg_lab.reports.scenarios import AgentsInWorld, found_in
from omg_lab.reports.statistics import mean_interval, simultaneous_band
from omg_lab.reports.tables import ReportTable, between, cell
from omg_lab.reports.words import say
from omg_lab.studies.plan import slug
from omg_lab.studies.results import Results

if TYPE_CHECKING:
    import pandas

BLOCKS = 20
"""Returns are averaged over this many blocks of episodes, as single ones are noisy."""


class Earnings(AgentsInWorld):
    """The finished runs in one world whose truth is unknown, under one adversary."""

    @functools.cached_property
    def finals(self) -> pandas.DataFrame:
        """The mean return: a row for each seed that all agents have finished, a column per agent, best first."""
        each = self.runs.assign(mean=self.runs["return"] / self.runs["episodes"])
        table = each.pivot(index="seed", columns="agent", values="mean").dropna()
        return table[table.mean().sort_values(ascending=False, kind="stable").index]

    @functools.cached_property
    def chances(self) -> dict[frozenset[str], float]:
        """The corrected p-value of each pair of agents."""
        if not self.rivals:
            return {}
        every = compare_all({agent: -self.finals[agent].to_numpy() for agent in (self.focus, *self.rivals)})
        return {frozenset((each.first, each.second)): each.adjusted for each in every}

    def curves(self, agent: str) -> tuple[FloatArray, FloatArray]:
        """Return the last episode of each block (K,), and the mean return in it, (seeds, K)."""
        mine = self.log[(self.log["agent"] == agent) & self.log["seed"].isin(self.finals.index)]
        last = int(mine["episode"].max())
        edges = np.unique(np.linspace(0, last, min(BLOCKS, last) + 1).round().astype(np.int64))[1:]
        block = np.searchsorted(edges, mine["episode"].to_numpy())
        table = mine["return"].groupby([mine["seed"], block]).mean().unstack()
        return edges[table.columns].astype(np.float64), table.to_numpy(dtype=np.float64)


def earnings(results: Results) -> list[Earnings]:
    """Return the worlds whose truth is unknown, under each adversary, in the order of the configuration."""
    return found_in(results, Earnings, results.runs[results.runs["regret"].isna()])


def headline(earned: Earnings) -> str:
    """Return the result in words."""
    finals, (best, second, *_) = earned.finals, [*earned.agents, None]
    return say(
        "earned",
        best=best,
        mean=mean_interval(finals[best]),
        second=second,
        second_mean=None if second is None else finals[second].mean(),
        seeds=len(finals),
        p=earned.chances.get(frozenset((best, second))),
        significant=SIGNIFICANT,
    )


def earnings_table(earned: Earnings) -> ReportTable:
    """Return what every agent earned in an episode, best first, and how it compares with the agent in focus."""
    finals, focus = earned.finals, earned.focus
    against = f"p_against_{slug(focus)}"
    rows = [
        {
            "agent": agent,
            **dict(zip(("return", "low", "high"), mean_interval(finals[agent]), strict=True)),
            against: earned.chances.get(frozenset((focus, agent)), np.nan),
            "seeds": len(finals),
        }
        for agent in finals.columns
    ]
    return ReportTable(
        name=f"{earned.name}-returns",
        caption=f"Return of an episode, mean of {plural(len(finals), 'seed')}; more is better",
        rows=rows,
        columns={
            "agent": cell("agent"),
            "return": cell("return", number),
            "95 % interval": between,
            f"p against {focus}": cell(against, chance),
        },
    )


def earnings_figure(earned: Earnings) -> Figure:
    """Draw what the agents earned as they learned."""
    styles = looks([earned.focus, *earned.rivals])
    with canvas() as (drawn, (axes,)):
        for agent in earned.finals.columns:
            episodes, values = earned.curves(agent)
            draw_band(axes, episodes, simultaneous_band(values), styles[agent], agent)
        axes.set(xlabel="episode", ylabel="return", xlim=(0, None))
        legend(drawn, axes)
    caption = say("returns", blocks=len(episodes), seeds=len(earned.finals))
    return Figure(name=f"{earned.name}-returns", title="Return by episode", caption=caption, canvas=drawn)
