"""What a kind of world, adversary or agent is: a name, a line of description, and options; and one of that kind."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from omg_cmdp.environments.world import World

REQUIRED = inspect.Parameter.empty
"""Stands for the default of an option that must be given."""

SUPPLIED = frozenset({"space", "reward_oracle", "dynamics_oracle", "reward_range", "contexts", "make"})
"""Arguments that no configuration sets."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What adversaries and agents are built for."""

    world: World
    seed: int
    """Of the agent's draws."""
    episodes: int


Options = Mapping[str, Any]
Build = Callable[..., Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of world, adversary or agent."""

    name: str
    description: str
    build: Build
    options: Options
    """The default of every option, `REQUIRED` if there is none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A world, an adversary or an agent: its name in the experiment, its kind and options."""

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


def options_of(made: Build, *, without: Iterable[str] = (), **others: Any) -> Options:
    """Return the options of a constructor with their defaults, and `others`, of which the same is true."""
    arguments = inspect.signature(made).parameters.values()
    named = {each.name: each.default for each in arguments if each.kind is not each.VAR_KEYWORD}
    left = {name: default for name, default in named.items() if name not in SUPPLIED and name not in without}
    return {**left, **others}


def kinds(*listed: Kind) -> dict[str, Kind]:
    """Return the kinds by name."""
    return {kind.name: kind for kind in listed}


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
