"""Figures that compare the agents of a scenario, each with a caption that says what it shows.

All show the exact regret of the policies played: V* - V^π, computed in the true MDP and not estimated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_lab.reports.drawing import INK, Figure, canvas, legend, logarithmic, looks, thinned
from omg_lab.reports.formats import count, estimate, exponent, hundredths, listing, number, plural
from omg_lab.reports.scenarios import Scenario, regret_interval
from omg_lab.reports.statistics import NO_REGRET, Band, fitted_slope, simultaneous_band

REFERENCE = {"color": INK, "linewidth": 0.9, "linestyle": (0, (1, 2))}
CROWDED = 5.0
"""A curve that ends this many times as high as that of the agent in focus is cut off, to leave room for the others."""
BANDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("facecolor", {"alpha": 0.22, "linewidth": 0.0}),
    ("edgecolor", {"alpha": 0.7, "linewidth": 0.6, "facecolor": "none", "hatch": "////"}),
)
"""How the bands of two agents are filled: more could not be told apart."""
SPREAD = 20.0
"""Totals that differ by more than this factor are drawn on a logarithmic axis."""


def comparing_figures(scenario: Scenario) -> list[Figure]:
    """Return the figures that compare agents, in the order of a report."""
    drawn = [totals(scenario), regret(scenario)]
    return [*drawn, rates(scenario)] if scenario.episodes > 1 else drawn


def totals(scenario: Scenario) -> Figure:
    """Draw the total regret of each agent: the seeds, their mean, and its interval."""
    agents, styles = scenario.agents, looks(scenario.everyone)
    ends = {agent: scenario.finals[agent].to_numpy() for agent in agents}
    smallest, largest = float(scenario.finals.min(axis=None)), float(scenario.finals.max(axis=None))
    wide = 0.0 < SPREAD * smallest < largest
    with canvas(height=0.8 + 0.28 * len(agents)) as (drawn, (axes,)):
        for place, (agent, values) in enumerate(ends.items()):
            color, (mean, low, high) = styles[agent].color, regret_interval(values)
            axes.plot(values, np.full(len(values), place), "|", color=color, alpha=0.7, markersize=10)
            axes.plot([max(low, 0.5 * smallest) if wide else low, high], [place, place], color=color, linewidth=2.5)
            axes.plot(mean, place, styles[agent].marker, color=color, markersize=7)
        axes.set_yticks(range(len(agents)), agents)
        axes.set_ylim(len(agents) - 0.5, -0.5)
        axes.set_xlabel(f"total regret after {count(scenario.episodes)} episodes")
        axes.grid(visible=False, axis="y")
        if wide:
            logarithmic(axes.xaxis)
    best, worst = regret_interval(ends[agents[0]]), ends[agents[-1]].mean()
    caption = f"Least was lost by {agents[0]}: {estimate(*best)}."
    if len(agents) > 1 and best.mean > 0.0:
        caption += f" Most was lost by {agents[-1]}: {number(worst)}, {number(worst / best.mean)} times as much."
    caption += " Each stroke is a seed, the marker is their mean, the bar its 95 % interval."
    if wide:
        caption += " The axis is logarithmic."
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
    caption = f"{_apart(scenario, bands)} {_late(focus, *scenario.curves(focus, 'cumulative_regret'))}"
    if out:
        left = listing([f"{agent} ({number(ends[agent])})" for agent in out])
        caption += f" Cut off at the top: {left}."
    caption += f" Lines are means over {plural(len(scenario.finals), 'seed')}"
    if len(scenario.finals) > 1:
        named = [f"{agent} ({how})" for agent, how in zip(banded, ("shaded", "hatched"), strict=False)]
        caption += f"; a band, of {listing(named)}, holds the whole true curve with 95 % confidence."
    return Figure(name=f"{scenario.name}-regret", title="Cumulative regret", caption=caption, canvas=drawn)


def _band(scenario: Scenario, agent: str) -> tuple[FloatArray, Band]:
    episodes, values = scenario.curves(agent, "cumulative_regret")
    shown = thinned(len(episodes))
    return episodes[shown], simultaneous_band(values[:, shown], increasing=True)


def _apart(scenario: Scenario, bands: dict[str, tuple[FloatArray, Band]]) -> str:
    """Return whether the bands of the agent in focus and of its best rival separate, and when."""
    if not scenario.rivals:
        return f"Only {scenario.focus} played."
    focus, rival = scenario.focus, scenario.rivals[0]
    (episodes, own), (_, its) = bands[focus], bands[rival]
    below, above = own.high < its.low, own.low > its.high
    apart = below if own.mean[-1] < its.mean[-1] else above
    if len(scenario.finals) == 1:
        return f"A single seed does not tell whether {focus} or its best rival, {rival}, is better."
    if not apart[-1]:
        return (
            f"At the end the bands of {focus} and its best rival, {rival}, overlap: this does not tell which is better."
        )
    since = len(apart) - int(np.argmin(apart[::-1])) if not apart.all() else 0
    side = "below" if apart is below else "above"
    episode = count(round(episodes[since]))
    return f"From episode {episode} on, the band of {focus} is {side} that of its best rival, {rival}."


def _late(focus: str, episodes: FloatArray, values: FloatArray) -> str:
    """Return how much of the total was lost in the last half."""
    mean = values.mean(axis=0)
    if mean[-1] <= NO_REGRET:
        return f"Nothing was lost by {focus}."
    late = 1.0 - mean[np.searchsorted(episodes, episodes[-1] / 2.0)] / mean[-1]
    return (
        f"In the last half of the episodes {focus} lost {late:.0%} of its total. With √t growth (dotted, through its "
        f"value after a quarter of them) it would be {1.0 - math.sqrt(0.5):.0%}; an agent that never learns loses 50%."
    ).replace("%", " %")


def rates(scenario: Scenario) -> Figure:
    """Draw the mean curves on logarithmic axes, where a power of t is a straight line, with the slopes fitted."""
    styles, slopes = looks(scenario.everyone), {}
    with canvas() as (drawn, (axes,)):
        for agent in scenario.agents:
            episodes, values = scenario.curves(agent, "cumulative_regret")
            mean, shown = values.mean(axis=0), thinned(len(episodes), geometric=True)
            slopes[agent] = slope, low, high, *_ = fitted_slope(values, episodes=episodes)
            label = f"{agent}: {exponent(slope, low, high)}"
            positive = np.where(mean > NO_REGRET, mean, np.nan)
            axes.plot(episodes[shown], positive[shown], label=label, **styles[agent].line(len(shown)))
            if agent == scenario.focus and mean[-1] > NO_REGRET:
                guide = mean[-1] * np.sqrt(np.array([episodes[0], episodes[-1]]) / episodes[-1])
                axes.plot([episodes[0], episodes[-1]], guide, **REFERENCE)
        axes.set(xlabel="episode", ylabel="cumulative regret")
        logarithmic(axes.xaxis, axes.yaxis)
        legend(drawn, axes, columns=1, title="slope and its 95 % interval")
    slope, low, high, *_ = slopes[scenario.focus]
    if high < 0.5:
        verdict = "slower than √t, the rate of the theorem"
    elif low > 0.5:
        verdict = "faster so far than √t, the rate that the theorem promises in the long run"
    else:
        verdict = "consistent with √t, the rate of the theorem"
    caption = (
        "On these axes the slope shows how regret grows: 1 for an agent that never learns, ½ for √t (dotted), 0 for "
        f"one that has learned everything. Over the last half of the episodes {scenario.focus} has slope "
        f"{estimate(slope, low, high, hundredths)}: "
        f"{verdict}. The legend has the slopes of all agents, with their intervals."
    )
    return Figure(name=f"{scenario.name}-rates", title="How fast regret grows", caption=caption, canvas=drawn)
