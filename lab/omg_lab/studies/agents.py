"""How an agent of a study is built for a world: what the file says becomes arguments of its `for_world`.

Which `oracles` there are is said in `studies/oracles.py`.

`return_range` is [least, most], or "world" for what the world says of itself, if it does; an agent is not told unless
the file says so.

A number that may change with the episode t is given as such, or as a table {scale, exponent}: scale·t^exponent.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from omg_cmdp import agents
from omg_cmdp.agents.agent import Agent
from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.agents.building import arguments_of, build_for
from omg_lab.studies.options import SUPPLIED, Options, options_of
from omg_lab.studies.oracles import has_class, oracle_pair, usual_oracles
from omg_lab.studies.outside.folder import Folder

SHARED = ("oracles", "return_range")
"""Options of agents that a world may set for all agents that have them; an agent's own come first."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What adversaries and agents are built for."""

    world: Any
    """A `ContextualMDP` or a `SampledWorld`, with `contexts`."""
    seed: int
    """The seed of the agent's draws."""
    episodes: int
    folder: Folder | None = None
    """Where names outside the package are found; None: nowhere."""
    shared: Options = dataclasses.field(default_factory=dict)
    """What the world's table says of all agents; `SHARED` lists the names."""


def agent_options(make: Callable[..., Any]) -> Options:
    """Return the options of a kind of agent, with their defaults: of its constructor, and of its `for_world`."""
    options, arguments = dict(options_of(make)), arguments_of(make)
    if _is_class(make):
        own = arguments_of(make.for_world)  # type: ignore[attr-defined]
        options |= {name: default for name, default in own.items() if name not in SUPPLIED}
    if "reward_oracle" in arguments or "dynamics_oracle" in arguments:
        # What its paper assumes.
        options["oracles"] = make.usual_oracles if isinstance(make, type) and issubclass(make, ModelAgent) else "finite"
    if "features" in arguments:
        del options["dimension"]
    return options


def make_agent(make: Callable[..., Any], options: dict[str, Any], setting: Setting) -> Agent:
    """Return an agent for the world."""
    world, known = setting.world, agent_options(make)
    options = {name: value for name, value in setting.shared.items() if name in known} | options
    if "oracles" in known:
        named = options.pop("oracles", known["oracles"] if has_class(world) else usual_oracles(world))
        pair = zip(("reward_oracle", "dynamics_oracle"), oracle_pair(world, named, setting.folder), strict=True)
        options |= {name: oracle for name, oracle in pair if name in arguments_of(make)}
    if options.get("return_range") == "world":
        options["return_range"] = world.paid_returns
    given: dict[str, Any] = {"seed": setting.seed, "episodes": setting.episodes}
    given |= {name: _power(name, value) if isinstance(value, dict) else value for name, value in options.items()}
    build = make.for_world if _is_class(make) else functools.partial(build_for, make)  # type: ignore[attr-defined]
    agent: Agent = build(world, **given)
    return agent


def _is_class(make: Any) -> bool:
    return isinstance(make, type) and issubclass(make, Agent)


def _power(name: str, table: dict[str, Any]) -> agents.Power:
    if set(table) != {"scale", "exponent"}:
        raise ValueError(f"`{name}` must be a number or a table {{scale, exponent}}, got {table!r}")
    return agents.Power(**table)
