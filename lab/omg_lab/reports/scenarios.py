"""A scenario: one world under one adversary, the agents that played there, and their curves over the seeds."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.theory.constants import Assumptions
from omg_cmdp.validation import FloatArray
from omg_lab.reports.comparisons import PairedComparison, compare_all
from omg_lab.reports.statistics import NO_REGRET, Interval, mean_interval
from omg_lab.studies.config import unchecked_plan
from omg_lab.studies.plan import slug
from omg_lab.studies.results import Results

if TYPE_CHECKING:
    import pandas

DELTA = 0.05
"""The failure probability at which the theorem's bound is stated."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scenario:
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
    def name(self) -> str:
        """The beginning of the names of its files."""
        return f"{slug(self.world)}--{slug(self.adversary)}"

    @property
    def title(self) -> str:
        """The heading."""
        return f"World {self.world}, adversary {self.adversary}"

    @property
    def exact(self) -> bool:
        """Whether the truth is known, and with it the regret; otherwise returns take its place."""
        return bool(self.runs["regret"].notna().all())

    @property
    def budgeted(self) -> bool:
        """Whether the world has budgets; regret is then against the best policy within, and may be negative."""
        return "violation" in self.runs and bool(self.runs["violation"].notna().any())

    @functools.cached_property
    def finals(self) -> pandas.DataFrame:
        """Total regret, or the mean return: a row for each seed that all agents have finished, a column per agent.

        The best agent comes first.
        """
        regret = self.runs["regret"]
        values = regret.where(regret.abs() > NO_REGRET, 0.0) if self.exact else self.runs["return"] / self.episodes
        table = self.runs.assign(value=values).pivot(index="seed", columns="agent", values="value").dropna()
        return table[table.mean().sort_values(ascending=self.exact, kind="stable").index]

    @property
    def agents(self) -> list[str]:
        """All agents, best first."""
        return list(self.finals.columns)

    @property
    def focus(self) -> str:
        """The agent that the report is about: the first that is OMG; the best if none is."""
        kinds = {name: resolved["kind"] for name, resolved in self.configuration["agents"].items()}
        return next((name for name in kinds if kinds[name] == "omg" and name in self.agents), self.agents[0])

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
        return int(self.runs["episodes"].max())

    def interval(self, agent: str) -> Interval:
        """Return an agent's mean with its interval; without budgets, regret is never negative."""
        mean, low, high = mean_interval(self.finals[agent])
        return Interval(mean, float(np.maximum(low, 0.0)) if self.exact and not self.budgeted else low, high)

    @property
    def largest(self) -> float | None:
        """The most by which the results of two agents can differ on a seed; None if unknown, or if it was exceeded."""
        largest = float(self.runs["largest_difference"].max()) / (1.0 if self.exact else self.episodes)
        return largest if np.ptp(self.finals, axis=1).max() <= largest else None

    def compare(self, against: str | None = None) -> tuple[PairedComparison, ...]:
        """Return the comparisons of every two agents, or of each one with `against`; none if fewer than two played."""
        losses = self.finals if self.exact else -self.finals
        rows = {agent: losses[agent] for agent in losses}
        return compare_all(rows, largest=self.largest, against=against) if len(rows) > 1 else ()

    @functools.cached_property
    def pairs(self) -> dict[str, PairedComparison]:
        """The comparison of the agent in focus with each of the others."""
        return {pair.second: pair for pair in self.compare(self.focus)}

    @functools.cached_property
    def logs(self) -> dict[str, pandas.DataFrame]:
        """The log of every agent, of the seeds that count."""
        rows = self.log[self.log["seed"].isin(self.finals.index)]
        return {str(agent): own for agent, own in rows.groupby("agent")}

    def curves(self, agent: str, column: str) -> tuple[FloatArray, FloatArray]:
        """Return the logged episodes (T',), and a column of the log for every seed, (R, T')."""
        table = self.logs[agent].pivot(index="seed", columns="episode", values=column)
        return table.columns.to_numpy(dtype=np.float64), table.to_numpy(dtype=np.float64)

    def mean(self, agent: str, column: str) -> float:
        """Return the mean over the seeds of a total of the runs; nan where an agent has none."""
        runs = self.runs[(self.runs["agent"] == agent) & self.runs["seed"].isin(self.finals.index)]
        return float(runs[column].mean())

    def milliseconds(self, agent: str) -> float:
        """Return the agent's own time per episode: the median, so that compilation in the first one does not count."""
        rows = self.logs[agent]
        return 1e3 * float((rows["seconds_deciding"] + rows["seconds_learning"]).median())

    def exploring(self, agent: str) -> float:
        """Return how much of the mean total regret is the price of exploring; nan for an agent without a model.

        The rest is what the optimum of its model would have lost: what it did not know yet.
        """
        price = self.mean(agent, "regret") - self.mean(agent, "best_policy_regret")
        return 0.0 if abs(price) <= NO_REGRET else price

    def share(self, agent: str) -> float:
        """Return how much an agent earned in expectation, as a share of what the best policies would have earned.

        nan if that is unknown, or if rewards may be negative, so that their sum has no natural zero.
        """
        earnable = self.mean(agent, "earnable") if self.exact else math.nan
        return 1.0 - self.mean(agent, "regret") / earnable if earnable > 0.0 else math.nan

    @property
    def greedy(self) -> str | None:
        """The first agent that never explores, beside the one in focus."""
        kinds = {agent: self.configuration["agents"][agent]["kind"] for agent in self.rivals}
        return next((agent for agent, kind in kinds.items() if kind == "greedy"), None)

    def last_half(self, agent: str) -> float:
        """Return the share of the regret that was lost in the last half; without regret, the mean return in it."""
        if self.exact:
            lost = self.mean(agent, "regret")
            return self.mean(agent, "regret_last_half") / lost if lost > NO_REGRET else 0.0
        rows = self.logs[agent]
        return float(rows.loc[rows["episode"] > self.episodes // 2, "return"].mean())

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


def scenarios(results: Results, log: pandas.DataFrame | None = None) -> list[Scenario]:
    """Return the scenarios in which all agents that finished a run have one seed or more in common.

    They come in the order of the configuration. `log` is the log, if only some of its columns have been read.
    """
    if results.runs.empty:
        return []
    configuration, key = results.configuration, ["world", "adversary"]
    worlds = [world.name for world in unchecked_plan(configuration).worlds]
    runs, logs = (dict(list(table.groupby(key))) for table in (results.runs, results.log if log is None else log))
    found = [
        Scenario(world=place[0], adversary=place[1], configuration=configuration, runs=runs[place], log=logs[place])
        for place in itertools.product(worlds, configuration["adversaries"])
        if place in runs
    ]
    return [each for each in found if len(each.finals)]


def compare_scenarios(
    results: Results, against: str | None = None
) -> list[tuple[Scenario, tuple[PairedComparison, ...]]]:
    """Return each scenario with the comparisons of every two agents, or of each one with `against`; some have none."""
    agents = results.configuration["agents"]
    if against is not None and against not in agents:
        raise ValueError(f"`against` must be one of {', '.join(agents)}, got {against!r}")
    found = scenarios(results, results.runs)  # no column of the log is needed
    compared = [(each, each.compare(against) if against in (None, *each.agents) else ()) for each in found]
    if not any(pairs for _, pairs in compared):
        raise ValueError("no two agents have finished the same seed; `omg-lab run` continues the study")
    return compared
