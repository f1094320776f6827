"""The worlds, adversaries and agents that a study file may name: the public classes of the package, and the user's.

A kind is called like its file, or like its class where a file holds several: `worlds/lock.py` is "lock", `FastCB` of
`bandits/inverse_gap.py` is "fast_cb". Its description is the first clause of its docstring. Its options are the
arguments of its constructor, except for what a run supplies: the space, oracles, contexts, and, unless they are set,
the seed and the number of episodes. A world made of the tables of another package is there if that package is
installed; it is not imported before the world is built.

What is not of the package, `module:Name`, comes from the `Folder` of the study file; without one it is refused.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib.metadata
import inspect
import re
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from omg_cmdp import adversaries, agents, delays
from omg_cmdp.adversaries.base import Adversary
from omg_cmdp.agents.agent import Agent
from omg_cmdp.agents.base import Learner
from omg_cmdp.agents.building import arguments_of
from omg_cmdp.delays import Delay
from omg_cmdp.documents import FileError, nearest
from omg_cmdp.environments import ContextualMDP, SampledWorld
from omg_cmdp.mdp.environment import NAMED, set_names
from omg_cmdp.records import context_rows
from omg_cmdp.validation import whole_number
from omg_lab import rivals, worlds
from omg_lab.studies.agents import Setting, agent_options, make_agent
from omg_lab.studies.options import Kind, Options, check_options, options_of
from omg_lab.studies.outside.environments import gymnasium_world
from omg_lab.studies.outside.folder import Folder, is_outside
from omg_lab.worlds.base import World

LARGEST_TABLE = 5 * 10**7
"""The most numbers in a table of a world; larger ones are refused before they are made."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A world, an adversary or an agent of a study: its name there, its kind and options."""

    name: str
    kind: str
    options: Options
    digest: str = ""
    """The digest of the modules and files outside the package that it names; empty if it names none."""

    def resolved(self) -> dict[str, Any]:
        """Return what a configuration says of it."""
        return {"kind": self.kind, **self.options, **({DIGEST: self.digest} if self.digest else {})}

    def named_outside(self, table: str) -> tuple[list[str], list[str]]:
        """Return the names outside the package that it uses, and the files of contexts."""
        names = [] if self.kind in KINDS[table] else [self.kind]
        names += filter(is_outside, _texts(self.options.get("oracles")))
        file = self.options.get("contexts")
        return names, [file] if table == "worlds" and isinstance(file, str) else []

    def found_in(self, folder: Folder, table: str) -> str:
        """Return the digest of what it names outside the package, as that is now; empty if it names nothing."""
        names, files = self.named_outside(table)
        for name in names:
            folder.find(name)
        return folder.digest(names, files) if names or files else ""


DIGEST = "digest of sources"
"""The key of the digest in a configuration, beside the options of a part, none of which can have this name."""


def _found(base: type, options: Callable[[Callable[..., Any]], Options], *rooms: ModuleType) -> dict[str, Kind]:
    """Return the kinds among the public names of `rooms`: concrete classes."""
    # What is imported late is no attribute yet.
    public = [each for room in rooms for name, each in vars(room).items() if name in room.__all__]
    made = [
        each
        for each in public
        if inspect.isclass(each)
        and issubclass(each, base)
        and not inspect.isabstract(each)
        and _installed(each.package if issubclass(each, World) else None)
    ]
    in_file = collections.Counter(each.__module__ for each in made)
    named = {_kind_name(each, alone=in_file[each.__module__] == 1): each for each in made}
    return {name: Kind(name=name, make=named[name], options=options(named[name])) for name in sorted(named)}


def _installed(package: str | None) -> bool:
    try:
        return package is None or bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


def _kind_name(made: Callable[..., Any], *, alone: bool) -> str:
    file = made.__module__.rpartition(".")[2]
    if alone:
        return file
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", made.__name__).lower()
    return re.sub(rf"^{file}_?(?=.)", f"{file}_", name)  # GLMORL of glm.py is glm_orl


WORLDS = _found(World, options_of, worlds)
"""All public worlds whose packages are installed, and Gymnasium's environments."""
if _installed("gymnasium"):
    WORLDS["gymnasium"] = Kind(name="gymnasium", make=gymnasium_world, options=arguments_of(gymnasium_world))
    WORLDS = dict(sorted(WORLDS.items()))
ADVERSARIES = _found(Adversary, options_of, adversaries)
AGENTS = _found(Agent, agent_options, agents, rivals)
DELAYS = _found(Delay, options_of, delays)
KINDS: dict[str, Mapping[str, Kind]] = {"worlds": WORLDS, "adversaries": ADVERSARIES, "agents": AGENTS}


