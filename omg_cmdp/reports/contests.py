"""A contest: one world under one adversary, the agents that played there, and their curves over the seeds."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.agents.base import Agent, ModelAgent
from omg_cmdp.reports.statistics import NO_REGRET, Interval, mean_interval
from omg_cmdp.studies.catalogue import build_agent, build_world
from omg_cmdp.studies.kinds import Part, Setting
from omg_cmdp.studies.plan import slug
from omg_cmdp.studies.results import Results
from omg_cmdp.studies.variations import Variant, variants
from omg_cmdp.theory import bounds, errors
from omg_cmdp.theory.constants import Assumptions
from omg_cmdp.validation import FloatArray

if TYPE_CHECKING:
    import pandas

DELTA = 0.05
"""The failure probability at which bounds are drawn."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Theory:
    """The theorem's numbers for a contest: sizes, and the oracles' own bounds on their regrets over all episodes.

    Such a bound does not fall with the number of episodes, so that it holds for fewer episodes too.
    """

    states: int
    actions: int
    horizon: int
    reward_regret: float
    dynamics_regret: float

    def printed(self, episodes: FloatArray) -> FloatArray:
        """Return the bound on the regret of so many episodes as the paper prints it, at the paper's γ for them."""
        return self._bound(bounds.as_printed, episodes)

    def corrected(self, episodes: FloatArray) -> FloatArray:
        """Return the bound with the constants of docs/theory.md, at the γ that makes it smallest."""
        return self._bound(bounds.corrected, episodes)

    def _bound(self, bound: Callable[..., float], episodes: FloatArray) -> FloatArray:
        given = functools.partial(Assumptions, **dataclasses.asdict(self), delta=DELTA)
        return np.array([bound(given(episodes=int(t))) for t in episodes])

    @property
    def reward_error(self) -> float:
        """What Σ q·(f̂ - f*)² over all episodes exceeds with probability at most δ/2."""
        return errors.reward_error(horizon=self.horizon, delta=DELTA, reward_regret=self.reward_regret)

    @property
    def dynamics_error(self) -> float:
        """What Σ q·D²(P̂, P*) over all episodes exceeds with probability at most δ/2."""
        return errors.dynamics_error(horizon=self.horizon, delta=DELTA, dynamics_regret=self.dynamics_regret)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contest:
    """The finished runs in one world under one adversary."""

    place: Part
    """The world."""
    adversary: str
    configuration: Mapping[str, Any]
    log: pandas.DataFrame

    @property
    def world(self) -> str:
        """The world's name."""
        return self.place.name

    @property
    def name(self) -> str:
        """For files."""
        return f"{slug(self.world)}--{slug(self.adversary)}"

    @property
    def title(self) -> str:
        """For headings."""
        return f"World {self.world}, adversary {self.adversary}"

    @functools.cached_property
    def finals(self) -> pandas.DataFrame:
        """The total regret, a row per seed that all agents have finished and a column per agent, best first."""
        last = self.log.sort_values("episode").groupby(["seed", "agent"])["cumulative_regret"].last()
        table = last.where(last.abs() > NO_REGRET, 0.0).unstack("agent").dropna()
        return table[table.mean().sort_values(kind="stable").index]

    @property
    def agents(self) -> list[str]:
        """Best first."""
        return list(self.finals.columns)

    @property
    def hero(self) -> str:
        """The agent that the report is about: the first that is OMG; the best if none is."""
        return leading(self.configuration, self.agents)

    @property
    def rivals(self) -> list[str]:
        """All but the hero, best first."""
        return [agent for agent in self.agents if agent != self.hero]

    @property
    def everyone(self) -> list[str]:
        """The hero, then all other agents of the experiment: an order that is the same in all contests."""
        return [self.hero, *(name for name in self.configuration["agents"] if name != self.hero)]

    @property
    def episodes(self) -> int:
        """How many each run has."""
        return int(self.log["episode"].max())

    @functools.cached_property
    def _logs(self) -> dict[str, pandas.DataFrame]:
        seeds = self.finals.index
        return {str(agent): rows[rows["seed"].isin(seeds)] for agent, rows in self.log.groupby("agent")}

    def curves(self, agent: str, column: str) -> tuple[FloatArray, FloatArray]:
        """Return the logged episodes (K,), and a column of the log, (seeds, K)."""
        table = self._logs[agent].pivot(index="seed", columns="episode", values=column)
        return table.columns.to_numpy(dtype=np.float64), table.to_numpy(dtype=np.float64)

    def known(self, agent: str, column: str) -> bool:
        """Whether the agent has such a thing."""
        return bool(self._logs[agent][column].notna().any())

    def milliseconds(self, agent: str) -> float:
        """Return the agent's own time per episode, the median: what is compiled in the first one does not count."""
        rows = self._logs[agent]
        return 1e3 * float((rows["seconds_deciding"] + rows["seconds_learning"]).median())

    @functools.cached_property
    def theory(self) -> Theory | None:
        """The theorem's numbers for the hero; None if its oracles promise nothing."""
        agent = self._built(self.hero)
        if not isinstance(agent, ModelAgent):
            return None
        space, oracles = agent.space, (agent.reward_oracle, agent.dynamics_oracle)
        regrets = [oracle.regret_bound(self.episodes, space.horizon) for oracle in oracles]
        if not np.isfinite(regrets).all():
            return None
        return Theory(
            states=space.states,
            actions=space.actions,
            horizon=space.horizon,
            reward_regret=regrets[0],
            dynamics_regret=regrets[1],
        )

    def _built(self, name: str) -> Agent:
        """Return the agent built anew: logs hold what happened, and not what oracles promise."""
        agent = Part.of(name, self.configuration["agents"][name])
        world = build_world(self.place.kind, self.place.options, seed=0, episodes=self.episodes)
        built = build_agent(agent.kind, agent.options, Setting(world=world, seed=0, episodes=self.episodes))
        built.model(world.contexts[0])  # an oracle knows the size of its class once it has seen a context
        return built


