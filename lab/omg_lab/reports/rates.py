"""The growth of regret with T, S, A or H: exponents fitted over several sizes, beside the theorem's."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.theory import bounds
from omg_cmdp.validation import FloatArray
from omg_lab.reports.drawing import Figure, canvas, legend, logarithmic, looks
from omg_lab.reports.figures import REFERENCE
from omg_lab.reports.formats import exponent, hundredths, interval, plural
from omg_lab.reports.scenarios import Scenario, focus_of, regret_interval, varied_worlds
from omg_lab.reports.statistics import NO_REGRET, Slope, rate
from omg_lab.reports.tables import ReportTable, cell
from omg_lab.reports.words import say
from omg_lab.studies.plan import slug
from omg_lab.studies.results import Results
from omg_lab.studies.variations import EXPONENTS, Variant

if TYPE_CHECKING:
    import pandas

SIZE_NAMES = {"T": "episodes", "S": "states", "A": "actions", "H": "steps of an episode"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """One world under one adversary in several sizes."""

    world: str
    adversary: str
    size: str
    worlds: Mapping[int, str]
    """The name of the world for each value."""
    regrets: Mapping[str, pandas.DataFrame]
    """The total regret of every agent: a row for each seed finished in all sizes, a column per value."""
    focus: str

    @property
    def name(self) -> str:
        """The beginning of the names of its files."""
        return f"{slug(self.world)}--{slug(self.adversary)}-{self.size}"

    @property
    def title(self) -> str:
        """The heading."""
        return (
            f"Regret against {self.size}, the number of {SIZE_NAMES[self.size]}: world {self.world}, {self.adversary}"
        )

    @functools.cached_property
    def rates(self) -> dict[str, Slope]:
        """The exponent of every agent."""
        return {agent: rate(list(table), table.to_numpy()) for agent, table in self.regrets.items()}

    @property
    def expected(self) -> float:
        """The exponent of the theorem's bound."""
        return EXPONENTS[self.size]

    def bound(self, scenarios: Mapping[tuple[str, str], Scenario]) -> FloatArray | None:
        """Return the theorem's bound, corrected, for the agent in focus in each size; None where one is missing."""
        found = [scenarios.get((world, self.adversary)) for world in self.worlds.values()]
        theories = [scenario.theory for scenario in found if scenario is not None and scenario.theory is not None]
        return np.array([bounds.corrected(each) for each in theories]) if len(theories) == len(found) else None


def sweeps(results: Results) -> list[Sweep]:
    """Return a sweep for each world, adversary and size that was varied, from finished runs."""
    groups: dict[tuple[str, str], list[Variant]] = {}
    for variant in varied_worlds(results.configuration):
        groups.setdefault((variant.base, variant.size), []).append(variant)
    found = []
    for (world, size), variants in groups.items():
        worlds = {variant.value: variant.world.name for variant in variants}
        for adversary in results.configuration["adversaries"]:
            regrets = _regrets(results.runs, adversary, worlds)
            if regrets:
                focus = focus_of(results.configuration, list(regrets))
                names = {"world": world, "adversary": adversary, "size": size, "focus": focus}
                found.append(Sweep(**names, worlds=worlds, regrets=regrets))
    return found


def _regrets(runs: pandas.DataFrame, adversary: str, worlds: Mapping[int, str]) -> dict[str, pandas.DataFrame]:
    values = {world: value for value, world in worlds.items()}
    own = runs[(runs["adversary"] == adversary) & runs["world"].isin(list(values))]
    own = own.assign(value=own["world"].map(values))
    found = {}
    for agent, rows in own.groupby("agent", sort=False):
        table = rows.pivot(index="seed", columns="value", values="regret").reindex(columns=list(worlds)).dropna()
        if len(table):
            found[str(agent)] = table
    return found


def rate_figure(sweep: Sweep, bound: FloatArray | None) -> Figure:
    """Draw mean regret against the size on logarithmic axes, with the theorem's exponent for the agent in focus."""
    styles, values = looks([sweep.focus, *(a for a in sweep.regrets if a != sweep.focus)]), np.array([*sweep.worlds])
    with canvas() as (drawn, (axes,)):
        for agent, table in sweep.regrets.items():
            means, lows, highs = np.transpose([regret_interval(table[value]) for value in table])
            seen = means > NO_REGRET
            label = f"{agent}: {exponent(*sweep.rates[agent][:3])}"
            look = {**styles[agent].line(len(values)), "markevery": 1}
            axes.plot(values[seen], means[seen], label=label, **look)
            axes.vlines(values[seen], np.maximum(lows, 0.5 * means)[seen], highs[seen], color=look["color"], alpha=0.6)
        own = sweep.regrets[sweep.focus].mean().to_numpy()
        if own[0] > NO_REGRET:
            guide = own[0] * (values / values[0]) ** sweep.expected
            axes.plot(values, guide, label=f"{sweep.size}^{sweep.expected:g}, as in the theorem", **REFERENCE)
        axes.set(xlabel=f"{sweep.size}, {SIZE_NAMES[sweep.size]}", ylabel="total regret")
        logarithmic(axes.xaxis, axes.yaxis)
        axes.set_xticks(values, [str(value) for value in values])
        legend(drawn, axes, columns=1, title="exponent and its 95 % interval")
    slope = least = None
    if bound is not None:
        slope = rate([*sweep.worlds], bound[None]).slope
        least = float((bound / own.clip(NO_REGRET)).min())
    caption = say("rate_caption", sentence=rate_sentence(sweep), bound_slope=slope, least=least)
    return Figure(name=f"{sweep.name}-rate", title=sweep.title, caption=caption, canvas=drawn)


def rate_sentence(sweep: Sweep) -> str:
    """Return the result for the agent in focus, in words."""
    return say("rate", sweep=sweep, found=sweep.rates[sweep.focus])


def rate_table(sweep: Sweep) -> ReportTable:
    """Return the exponents of all agents."""
    seeds = plural(min(len(table) for table in sweep.regrets.values()), "seed")
    return ReportTable(
        name=f"{sweep.name}-rates",
        caption=f"Exponent of {sweep.size} in the regret, world {sweep.world}, {sweep.adversary}; {seeds}",
        rows=[
            {
                "agent": agent,
                "exponent": found.slope,
                "low": found.low,
                "high": found.high,
                "theorem": sweep.expected,
                "refuted": found.refutes(sweep.expected),
                "seeds": len(sweep.regrets[agent]),
                "seeds_left_out": found.left_out,
            }
            for agent, found in sweep.rates.items()
        ],
        columns={
            "agent": cell("agent"),
            f"exponent of {sweep.size}": cell("exponent", hundredths),
            "95 % interval": lambda row: interval(row["low"], row["high"], hundredths),
            "theorem": cell("theorem", "{:g}".format),
        },
    )