def find_kind(table: str, name: Any, folder: Folder | None) -> Kind:
    """Return a kind of the package, or one from outside, which is imported."""
    if isinstance(name, str) and name in KINDS[table]:
        return KINDS[table][name]
    if folder is None or not is_outside(name):
        raise FileError(f"[{table}] has no kind {name!r:.60}; {nearest(str(name), KINDS[table])}")
    make = folder.find(name)
    if table != "worlds":
        return Kind(name=name, make=make, options=(agent_options if table == "agents" else options_of)(make))
    if _is_env(make):
        bound = functools.partial(gymnasium_world, make)
        bound.__doc__ = make.__doc__
        return Kind(name=name, make=bound, options=arguments_of(bound))
    return Kind(name=name, make=make, options=arguments_of(make))


def _is_env(make: Any) -> bool:
    """Return whether this is a class of Gymnasium's environments, without importing Gymnasium."""
    bases = inspect.getmro(make) if inspect.isclass(make) else ()
    return any((base.__module__, base.__name__) == ("gymnasium.core", "Env") for base in bases)


def _texts(value: Any) -> list[str]:
    """Return all texts in nested tables and lists."""
    if isinstance(value, str):
        return [value]
    inner = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
    return [text for each in inner for text in _texts(each)]


def build_world(kind: str, options: Options, *, seed: int, episodes: int, folder: Folder | None = None) -> Any:
    """Return a world; its structure is drawn by `seed` unless the options hold another."""
    chosen = find_kind("worlds", kind, folder)
    usual = {**chosen.options, "seed": seed, "episodes": episodes, **options}
    given = {name: usual[name] for name in chosen.options}
    if folder is not None and isinstance(given.get("contexts"), str):
        given["contexts"] = folder.contexts(given["contexts"])
    _check_size(given)
    world: Any = chosen.make(**given)
    if not issubclass(type(world), (ContextualMDP, SampledWorld)):
        raise ValueError(f"a world must be a ContextualMDP or a Gymnasium environment, got {type(world).__name__}")
    if not len(world.contexts):
        raise ValueError(f"a world must have `contexts`, a list of them, got {type(world).__name__} without")
    if not isinstance(world.contexts, (list, tuple)):
        world.contexts = tuple(context_rows("contexts", world.contexts))
    set_names(world, **{name: options[name] for name in NAMED if name in options})
    return world


def build_adversary(kind: str, options: Options, setting: Setting) -> Adversary:
    """Return an adversary over the contexts of the world."""
    chosen, contexts = find_kind("adversaries", kind, setting.folder), setting.world.contexts
    supplied = {"episodes": setting.episodes} if "episodes" in chosen.options else {}
    adversary: Adversary = chosen.make(contexts, **supplied | dict(options))
    if isinstance(adversary, adversaries.NeverTwice) and setting.episodes > len(contexts):
        raise ValueError(f"`episodes` must be at most the number of contexts {len(contexts)}, got {setting.episodes}")
    if isinstance(adversary, adversaries.WorstRegret) and isinstance(setting.world, SampledWorld):
        raise ValueError(f"it looks at the truth, which {type(setting.world).__name__} does not know")
    return adversary


def build_delay(given: Any) -> Delay:
    """Return the delay of a study file: a number of episodes, or a table with a kind and its options."""
    if not isinstance(given, Mapping):
        return delays.as_delay(whole_number("delay", given))
    options = dict(given)
    kind = DELAYS.get(str(options.pop("kind", None)))
    if kind is None:
        raise ValueError(f"`delay` must have a kind, {', '.join(DELAYS)}, got {given.get('kind')!r:.60}")
    check_options(kind.name, options, kind.options)
    made: Delay = kind.make(**options)
    return made


def build_agent(kind: str, options: Options, setting: Setting) -> Agent:
    """Return an agent for the world, which must not have learned anything yet."""
    agent = make_agent(find_kind("agents", kind, setting.folder).make, dict(options), setting)
    if not isinstance(agent, Agent):
        raise ValueError(f"an agent must be an Agent, got {type(agent).__name__}")
    oracles = [oracle for oracle in (agent.reward_oracle, agent.dynamics_oracle) if oracle is not None]
    if (isinstance(agent, Learner) and agent.episodes_seen) or any(oracle.loss > 0.0 for oracle in oracles):
        raise ValueError("it has learned before it plays; make a fresh agent, with fresh oracles, for every run")
    return agent


def check_fresh(what: str, first: object, second: object) -> None:
    """Refuse what was made for two runs and is one object: what one run learns would be the other's."""
    if first is second is not None:
        raise ValueError(f"two runs would have the same {what}; make a fresh one within the function")


def _check_size(options: Options) -> None:
    """Refuse sizes whose tables would not fit into memory; what is no number is left to the constructor."""

    def size(name: str) -> int:
        return max(1, options[name]) if isinstance(options.get(name), int) else 1

    states, actions, contexts = size("states"), size("actions"), size("context_count")
    functions = max(map(size, ("class_size", "reward_class_size", "transition_class_size")))
    wide = functions * states * actions * max(states * size("dimension"), contexts)
    deep = size("horizon") * states * actions * contexts
    if max(wide, deep) > LARGEST_TABLE:
        largest = max((name for name in options if name not in ("seed", "episodes")), key=size)
        raise ValueError(f"`{largest}` must leave tables of at most {LARGEST_TABLE} numbers, got {max(wide, deep)}")
