"""The plan of a study: worlds × adversaries × agents × seeds, one run for each; and the random streams of every run."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from omg_cmdp.contexts import Context, context_numbers, context_to_json
from omg_cmdp.documents import FileError
from omg_cmdp.environments import SampledWorld
from omg_cmdp.mdp.occupancy import uniform_policy
from omg_cmdp.runs.sampled import SampledRun
from omg_cmdp.runs.simulate import Run
from omg_cmdp.theory.rounds import Round
from omg_lab.shown import shown_contexts
from omg_lab.studies.agents import SHARED, Setting
from omg_lab.studies.catalogue import Part, build_adversary, build_agent, build_delay, build_world
from omg_lab.studies.oracles import has_class
from omg_lab.studies.outside.folder import Folder
from omg_lab.studies.store import digest_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """One run of a study.

    Its random streams follow by `SeedSequence` from the seed of the study, the number of the seed, and the names of
    world and adversary. So they are the same on any engine, and for all agents, which meet the same world and noise.
    The world's structure does not depend on the adversary.
    """

    world: Part
    adversary: Part
    agent: Part
    seed: int
    """The number of the seed in the study."""
    plan: StudyPlan
    """The study, which has all that is common to its runs."""

    @property
    def episodes(self) -> int:
        """The number of episodes: the world's own, or the study's."""
        return int(self.world.options.get("episodes", self.plan.episodes))

    @property
    def delay(self) -> Any:
        """The delay of feedback, as in the study file: the world's own, or the study's."""
        return self.world.options.get("delay", self.plan.delay)

    @property
    def name(self) -> str:
        """The name of its files."""
        return "--".join(slug(str(label)) for label in self.labels.values())

    @property
    def settings(self) -> str:
        """A digest of all that decides its numbers; checkpoints may be anywhere."""
        parts = [part.resolved() for part in (self.world, self.adversary, self.agent)]
        more = [*([self.delay] if self.delay else []), *(["ceiling"] if self.plan.ceiling else [])]
        return digest_of([self.labels, parts, self.plan.seed, self.episodes, self.plan.propensities, *more])

    @property
    def labels(self) -> dict[str, str | int]:
        """The columns that tell runs apart."""
        return {"world": self.world.name, "adversary": self.adversary.name, "agent": self.agent.name, "seed": self.seed}

    def setting(self) -> Setting:
        """Return the world, with the seed and number of episodes that its adversary and agent are built for."""
        self._check_sources()
        options, folder = self.world.options, self.plan.folder
        return Setting(
            world=build_world(self.world.kind, options, seed=self._seed(), episodes=self.episodes, folder=folder),
            folder=folder,
            seed=self._seed(self.adversary.name, "agent"),
            episodes=self.episodes,
            shared={name: options[name] for name in SHARED if name in options},
        )

    def start(self, observe: Callable[[Round], None] | None = None) -> Run:
        """Return the run at its beginning."""
        setting, noise = self.setting(), self._seed(self.adversary.name, "noise")
        adversary = build_adversary(self.adversary.kind, self.adversary.options, setting)
        agent = build_agent(self.agent.kind, self.agent.options, setting)
        play = SampledRun if isinstance(setting.world, SampledWorld) else Run
        delay = build_delay(self.delay)
        told = agent.reward_oracle, agent.dynamics_oracle
        known = None not in told or has_class(setting.world)
        ceiling = self.plan.ceiling and known
        return play(setting.world, adversary, agent, seed=noise, delay=delay, observe=observe, ceiling=ceiling)

    def _check_sources(self) -> None:
        """Refuse sources outside the package that have changed since the study was planned."""
        folder = self.plan.folder
        for table, part in zip(TABLES, (self.world, self.adversary, self.agent), strict=True):
            # Without a folder nothing is imported, and such a kind is unknown.
            if folder is not None and part.digest and part.found_in(folder, table) != part.digest:
                raise FileError(
                    f"{part.name!r}: its sources have changed since the study began; choose another folder with --out"
                )

    def _seed(self, *owner: str) -> int:
        parts = (str(self.plan.seed), str(self.seed), self.world.name, *owner)
        entropy = [int.from_bytes(hashlib.sha256(part.encode()).digest()[:8], "big") for part in parts]
        return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """A study as its TOML file describes it."""

    name: str
    description: str = ""
    episodes: int
    seed: int = 0
    """All random streams of all runs follow from it."""
    seeds: tuple[int, ...] = (0,)
    checkpoint: int
    """Episodes between checkpoints."""
    propensities: bool = False
    """Whether states, actions, rewards and propensities are logged."""
    ceiling: bool = False
    """Whether logs say what has been lost at most."""
    worlds: tuple[Part, ...]
    adversaries: tuple[Part, ...]
    agents: tuple[Part, ...]
    delay: Any = 0
    """The delay of feedback in worlds that set none of their own: a number of episodes, or a table."""
    folder: Folder | None = dataclasses.field(default=None, compare=False)
    """The folder of the study file that the user has named."""

    def tasks(self) -> tuple[Task, ...]:
        """Return all runs, seed by seed, so that agents can be compared early."""
        grid = itertools.product(self.seeds, self.worlds, self.adversaries, self.agents)
        return tuple(
            Task(world=world, adversary=adversary, agent=agent, seed=seed, plan=self)
            for seed, world, adversary, agent in grid
        )

    def configuration(self) -> dict[str, Any]:
        """Return the configuration with all kinds and defaults resolved, as plain data in the form of the file."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.compare}
        parts = {table: {part.name: part.resolved() for part in plain[table]} for table in TABLES}
        return {**plain, "seeds": list(self.seeds), **parts}


TABLES = ("worlds", "adversaries", "agents")

DIGITS = 6
"""Digits of the numbers in a digest of a world: on another processor the last bits may be others."""


PROBES = 5
"""Episodes for each of the contexts of a world without tables; what they do not meet is not told apart."""


def world_digest(world: Any) -> str:
    """Return a digest of a world as it is built: its contexts, and for six of them its tables, or some episodes.

    Options and sources do not tell all: a world may depend on files that it reads itself, or on another package.
    """
    parts: list[Any] = [world.space.admissible, world.space.start, *map(_exactly, world.contexts)]
    generator = np.random.default_rng(0)
    for context in shown_contexts(world.contexts):
        if isinstance(world, SampledWorld):
            played = [world.sample(context, uniform_policy(world.space), generator) for _ in range(PROBES)]
            parts += [array for each in played for array in (each.states, each.actions, each.rewards)]
        else:
            mdp = world.mdp(context)
            parts += [mdp.transitions, mdp.rewards]
    whole = hashlib.sha256()
    for part in parts:
        # Zero may have a sign, which does not count.
        numbers = None if isinstance(part, str) else np.round(np.asarray(part, np.float64), DIGITS) + 0.0
        whole.update(part.encode() if numbers is None else f"{numbers.shape}".encode() + numbers.tobytes())
    return whole.hexdigest()


def _exactly(context: Context) -> Any:
    numbers = context_numbers(context)
    return context_to_json(context) if numbers is None else numbers


def slug(name: str) -> str:
    """Return `name` for use in a file name: letters, digits and single hyphens.

    >>> slug("OMG, κ = 0.1")
    'omg-κ-0-1'
    """
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-")
