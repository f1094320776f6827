"""Figures that compare the agents of a scenario, each with a caption that says what it shows.

Regret is exact: V* - V^π, computed in the true MDP and not estimated. Where the truth is unknown, they show returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.drawing import INK
from omg_cmdp.validation import FloatArray
from omg_lab.reports.drawing import Figure, canvas, legend, logarithmic, looks, thinned
from omg_lab.reports.formats import count, number
from omg_lab.reports.scenarios import Scenario
from omg_lab.reports.statistics import Band, simultaneous_band
from omg_lab.reports.words import say

if TYPE_CHECKING:
    import pandas

LINEAR = 0.1
"""Costs this close to the budget are drawn on a linear axis, others on a logarithmic one: early episodes cost a lot."""
REFERENCE = {"color": INK, "linewidth": 0.9, "linestyle": (0, (1, 2))}
CROWDED = 5.0
"""A curve that ends this many times as high as that of the agent in focus is cut off, to leave room for the others."""
BANDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("facecolor", {"alpha": 0.22, "linewidth": 0.0}),
    ("edgecolor", {"alpha": 0.7, "linewidth": 0.6, "facecolor": "none", "hatch": "////"}),
)
"""The fillings of the bands of two agents; more could not be told apart."""
BLOCKS = 20
"""Returns are averaged over this many blocks of episodes, as single ones are noisy."""
SPREAD = 20.0
"""Totals that differ by more than this factor are drawn on a logarithmic axis."""


def comparing_figures(scenario: Scenario) -> list[Figure]:
    """Return the figures that compare agents, in the order of a report."""
    drawn = [totals(scenario), course(scenario)]
    return [*drawn, spending(scenario)] if scenario.budgeted else drawn


def totals(scenario: Scenario) -> Figure:
    """Draw the result of each agent: the seeds, their mean, and its interval."""
    agents, styles, exact = scenario.agents, looks(scenario.everyone), scenario.exact
    smallest, largest = float(scenario.finals.min(axis=None)), float(scenario.finals.max(axis=None))
    wide = 0.0 < SPREAD * smallest < largest
    with canvas(height=0.8 + 0.28 * len(agents)) as (drawn, axes):
        for place, agent in enumerate(agents):
            values, color = scenario.finals[agent].to_numpy(), styles[agent]["color"]
            mean, low, high = scenario.interval(agent)
            axes.plot(values, np.full(len(values), place), "|", color=color, alpha=0.7, markersize=10)
            axes.plot([max(low, 0.5 * smallest) if wide else low, high], [place, place], color=color, linewidth=2.5)
            axes.plot(mean, place, styles[agent]["marker"], color=color, markersize=7)
        axes.set_yticks(range(len(agents)), agents)
        axes.set_ylim(len(agents) - 0.5, -0.5)
        axes.set_xlabel(f"{'total regret' if exact else 'mean return'} after {count(scenario.episodes)} episodes")
        axes.grid(visible=False, axis="y")
        if wide:
            logarithmic(axes.xaxis)
    caption = say("totals", wide=wide)
    title = "Total regret by agent" if exact else "Return by agent"
    return Figure(name=f"{scenario.name}-totals", title=title, caption=caption, canvas=drawn)


def course(scenario: Scenario) -> Figure:
    """Draw cumulative regret or, where it is unknown, what was earned as agents learned; with simultaneous bands."""
    focus, styles, exact = scenario.focus, looks(scenario.everyone), scenario.exact
    bands, ends = {}, scenario.finals.mean()
    for agent in scenario.agents:
        at, values = series(scenario, agent)
        bands[agent] = at, simultaneous_band(values, increasing=exact and not scenario.budgeted)
    never_falls = exact and not scenario.budgeted
    out = [agent for agent in scenario.agents if never_falls and ends[agent] > CROWDED * ends[focus] > 0.0]
    banded = [agent for agent in (focus, *scenario.rivals[:1]) if agent not in out]
    with canvas() as (drawn, axes):
        for agent, (paint, fill) in zip(banded, BANDS, strict=False):
            at, each = bands[agent]
            axes.fill_between(at, each.low, each.high, **{paint: styles[agent]["color"]}, **fill)
        for agent, (at, each) in bands.items():
            axes.plot(at, each.mean, label=agent, **styles[agent])
        axes.set(xlabel="episode", ylabel="cumulative regret" if exact else "return", xlim=(0, None))
        if exact and not scenario.budgeted:
            axes.set_ylim(0, None)
        if out:
            tops = [np.nanmax([band.mean, band.high]) for agent, (_, band) in bands.items() if agent not in out]
            axes.set_ylim(0, 1.05 * max(2.0 * ends[focus], *tops))
        legend(drawn, axes)
    caption = say(
        "course",
        apart=_apart(scenario, bands),
        focus=focus,
        late=scenario.last_half(focus) if exact and ends[focus] > 0.0 else None,
        out=[f"{agent} ({number(ends[agent])})" for agent in out],
        blocks=len(bands[focus][0]),
        seeds=len(scenario.finals),
        banded=[f"{agent} ({how})" for agent, how in zip(banded, ("shaded", "hatched"), strict=False)],
        exact=exact,
    )
    name, title = ("regret", "Cumulative regret") if exact else ("returns", "Return by episode")
    return Figure(name=f"{scenario.name}-{name}", title=title, caption=caption, canvas=drawn)


def series(scenario: Scenario, agent: str) -> tuple[FloatArray, FloatArray]:
    """Return episodes (K,), and the cumulative regret up to each, (R, K); or the mean return in blocks of episodes."""
    if scenario.exact:
        episodes, values = scenario.curves(agent, "cumulative_regret")
        shown = thinned(len(episodes))
        return episodes[shown], values[:, shown]
    return blocks(scenario, agent, scenario.logs[agent]["return"])


def blocks(scenario: Scenario, agent: str, values: pandas.Series) -> tuple[FloatArray, FloatArray]:
    """Return the last episodes of blocks (K,), and the mean of a value of the log in each of them, (R, K)."""
    rows, last = scenario.logs[agent], scenario.episodes
    edges = np.unique(np.linspace(0, last, min(BLOCKS, last) + 1).round().astype(np.int64))[1:]
    block = np.searchsorted(edges, rows["episode"].to_numpy())
    table = values.groupby([rows["seed"], block]).mean().unstack()
    return edges[table.columns].astype(np.float64), table.to_numpy(dtype=np.float64)


def spending(scenario: Scenario) -> Figure:
    """Draw by how much the policies of all agents cost more than the budget, as they learned; below 0 they keep it."""
    styles, late = looks(scenario.everyone), {}
    with canvas() as (drawn, axes):
        axes.axhline(0.0, **REFERENCE)
        for agent in scenario.agents:
            rows = scenario.logs[agent]
            at, excess = blocks(scenario, agent, rows["cost"] - rows["budget"])
            axes.plot(at, excess.mean(axis=0), label=agent, **styles[agent])
            late[agent] = float(rows.loc[rows["episode"] > scenario.episodes // 2, "violation"].mean())
        axes.set(xlabel="episode", ylabel="cost above the budget", xlim=(0, None))
        axes.set_yscale("symlog", linthresh=LINEAR)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        legend(drawn, axes)
    caption = say("spending", blocks=len(at), late=[f"{agent} {number(each)}" for agent, each in late.items()])
    return Figure(name=f"{scenario.name}-budget", title="Cost against budget", caption=caption, canvas=drawn)


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
