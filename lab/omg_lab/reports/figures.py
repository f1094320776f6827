"""Figures that compare the agents of a scenario, each with a caption that says what it shows.

All show the exact regret of the policies played: V* - V^π, computed in the true MDP and not estimated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_lab.reports.drawing import INK, Figure, canvas, legend, logarithmic, looks, thinned
from omg_lab.reports.formats import count, exponent, number
from omg_lab.reports.scenarios import Scenario, regret_interval
from omg_lab.reports.statistics import NO_REGRET, Band, fitted_slope, simultaneous_band
from omg_lab.reports.words import say

REFERENCE = {"color": INK, "linewidth": 0.9, "linestyle": (0, (1, 2))}
CROWDED = 5.0
"""A curve that ends this many times as high as that of the agent in focus is cut off, to leave room for the others."""
BANDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("facecolor", {"alpha": 0.22, "linewidth": 0.0}),
    ("edgecolor", {"alpha": 0.7, "linewidth": 0.6, "facecolor": "none", "hatch": "////"}),
)
"""The fillings of the bands of two agents; more could not be told apart."""
IDLE = "lost nothing in the last half"
SPREAD = 20.0
"""Totals that differ by more than this factor are drawn on a logarithmic axis."""


def comparing_figures(scenario: Scenario) -> list[Figure]:
    """Return the figures that compare agents, in the order of a report."""
    drawn = [totals(scenario), regret(scenario)]
    return [*drawn, rates(scenario)] if scenario.episodes > 1 else drawn


def totals(scenario: Scenario) -> Figure:
    """Draw the total regret of each agent: the seeds, their mean, and its interval."""
    agents, styles = scenario.agents, looks(scenario.everyone)
    smallest, largest = float(scenario.finals.min(axis=None)), float(scenario.finals.max(axis=None))
    wide = 0.0 < SPREAD * smallest < largest
    with canvas(height=0.8 + 0.28 * len(agents)) as (drawn, (axes,)):
        for place, agent in enumerate(agents):
            values, color = scenario.finals[agent].to_numpy(), styles[agent].color
            mean, low, high = regret_interval(values)
            axes.plot(values, np.full(len(values), place), "|", color=color, alpha=0.7, markersize=10)
            axes.plot([max(low, 0.5 * smallest) if wide else low, high], [place, place], color=color, linewidth=2.5)
            axes.plot(mean, place, styles[agent].marker, color=color, markersize=7)
        axes.set_yticks(range(len(agents)), agents)
        axes.set_ylim(len(agents) - 0.5, -0.5)
        axes.set_xlabel(f"total regret after {count(scenario.episodes)} episodes")
        axes.grid(visible=False, axis="y")
        if wide:
            logarithmic(axes.xaxis)
    best, worst = agents[0], agents[-1]
    ends = {"lost": regret_interval(scenario.finals[best]), "worst_loss": scenario.finals[worst].mean()}
    caption = say("totals", best=best, worst=worst, wide=wide, **ends)
    return Figure(name=f"{scenario.name}-totals", title="Total regret by agent", caption=caption, canvas=drawn)


def regret(scenario: Scenario) -> Figure:
    """Draw cumulative regret with simultaneous bands, and √t growth beside the curve of the agent in focus."""
    focus, styles, ends = scenario.focus, looks(scenario.everyone), scenario.finals.mean()
    out = [agent for agent in scenario.agents if ends[agent] > CROWDED * ends[focus]]
    bands = {agent: _band(scenario, agent) for agent in scenario.agents}
    banded = [agent for agent in (focus, *scenario.rivals[:1]) if agent not in out]
    episodes, band = bands[focus]
    quarter = int(np.searchsorted(episodes, scenario.episodes / 4.0))
    grown = band.mean[quarter] * np.sqrt(episodes / episodes[quarter])
    with canvas() as (drawn, (axes,)):
        for agent, (paint, fill) in zip(banded, BANDS, strict=False):
            at, each = bands[agent]
            axes.fill_between(at, each.low, each.high, **{paint: styles[agent].color}, **fill)
        for agent, (at, each) in bands.items():
            axes.plot(at, each.mean, label=agent, **styles[agent].line(len(at)))
        axes.plot(episodes, grown, label="√t growth", **REFERENCE)
        axes.set(xlabel="episode", ylabel="cumulative regret", xlim=(0, None), ylim=(0, None))
        if out and ends[focus] > 0.0:
            edges = {agent: [band.mean, band.high][: 1 + (agent in banded)] for agent, (_, band) in bands.items()}
            tops = [np.nanmax(edges[agent]) for agent in bands if agent not in out]
            axes.set_ylim(0, 1.05 * max(2.0 * ends[focus], *tops))
        legend(drawn, axes)
    caption = say(
        "regret",
        apart=_apart(scenario, bands),
        focus=focus,
        episodes=scenario.episodes,
        late=_late(*scenario.curves(focus, "cumulative_regret")),
        sqrt_late=1.0 - math.sqrt(0.5),
        out=[f"{agent} ({number(ends[agent])})" for agent in out if ends[focus] > 0.0],
        seeds=len(scenario.finals),
        banded=[f"{agent} ({how})" for agent, how in zip(banded, ("shaded", "hatched"), strict=False)],
    )
    return Figure(name=f"{scenario.name}-regret", title="Cumulative regret", caption=caption, canvas=drawn)


def _band(scenario: Scenario, agent: str) -> tuple[FloatArray, Band]:
    episodes, values = scenario.curves(agent, "cumulative_regret")
    shown = thinned(len(episodes))
    return episodes[shown], simultaneous_band(values[:, shown], increasing=True)


def _apart(scenario: Scenario, bands: dict[str, tuple[FloatArray, Band]]) -> str:
    """Return whether the bands of the agent in focus and of the best of the others separate, and when."""
    if not scenario.rivals:
        return say("one_agent_played", focus=scenario.focus)
    focus, rival = scenario.focus, scenario.rivals[0]
    (episodes, own), (_, its) = bands[focus], bands[rival]
    below = bool(own.mean[-1] < its.mean[-1])
    apart = own.high < its.low if below else own.low > its.high
    first = len(apart) - int(np.argmin(apart[::-1])) if not apart.all() else 0
    since = round(episodes[first]) if apart[-1] else None
    return say("bands_apart", focus=focus, rival=rival, seeds=len(scenario.finals), since=since, below=below)


def _late(episodes: FloatArray, values: FloatArray) -> float | None:
    """Return the share of the total that was lost in the last half; None if nothing was lost."""
    mean = values.mean(axis=0)
    middle = np.searchsorted(episodes, episodes[-1] / 2.0)
    return float(1.0 - mean[middle] / mean[-1]) if mean[-1] > NO_REGRET else None


def rates(scenario: Scenario) -> Figure:
    """Draw the mean curves on logarithmic axes, where a power of t is a straight line, with the slopes fitted."""
    styles, slopes, idle = looks(scenario.everyone), {}, {}
    with canvas() as (drawn, (axes,)):
        for agent in scenario.agents:
            episodes, values = scenario.curves(agent, "cumulative_regret")
            mean, shown = values.mean(axis=0), thinned(len(episodes), geometric=True)
            slopes[agent] = found = fitted_slope(values, episodes=episodes)
            middle = np.searchsorted(episodes, episodes[-1] / 2.0)
            idle[agent] = bool(mean[-1] - mean[middle] <= NO_REGRET)
            slope = IDLE if idle[agent] else exponent(found.slope, found.low, found.high)
            positive = np.where(mean > NO_REGRET, mean, np.nan)
            axes.plot(episodes[shown], positive[shown], label=f"{agent}: {slope}", **styles[agent].line(len(shown)))
            if agent == scenario.focus and mean[-1] > NO_REGRET:
                ends = episodes[[0, -1]]
                axes.plot(ends, mean[-1] * np.sqrt(ends / ends[-1]), **REFERENCE)
        axes.set(xlabel="episode", ylabel="cumulative regret")
        logarithmic(axes.xaxis, axes.yaxis)
        legend(drawn, axes, columns=1, title="slope and its 95 % interval")
    caption = say("growth", focus=scenario.focus, found=slopes[scenario.focus], idle=idle[scenario.focus])
    return Figure(name=f"{scenario.name}-rates", title="How fast regret grows", caption=caption, canvas=drawn)
