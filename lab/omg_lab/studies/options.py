"""A kind of thing that a study file may name, and its options: the arguments of its constructor."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Container, Mapping
from typing import Any

from omg_cmdp.agents.building import arguments_of
from omg_cmdp.documents import FileError, nearest

REQUIRED = inspect.Parameter.empty
"""Stands for the default of an option that must be given."""

SUPPLIED = frozenset(
    {"space", "contexts", "mdp", "features", "reward_oracle", "dynamics_oracle", "reward_range", "world"}
    | {"costs", "budgets", "known_rewards", "known_transitions"}
)
"""Arguments that the world decides, and no study file."""

Options = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of world, adversary, agent or delay."""

    name: str
    make: Callable[..., Any]
    """Its class, or a function that returns one."""
    options: Options
    """The default of every option, `REQUIRED` if there is none."""

    @property
    def description(self) -> str:
        """The first clause of its docstring."""
        return first_clause(self.make)


def options_of(make: Callable[..., Any]) -> Options:
    """Return the arguments that a study file may set, with their defaults."""
    return {name: default for name, default in arguments_of(make).items() if name not in SUPPLIED}


def check_options(kind: str, given: Options, known: Options, *, supplied: Container[str] = ()) -> None:
    """Refuse an option that a kind does not have, and one that is missing though it has no default."""
    for name in given:
        if name not in known:
            raise FileError(f"{kind!r} has no option {name!r}; {nearest(name, known)}", (name,))
    for name, default in known.items():
        if default is REQUIRED and name not in given and name not in supplied:
            raise FileError(f"{kind!r} needs the option {name!r}")


def first_clause(made: Callable[..., Any]) -> str:
    """Return the first clause of a docstring, which describes a kind."""
    first = (inspect.getdoc(made) or "").partition("\n")[0]
    return re.split(r"(?<!\.)\.(?: |$)|; ", first)[0].replace("`", "").removeprefix("Return ")
