"""The growth of regret with T, S, A or H: exponents fitted over several sizes, beside the theorem's."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from omg_lab.reports.drawing import Figure, canvas, legend, logarithmic, looks
from omg_lab.reports.figures import REFERENCE
from omg_lab.reports.formats import exponent, hundredths, interval, plural
from omg_lab.reports.scenarios import focus_of
from omg_lab.reports.statistics import NO_REGRET, Slope, mean_interval, rate
from omg_lab.reports.tables import ReportTable, cell
from omg_lab.reports.words import say
from omg_lab.studies.config import unchecked_plan
from omg_lab.studies.plan import slug
from omg_lab.studies.results import Results
from omg_lab.studies.variations import EXPONENTS, variants

if TYPE_CHECKING:
    import pandas

SIZE_NAMES = {"T": "episodes", "S": "states", "A": "actions", "H": "steps of an episode"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """One world under one adversary in several sizes."""

    world: str
    adversary: str
    size: str
    regrets: Mapping[str, pandas.DataFrame]
    """The total regret of every agent: a row for each seed finished in all sizes, a column per value."""
    focus: str

    @property
    def name(self) -> str:
        """The beginning of the names of its files."""
        return f"{slug(self.world)}--{slug(self.adversary)}-{self.size}"

    @functools.cached_property
    def rates(self) -> dict[str, Slope]:
        """The exponent of every agent."""
        return {agent: rate(list(table), table.to_numpy()) for agent, table in self.regrets.items()}

    @property
    def expected(self) -> float:
        """The exponent of the theorem's bound."""
        return EXPONENTS[self.size]


def sweeps(results: Results) -> list[Sweep]:
    """Return a sweep for each world, adversary and size that was varied, from finished runs."""
    plan, found = unchecked_plan(results.configuration), []
    every = variants(plan.worlds, plan.vary, plan.episodes)
    for (world, size), group in itertools.groupby(every, key=lambda each: (each.base, each.size)):
        values = {variant.world.name: variant.value for variant in group}
        runs = results.runs[results.runs["world"].isin(list(values))]
        runs = runs.assign(value=runs["world"].map(values))
        for adversary, rows in runs.groupby("adversary", sort=False):
            regrets = {
                str(agent): own.pivot(index="seed", columns="value", values="regret").reindex(columns=values.values())
                for agent, own in rows.groupby("agent", sort=False)
            }
            whole = {agent: table.dropna() for agent, table in regrets.items() if len(table.dropna())}
            if whole:
                names = {"world": world, "adversary": str(adversary), "size": size}
                found.append(Sweep(**names, regrets=whole, focus=focus_of(results.configuration, list(whole))))
    return found


def rate_figure(sweep: Sweep) -> Figure:
    """Draw mean regret against the size on logarithmic axes, with the theorem's exponent for the agent in focus."""
    styles = looks([sweep.focus, *(agent for agent in sweep.regrets if agent != sweep.focus)])
    values = sweep.regrets[sweep.focus].columns.to_numpy()
    with canvas() as (drawn, axes):
        for agent, table in sweep.regrets.items():
            means, lows, highs = np.transpose([mean_interval(table[value]) for value in table])
            seen = means > NO_REGRET
            label = f"{agent}: {exponent(*sweep.rates[agent][:3])}"
            look = {**styles[agent], "markevery": 1}
            axes.plot(values[seen], means[seen], label=label, **look)
            axes.vlines(values[seen], np.maximum(lows, 0.5 * means)[seen], highs[seen], color=look["color"], alpha=0.6)
        smallest = float(sweep.regrets[sweep.focus][values[0]].mean())
        if smallest > NO_REGRET:
            guide = smallest * (values / values[0]) ** sweep.expected
            axes.plot(values, guide, label=f"{sweep.size}^{sweep.expected:g}, as in the theorem", **REFERENCE)
        axes.set(xlabel=f"{sweep.size}, {SIZE_NAMES[sweep.size]}", ylabel="total regret")
        logarithmic(axes.xaxis, axes.yaxis)
        axes.set_xticks(values, [str(value) for value in values])
        legend(drawn, axes, columns=1, title="exponent and its 95 % interval")
    title = f"Regret against {sweep.size}, the number of {SIZE_NAMES[sweep.size]}: {sweep.world}, {sweep.adversary}"
    caption = f"{rate_sentence(sweep)} Bars are 95 % intervals for the means."
    return Figure(name=f"{sweep.name}-rate", title=title, caption=caption, canvas=drawn)


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
