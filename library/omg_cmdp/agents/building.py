"""How a constructor is called for a world: it gets what it takes of what the world knows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from omg_cmdp.mdp.environment import Environment
from omg_cmdp.oracles.finite.aggregating import FiniteDynamics, FiniteRewards
from omg_cmdp.validation import instance_of

T = TypeVar("T")


def arguments_of(make: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of a class or function with their defaults; what **settings passes on counts too."""
    listed = inspect.signature(make).parameters.values()
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = {each.name: each.default for each in listed if each.kind not in rest}
    if isinstance(make, type) and any(each.kind is inspect.Parameter.VAR_KEYWORD for each in listed):
        return {**arguments_of(make.__bases__[0]), **named}
    return named


def class_oracles(world: Environment) -> dict[str, Any]:
    """Return online oracles of the world's class of functions by their names; nothing if it has no class."""
    if world.reward_functions is None or world.transition_functions is None:
        return {}
    horizon = world.space.horizon
    return {
        "reward_oracle": FiniteRewards(world.reward_functions, horizon=horizon),
        "dynamics_oracle": FiniteDynamics(world.transition_functions, horizon=horizon),
    }


def arguments_for(
    make: Callable[..., Any], world: Environment, *, seed: int = 0, episodes: int | None = None, **options: Any
) -> dict[str, Any]:
    """Return `options` with what the world knows, where `make` takes that: see `Agent.for_world`."""
    instance_of("world", world, Environment)
    known = {"world": world, "space": world.space, "contexts": world.contexts, "reward_range": world.paid_range}
    known |= {"seed": seed, "episodes": episodes}
    if world.budgets is not None:
        known |= {"costs": world.costs, "budgets": world.budgets}
    taken = arguments_of(make)
    if "reward_oracle" in taken and "reward_oracle" not in options:
        known |= class_oracles(world)
    return {name: value for name, value in known.items() if name in taken} | options


def build_for(make: Callable[..., T], world: Environment, **options: Any) -> T:
    """Return what `make` makes of the arguments for a world."""
    return make(**arguments_for(make, world, **options))
