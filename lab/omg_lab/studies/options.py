"""The options of a kind, read from its constructor."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from omg_cmdp.agents.building import arguments_of

REQUIRED = inspect.Parameter.empty
"""Stands for the default of an option that must be given."""

SUPPLIED = frozenset(
    {"space", "contexts", "mdp", "features", "reward_oracle", "dynamics_oracle", "reward_range", "world"}
)
"""Arguments that the world decides, and no study file."""

Options = Mapping[str, Any]


def options_of(make: Callable[..., Any]) -> Options:
    """Return the arguments that a study file may set, with their defaults."""
    return {name: default for name, default in arguments_of(make).items() if name not in SUPPLIED}
