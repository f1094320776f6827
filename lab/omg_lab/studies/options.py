"""The options of a kind, read from its constructor."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

REQUIRED = inspect.Parameter.empty
"""Stands for the default of an option that must be given."""

SUPPLIED = frozenset(
    {"space", "contexts", "make", "mdp", "features", "reward_oracle", "dynamics_oracle", "reward_range", "world"}
)
"""Arguments that the world decides, and no study file."""

Options = Mapping[str, Any]


def arguments_of(make: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of a class or function with their defaults; what **settings passes on counts too."""
    listed = inspect.signature(make).parameters.values()
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = {each.name: each.default for each in listed if each.kind not in rest}
    if isinstance(make, type) and any(each.kind is inspect.Parameter.VAR_KEYWORD for each in listed):
        return {**arguments_of(make.__bases__[0]), **named}
    return named


def options_of(make: Callable[..., Any]) -> Options:
    """Return the arguments that a study file may set, with their defaults."""
    return {name: default for name, default in arguments_of(make).items() if name not in SUPPLIED}
