"""Worlds whose truth is unknown: what the agents earned in them, and whether a difference is more than chance.

There is no regret: nobody knows what could have been earned.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_lab.reports.comparisons import compare_all
from omg_lab.reports.drawing import Figure, canvas, legend, looks
from omg_lab.reports.formats import chance, count, estimate, number, plural
from omg_lab.reports.scenarios import Place, focus_of, played_worlds
from omg_lab.reports.statistics import mean_interval, simultaneous_band
from omg_lab.reports.tables import SIGNIFICANT, Table
from omg_lab.studies.plan import slug
from omg_lab.studies.results import Results

if TYPE_CHECKING:
    import pandas

BLOCKS = 20
"""Returns are averaged over this many blocks of episodes, as single ones are noisy."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Earnings(Place):
    """The finished runs in one world whose truth is unknown, under one adversary."""

    focus: str
    finals: pandas.DataFrame
    """The mean return of an episode: a row per seed that all agents have finished, a column per agent, best first."""
    runs: pandas.DataFrame
    log: pandas.DataFrame

    @property
    def episodes(self) -> int:
        """How many each run has."""
        return int(self.runs["episodes"].iloc[0])

    @functools.cached_property
    def rivals(self) -> list[str]:
        """All agents but the one in focus, best first."""
        return [agent for agent in self.finals.columns if agent != self.focus]

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
    configuration, runs = results.configuration, results.runs[results.runs["regret"].isna()]
    found = []
    for world, adversary in itertools.product(played_worlds(configuration), configuration["adversaries"]):
        mine = runs[(runs["world"] == world) & (runs["adversary"] == adversary)]
        each = mine.assign(mean=mine["return"] / mine["episodes"])
        finals = each.pivot(index="seed", columns="agent", values="mean").dropna()
        if len(finals):
            finals = finals[finals.mean().sort_values(ascending=False, kind="stable").index]
            focus = focus_of(configuration, list(finals.columns))
            log = results.log[(results.log["world"] == world) & (results.log["adversary"] == adversary)]
            found.append(Earnings(world=world, adversary=adversary, focus=focus, finals=finals, runs=mine, log=log))
    return found


def headline(earned: Earnings) -> str:
    """Return the result in words."""
    finals, best = earned.finals, str(earned.finals.columns[0])
    words = f"{best} earned most: {estimate(*mean_interval(finals[best]))} in an episode"
    if len(finals.columns) == 1:
        return f"{words}."
    second = str(finals.columns[1])
    p = next(
        each.adjusted
        for each in compare_all({str(agent): -finals[agent].to_numpy() for agent in finals})
        if {each.first, each.second} == {best, second}
    )
    verdict = "is more than" if p <= SIGNIFICANT else "may be"
    return (
        f"{words}; {second} earned {number(finals[second].mean())}. With {plural(len(finals), 'seed')}, the difference "
        f"{verdict} chance (p = {chance(p)}, corrected). What could have been earned is unknown: this is no regret."
    )


def earnings_table(earned: Earnings) -> Table:
    """Return what every agent earned in an episode, best first, and how it compares with the agent in focus."""
    finals, focus = earned.finals, earned.focus
    pairs = {}
    if earned.rivals:
        every = compare_all({agent: -finals[agent].to_numpy() for agent in (focus, *earned.rivals)})
        pairs = {each.second: each.adjusted for each in every if each.first == focus}
    rows = []
    for agent in finals.columns:
        mean, low, high = mean_interval(finals[agent])
        own = {"agent": agent, "return": mean, "low": low, "high": high}
        rows.append({**own, f"p_against_{slug(focus)}": pairs.get(agent, np.nan), "seeds": len(finals)})
    return Table(
        name=f"{earned.name}-returns",
        caption=f"Return of an episode, mean of {plural(len(finals), 'seed')}; more is better",
        raw=rows,
        shown={
            "agent": [row["agent"] for row in rows],
            "return": [number(row["return"]) for row in rows],
            "95 % interval": [
                "–" if np.isnan(row["low"]) else f"{number(row['low'])} to {number(row['high'])}" for row in rows
            ],
            f"p against {focus}": [chance(pairs[row["agent"]]) if row["agent"] in pairs else "–" for row in rows],
        },
    )


def earnings_figure(earned: Earnings) -> Figure:
    """Draw what the agents earned as they learned."""
    styles = looks([earned.focus, *earned.rivals])
    with canvas() as (drawn, (axes,)):
        for agent in earned.finals.columns:
            episodes, values = earned.curves(agent)
            band, style = simultaneous_band(values), styles[agent]
            axes.fill_between(episodes, band.low, band.high, color=style.color, alpha=0.18, linewidth=0)
            axes.plot(episodes, band.mean, label=agent, **style.line(len(episodes)))
        axes.set(xlabel="episode", ylabel="return", xlim=(0, None))
        legend(drawn, axes)
    seeds, blocks = plural(len(earned.finals), "seed"), count(len(episodes))
    caption = f"What an episode earned, averaged over {blocks} blocks of episodes and over {seeds}; more is better."
    caption += " Each band holds the whole true curve with 95 % confidence." if len(earned.finals) > 1 else ""
    return Figure(name=f"{earned.name}-returns", title="Return by episode", caption=caption, canvas=drawn)