def leading(configuration: Mapping[str, Any], agents: Sequence[str]) -> str:
    """Return the first of `agents` that is OMG; the first of all if none is."""
    kinds = {name: resolved["kind"] for name, resolved in configuration["agents"].items()}
    return next((name for name, kind in kinds.items() if kind == "omg" and name in agents), agents[0])


def regret_interval(totals: ArrayLike) -> Interval:
    """Return the interval for the mean of total regrets, a number per seed; regret is never negative."""
    mean, low, high = mean_interval(totals)
    return Interval(mean, float(np.maximum(low, 0.0)), high)


def sizes(configuration: Mapping[str, Any]) -> list[Variant]:
    """Return the worlds in the sizes that are varied, if any is."""
    worlds = [Part.of(name, resolved) for name, resolved in configuration["worlds"].items()]
    return variants(worlds, configuration["vary"], configuration["episodes"])


def places(configuration: Mapping[str, Any]) -> list[Part]:
    """Return the worlds in which runs were played."""
    varied = [variant.world for variant in sizes(configuration)]
    return varied or [Part.of(name, resolved) for name, resolved in configuration["worlds"].items()]


def contests(results: Results) -> list[Contest]:
    """Return the contests of an experiment, in the order of its configuration; only finished runs count."""
    configuration, key = results.configuration, ["world", "adversary", "agent", "seed"]
    log = results.log.merge(results.runs[key], on=key)
    found = []
    for place, adversary in itertools.product(places(configuration), configuration["adversaries"]):
        rows = log[(log["world"] == place.name) & (log["adversary"] == adversary)]
        contest = Contest(place=place, adversary=adversary, configuration=configuration, log=rows)
        if len(rows) and len(contest.finals):
            found.append(contest)
    return found
