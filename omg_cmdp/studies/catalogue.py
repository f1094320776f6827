"""The worlds, adversaries and agents that a study file may name, found among the public classes of the package.

A kind is called like its file, or like its class where a file holds several: `worlds/lock.py` is "lock", `FastCB` of
`rivals/bandits.py` is "fast_cb". Its description is the first clause of its docstring. Its options are the arguments
of its constructor, except for what a run supplies: the space, oracles, contexts, and, unless they are set, the seed and
the number of episodes. A world made of the tables of another package is there if that package is installed; it is not
imported before the world is built.
"""

from __future__ import annotations

import collections
import dataclasses
import difflib
import importlib.metadata
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from omg_cmdp import adversaries, agents, environments
from omg_cmdp.adversaries.base import Adversary
from omg_cmdp.agents.base import Agent
from omg_cmdp.environments.world import World
from omg_cmdp.studies.agents import Setting, agent_options, make_agent
from omg_cmdp.studies.options import Options, options_of

LARGEST_TABLE = 10**8
"""The most numbers in a table of a world; larger ones are refused before they are made."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of world, adversary or agent."""

    name: str
    description: str
    make: Callable[..., Any]
    """Its class, or a function that returns one."""
    options: Options
    """The default of every option, `REQUIRED` if there is none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A world, an adversary or an agent of a study: its name there, its kind and options."""

    name: str
    kind: str
    options: Options

    def resolved(self) -> dict[str, Any]:
        """Return what a configuration says of it."""
        return {"kind": self.kind, **self.options}

    @classmethod
    def of(cls, name: str, resolved: Options) -> Part:
        """Return the part of which a configuration says this."""
        return cls(name=name, kind=resolved["kind"], options={k: v for k, v in resolved.items() if k != "kind"})


def _found(room: ModuleType, base: type, options: Callable[[str, Callable[..., Any]], Options]) -> dict[str, Kind]:
    """Return the kinds among the public names of `room`: concrete subclasses of `base`, and functions returning one."""
    public = [each for name, each in vars(room).items() if name in room.__all__]  # but nothing that is imported late
    made = [each for each in public if _makes(each, base) and _installed(getattr(each, "package", None))]
    in_file = collections.Counter(each.__module__ for each in made)
    named = {_kind_name(each, alone=in_file[each.__module__] == 1): each for each in made}
    return {
        name: Kind(
            name=name, description=_first_clause(named[name]), make=named[name], options=options(name, named[name])
        )
        for name in sorted(named)
    }


def _makes(thing: Any, base: type) -> bool:
    made = thing.__globals__.get(thing.__annotations__.get("return", "")) if inspect.isfunction(thing) else thing
    return inspect.isclass(made) and issubclass(made, base) and not inspect.isabstract(made)


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


def _first_clause(made: Callable[..., Any]) -> str:
    first = (inspect.getdoc(made) or "").partition("\n")[0]
    return re.split(r"(?<!\.)\.(?: |$)|; ", first)[0].replace("`", "").removeprefix("Return ")


WORLDS = _found(environments, World, lambda name, made: options_of(made))
"""All public worlds whose packages are installed; what `from_gymnasium` makes needs more than a file can say."""
ADVERSARIES = _found(adversaries, Adversary, lambda name, made: options_of(made))
AGENTS = _found(agents, Agent, agent_options)
KINDS: dict[str, Mapping[str, Kind]] = {"worlds": WORLDS, "adversaries": ADVERSARIES, "agents": AGENTS}


def build_world(kind: str, options: Options, *, seed: int, episodes: int) -> World:
    """Return a world; its structure is drawn by `seed` unless the options hold another."""
    chosen = WORLDS[kind]
    usual = {**chosen.options, "seed": seed, "episodes": episodes, **options}
    given = {name: usual[name] for name in chosen.options}
    _check_size(given)
    world: World = chosen.make(**given)
    return world


def build_adversary(kind: str, options: Options, setting: Setting) -> Adversary:
    """Return an adversary over the contexts of the world."""
    chosen, contexts = ADVERSARIES[kind], setting.world.contexts
    supplied = {"episodes": setting.episodes} if "episodes" in chosen.options else {}
    adversary: Adversary = chosen.make(contexts, **supplied | dict(options))
    if isinstance(adversary, adversaries.NeverTwice) and setting.episodes > len(contexts):
        raise ValueError(f"`episodes` must be at most the number of contexts {len(contexts)}, got {setting.episodes}")
    return adversary


def build_agent(kind: str, options: Options, setting: Setting) -> Agent:
    """Return an agent for the world."""
    return make_agent(kind, AGENTS[kind].make, dict(options), setting)


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return what to say about a name that does not exist: the nearest one, or all if none is near.

    >>> nearest("gredy", ["greedy", "omg"])
    "did you mean 'greedy'?"
    >>> nearest("x", ["greedy", "omg"])
    'there are greedy, omg'
    """
    names = list(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names) or 'none'}"


def _check_size(options: Options) -> None:
    """Refuse sizes whose tables would not fit into memory; what is no number is left to the constructor."""

    def size(*names: str) -> int:
        found: list[int] = [options[name] for name in names if isinstance(options.get(name), int)]
        return max([1, *found])

    states = size("states", "positions", "visits", "size", "length", "room_states")
    actions, contexts = size("actions", "keys", "risky_arms"), size("context_count", "patients")
    functions = size("class_size", "reward_class_size", "transition_class_size")
    wide = functions * states * actions * max(states * size("dimension"), contexts)
    deep = size("horizon", "visits", "size") * states * actions * contexts
    if max(wide, deep) > LARGEST_TABLE:
        largest = max((name for name in options if name not in ("seed", "episodes")), key=size)
        raise ValueError(f"`{largest}` must leave tables of at most {LARGEST_TABLE} numbers, got {max(wide, deep)}")
