"""A scenario: one world under one adversary, the agents that played there, and their curves over the seeds."""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.theory import bounds
from omg_cmdp.theory.constants import Assumptions
from omg_cmdp.validation import FloatArray
from omg_lab.reports.statistics import NO_REGRET, Interval, mean_interval
from omg_lab.studies.catalogue import Part
from omg_lab.studies.plan import slug
from omg_lab.studies.results import Results
from omg_lab.studies.variations import Variant, sized_worlds, variants

if TYPE_CHECKING:
    import pandas

DELTA = 0.05
"""The failure probability at which bounds are drawn."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentsInWorld(abc.ABC):
    """The finished runs of all agents in one world under one adversary."""

    world: str
    adversary: str
    configuration: Mapping[str, Any]
    """The configuration of the study."""
    runs: pandas.DataFrame
    """A row for each run."""
    log: pandas.DataFrame
    """A row for each logged episode."""

    @property
    @abc.abstractmethod
    def finals(self) -> pandas.DataFrame:
        """The result of each run: a row for each seed that all agents have finished, a column per agent, best first."""

    @property
    def name(self) -> str:
        """The beginning of the names of its files."""
        return f"{slug(self.world)}--{slug(self.adversary)}"

    @property
    def title(self) -> str:
        """The heading."""
        return f"World {self.world}, adversary {self.adversary}"

    @property
    def agents(self) -> list[str]:
        """All agents, best first."""
        return list(self.finals.columns)

    @property
    def focus(self) -> str:
        """The agent that the report is about: the first that is OMG; the best if none is."""
        return focus_of(self.configuration, self.agents)

    @property
    def rivals(self) -> list[str]:
        """All agents but the one in focus, best first."""
        return [agent for agent in self.agents if agent != self.focus]

    @property
    def everyone(self) -> list[str]:
        """The agent in focus, then all others of the study: an order that is the same in all worlds."""
        return [self.focus, *(name for name in self.configuration["agents"] if name != self.focus)]

    @property
    def episodes(self) -> int:
        """The number of episodes of each run."""
        return int(self.log["episode"].max())


class Scenario(AgentsInWorld):
    """The finished runs in one world whose truth is known, under one adversary."""

    @functools.cached_property
    def finals(self) -> pandas.DataFrame:
        """The total regret: a row for each seed that all agents have finished, a column per agent, best first."""
        last = self.log.sort_values("episode").groupby(["seed", "agent"])["cumulative_regret"].last()
        table = last.where(last.abs() > NO_REGRET, 0.0).unstack("agent").dropna()
        return table[table.mean().sort_values(kind="stable").index]

    @functools.cached_property
    def _logs(self) -> dict[str, pandas.DataFrame]:
        seeds = self.finals.index
        return {str(agent): rows[rows["seed"].isin(seeds)] for agent, rows in self.log.groupby("agent")}

    def curves(self, agent: str, column: str) -> tuple[FloatArray, FloatArray]:
        """Return the logged episodes (K,), and a column of the log, (seeds, K)."""
        table = self._logs[agent].pivot(index="seed", columns="episode", values=column)
        return table.columns.to_numpy(dtype=np.float64), table.to_numpy(dtype=np.float64)

    def known(self, agent: str, column: str) -> bool:
        """Return whether a column of the log has values for this agent."""
        return bool(self._logs[agent][column].notna().any())

    def milliseconds(self, agent: str) -> float:
        """Return the agent's own time per episode: the median, so that compilation in the first one does not count."""
        rows = self._logs[agent]
        return 1e3 * float((rows["seconds_deciding"] + rows["seconds_learning"]).median())

    def exploring(self, agent: str) -> float:
        """Return how much of the mean total regret is the price of exploring; nan for an agent without a model.

        The rest is what the optimum of its model would have lost: what it did not know yet.
        """
        regret, unknown = (self.curves(agent, f"cumulative_{name}")[1] for name in ("regret", "best_policy_regret"))
        price = float((regret[:, -1] - unknown[:, -1]).mean())
        return 0.0 if abs(price) <= NO_REGRET else price

    @functools.cached_property
    def theory(self) -> Assumptions | None:
        """The theorem's numbers for the agent in focus; None if its oracles have no proven bound.

        An oracle's bound never falls with the number of episodes, so it holds for fewer episodes too.
        """
        first = self.runs[self.runs["agent"] == self.focus].iloc[0]
        sizes: dict[str, Any] = {name: int(first[name]) for name in ("states", "actions", "horizon", "tuples")}
        regrets: dict[str, Any] = {name: float(first[f"{name}_bound"]) for name in ("reward_regret", "dynamics_regret")}
        if not np.isfinite([*regrets.values()]).all():
            return None
        return Assumptions(**sizes, **regrets, episodes=self.episodes, delta=DELTA)


def is_vacuous(theory: Assumptions) -> bool:
    """Return whether the theorem's bound is above everything that can be lost."""
    return bounds.corrected(theory) > theory.horizon * theory.episodes


def focus_of(configuration: Mapping[str, Any], agents: Sequence[str]) -> str:
    """Return the first of `agents` that is OMG, in the order of the study; the first of all if none is."""
    kinds = {name: resolved["kind"] for name, resolved in configuration["agents"].items()}
    return next((name for name, kind in kinds.items() if kind == "omg" and name in agents), agents[0])


def regret_interval(totals: ArrayLike) -> Interval:
    """Return the interval for the mean of total regrets, a number per seed; regret is never negative."""
    mean, low, high = mean_interval(totals)
    return Interval(mean, float(np.maximum(low, 0.0)), high)


def varied_worlds(configuration: Mapping[str, Any]) -> list[Variant]:
    """Return the worlds in the sizes that are varied, if any is."""
    return variants(_worlds(configuration), configuration["vary"], configuration["episodes"])


def played_worlds(configuration: Mapping[str, Any]) -> list[str]:
    """Return the names of the worlds in which runs are played."""
    worlds = sized_worlds(_worlds(configuration), configuration["vary"], configuration["episodes"])
    return [world.name for world in worlds]


def _worlds(configuration: Mapping[str, Any]) -> list[Part]:
    return [Part.of(name, resolved) for name, resolved in configuration["worlds"].items()]


def scenarios(results: Results) -> list[Scenario]:
    """Return the scenarios of a study, in the order of its configuration; only finished runs with regret count."""
    return found_in(results, Scenario, results.runs[results.runs["regret"].notna()])


Found = TypeVar("Found", bound=AgentsInWorld)


def found_in(results: Results, kind: type[Found], runs: pandas.DataFrame) -> list[Found]:
    """Return those of `runs` in every world under every adversary, if all agents have finished a seed there."""
    key = ["world", "adversary", "agent", "seed"]
    log, configuration, found = results.log.merge(runs[key], on=key), results.configuration, []
    for world, adversary in itertools.product(played_worlds(configuration), configuration["adversaries"]):
        own, rows = (table[(table["world"] == world) & (table["adversary"] == adversary)] for table in (runs, log))
        each = kind(world=world, adversary=adversary, configuration=configuration, runs=own, log=rows)
        if len(rows) and len(each.finals):
            found.append(each)
    return found


def totals(found: Sequence[Scenario]) -> pandas.DataFrame:
    """Return the regret summed over scenarios: a row per seed, a column for every agent in all of them, best first."""
    table = functools.reduce(operator.add, (scenario.finals for scenario in found))
    table = table.dropna(axis="columns", how="all").dropna()
    return table[table.mean().sort_values(kind="stable").index]
