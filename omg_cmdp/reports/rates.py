"""How regret grows with T, S, A or H: exponents fitted over the sizes of a rate experiment, beside the theorem's."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.reports.contests import Contest, leading, regret_interval, sizes
from omg_cmdp.reports.drawing import Figure, canvas, legend, logarithmic, looks
from omg_cmdp.reports.figures import REFERENCE
from omg_cmdp.reports.formats import estimate, hundredths, number, plural
from omg_cmdp.reports.statistics import NO_REGRET, Rate, rate
from omg_cmdp.reports.tables import Table
from omg_cmdp.studies.plan import slug
from omg_cmdp.studies.results import Results
from omg_cmdp.studies.variations import EXPONENTS, Variant
from omg_cmdp.validation import FloatArray

if TYPE_CHECKING:
    import pandas

WORDS = {"T": "episodes", "S": "states", "A": "actions", "H": "steps of an episode"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RateStudy:
    """One world under one adversary in several sizes."""

    world: str
    adversary: str
    size: str
    places: Mapping[int, str]
    """The name of the world of each value."""
    regrets: Mapping[str, pandas.DataFrame]
    """The total regret of every agent: a row per seed that is finished in all sizes, a column per value."""
    hero: str

    @property
    def name(self) -> str:
        """For files."""
        return f"{slug(self.world)}--{slug(self.adversary)}-{self.size}"

    @property
    def title(self) -> str:
        """For headings."""
        return f"Regret against {self.size}, the number of {WORDS[self.size]}: world {self.world}, {self.adversary}"

    @functools.cached_property
    def rates(self) -> dict[str, Rate]:
        """The exponent of every agent."""
        expected = EXPONENTS[self.size]
        return {agent: rate(list(table), table.to_numpy(), expected) for agent, table in self.regrets.items()}

    def bound(self, contests: Mapping[tuple[str, str], Contest]) -> FloatArray | None:
        """Return the theorem's bound, corrected, for the hero in each size; None where one is missing."""
        found = [contests.get((place, self.adversary)) for place in self.places.values()]
        bounds = [c.theory.corrected(np.array([c.episodes])) for c in found if c is not None and c.theory is not None]
        return np.concatenate(bounds) if len(bounds) == len(found) else None


def rate_studies(results: Results) -> list[RateStudy]:
    """Return what a rate experiment varied, with the runs that are finished; none if nothing was varied."""
    groups: dict[tuple[str, str], list[Variant]] = {}
    for variant in sizes(results.configuration):
        groups.setdefault((variant.base, variant.size), []).append(variant)
    studies = []
    for (world, size), variants in groups.items():
        places = {variant.value: variant.world.name for variant in variants}
        for adversary in results.configuration["adversaries"]:
            regrets = _regrets(results.runs, adversary, places)
            if regrets:
                hero = leading(results.configuration, list(regrets))
                names = {"world": world, "adversary": adversary, "size": size, "hero": hero}
                studies.append(RateStudy(**names, places=places, regrets=regrets))
    return studies


def _regrets(runs: pandas.DataFrame, adversary: str, places: Mapping[int, str]) -> dict[str, pandas.DataFrame]:
    values = {place: value for value, place in places.items()}
    own = runs[(runs["adversary"] == adversary) & runs["world"].isin(list(values))]
    own = own.assign(value=own["world"].map(values))
    found = {}
    for agent, rows in own.groupby("agent", sort=False):
        table = rows.pivot(index="seed", columns="value", values="regret").reindex(columns=list(places)).dropna()
        if len(table):
            found[str(agent)] = table
    return found


def rate_figure(study: RateStudy, bound: FloatArray | None) -> Figure:
    """Draw mean regret against the size on logarithmic axes, with the theorem's exponent through the hero's start."""
    dressed, values = looks([study.hero, *(a for a in study.regrets if a != study.hero)]), np.array([*study.places])
    with canvas() as (drawn, (axes,)):
        for agent, table in study.regrets.items():
            means, lows, highs = np.transpose([regret_interval(table[value]) for value in table])
            seen = means > NO_REGRET
            label = f"{agent}: {_told(study.rates[agent])}"
            look = {**dressed[agent].line(len(values)), "markevery": 1}
            axes.plot(values[seen], means[seen], label=label, **look)
            axes.vlines(values[seen], np.maximum(lows, 0.5 * means)[seen], highs[seen], color=look["color"], alpha=0.6)
        own = study.regrets[study.hero].mean().to_numpy()
        if own[0] > NO_REGRET:
            exponent = EXPONENTS[study.size]
            guide = own[0] * (values / values[0]) ** exponent
            axes.plot(values, guide, label=f"{study.size}^{exponent:g}, as the theorem has it", **REFERENCE)
        axes.set(xlabel=f"{study.size}, {WORDS[study.size]}", ylabel="total regret")
        logarithmic(axes.xaxis, axes.yaxis)
        axes.set_xticks(values, [str(value) for value in values])
        legend(drawn, axes, columns=1, title="exponent and its 95 % interval")
    caption = f"{rate_words(study)} {_bound_words(study, bound)}Bars are 95 % intervals for the means."
    return Figure(name=f"{study.name}-rate", title=study.title, caption=caption, canvas=drawn)


def rate_words(study: RateStudy) -> str:
    """Return what was found about the hero."""
    found, size, hero = study.rates[study.hero], study.size, study.hero
    told = estimate(found.slope, found.low, found.high, hundredths)
    if math.isnan(found.slope):
        return f"The regret of {hero} is zero in some sizes only: there is no exponent of {size} to tell."
    if found.refuted:
        verdict = "more, so far, than"
    else:
        verdict = "less than" if found.high < found.expected else "not to be told from"
    return (
        f"In the world {study.world} the regret of {hero} grows like {size} to the power {told}: {verdict} the "
        f"{found.expected:g} of the theorem, which is an upper bound for the hardest world."
    )


def _bound_words(study: RateStudy, bound: FloatArray | None) -> str:
    if bound is None:
        return ""
    slope = rate([*study.places], bound[None], study.rates[study.hero].expected).slope
    least = float((bound / study.regrets[study.hero].mean().to_numpy().clip(NO_REGRET)).min())
    return (
        f"The theorem's bound, evaluated with the oracles' own bounds in each size, has the exponent "
        f"{hundredths(slope)} and is at least {number(least)} times what was lost. "
    )


def rate_table(study: RateStudy) -> Table:
    """Return the exponents of all agents."""
    rows: list[dict[str, Any]] = [
        {
            "agent": agent,
            "exponent": found.slope,
            "low": found.low,
            "high": found.high,
            "theorem": found.expected,
            "refuted": found.refuted,
            "seeds": len(study.regrets[agent]),
            "seeds_left_out": found.left_out,
        }
        for agent, found in study.rates.items()
    ]
    seeds = plural(min(len(table) for table in study.regrets.values()), "seed")
    return Table(
        name=f"{study.name}-rates",
        caption=f"Exponent of {study.size} in the regret, world {study.world}, {study.adversary}; {seeds}",
        raw=rows,
        shown={
            "agent": [row["agent"] for row in rows],
            f"exponent of {study.size}": [hundredths(row["exponent"]) for row in rows],
            "95 % interval": [f"{hundredths(row['low'])} to {hundredths(row['high'])}" for row in rows],
            "theorem": [f"{row['theorem']:g}" for row in rows],
        },
    )


def _told(found: Rate) -> str:
    interval = "" if math.isnan(found.low) else f" ({hundredths(found.low)} to {hundredths(found.high)})"
    return hundredths(found.slope) + interval
