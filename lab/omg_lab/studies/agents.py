"""How an agent of a study is built for a world: each argument of its constructor is supplied by its name.

Which `oracles` there are is said in `studies/oracles.py`.

`return_range` is [least, most], or "world" for what the world says of itself, if it does; an agent is not told unless
the file says so.

A number that may change with the episode t is given as such, or as a table {scale, exponent}: scale·t^exponent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from omg_cmdp import agents
from omg_cmdp.agents.base import Agent
from omg_cmdp.contexts import Context, context_vectors
from omg_cmdp.environments import SampledWorld
from omg_cmdp.validation import FloatArray
from omg_lab import rivals
from omg_lab.studies.options import Options, arguments_of, options_of
from omg_lab.studies.oracles import OF_CLASSES, SETTINGS, has_class, oracle_names, oracle_pair, usual_oracles
from omg_lab.studies.outside.folder import Outside

USUAL_ORACLES = {
    **dict.fromkeys(("epoch_omg", "epoch_pc_igw", "erm_reduction", "uc3rl"), "offline"),
    **dict.fromkeys(("ada_cb", "epoch_greedy", "falcon", "uccb"), "offline"),
    "fast_cb": "log_loss",
    "rm_ucdd": "least_squares",
}
"""The oracles that an agent's paper assumes, where these are not "finite"."""

COVER_OPTIONS: Options = {"cover": "per_context", "radius": 0.4, "clusters": None}
TUNABLE_RULES: dict[str, Callable[..., Any]] = {
    "adaptive": agents.GainWeighted,
    "uncertainty": agents.UncertaintyWeighted,
}
"""The exploration rules of OMG that have options."""
RULE_OPTIONS: Options = {
    name: default for rule in TUNABLE_RULES.values() for name, default in options_of(rule).items() if name != "seed"
}
SHARED = ("oracles", "return_range")
"""Options of agents that a world may set for all agents that have them; an agent's own come first."""

UNKNOWN = "unknown"
"""As the number of `episodes`: the agent is not told."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What adversaries and agents are built for."""

    world: Any
    """A `ContextualMDP` or a `SampledWorld`, with `contexts`."""
    seed: int
    """Of the agent's draws."""
    episodes: int
    folder: Outside | None = None
    """Where names outside the package are found; None: nowhere."""
    shared: Options = dataclasses.field(default_factory=dict)
    """What the world's table says of all agents; `SHARED` lists the names."""


def agent_options(kind: str, make: Callable[..., Any]) -> Options:
    """Return the options of a kind of agent, with their defaults."""
    options, arguments = dict(options_of(make)), arguments_of(make)
    if "reward_oracle" in arguments or "dynamics_oracle" in arguments:
        options |= {"oracles": USUAL_ORACLES.get(kind, "finite"), **SETTINGS}
    if "cover" in arguments:
        options |= COVER_OPTIONS
    if "features" in arguments:
        del options["dimension"]
    if make is agents.OMG:
        options |= RULE_OPTIONS
    return options


def make_agent(kind: str, make: Callable[..., Any], options: dict[str, Any], setting: Setting) -> Agent:
    """Return an agent for the world."""
    world, arguments = setting.world, arguments_of(make)
    known = agent_options(kind, make)
    options = {name: value for name, value in setting.shared.items() if name in known} | options
    supplied: dict[str, Any] = {"space": world.space, "world": world, "contexts": world.contexts}
    supplied |= {"seed": setting.seed, "episodes": setting.episodes}
    supplied["reward_range"] = world.paid_range
    if "mdp" in arguments:
        supplied["mdp"] = _truth(world)
    if "oracles" in known:
        named = options.pop("oracles", known["oracles"] if has_class(world) else usual_oracles(world))
        settings = {each: options.pop(each) for each in SETTINGS if each in options}
        pair = oracle_pair(world, named, settings, setting.folder)
        supplied |= dict(zip(("reward_oracle", "dynamics_oracle"), pair, strict=True))
    if "cover" in arguments:
        supplied["cover"] = _cover(world, **{name: options.pop(name, None) for name in COVER_OPTIONS})
    if "features" in arguments:
        supplied |= _features(world)
    if options.get("return_range") == "world":
        options["return_range"] = world.paid_returns
    if make is agents.OMG:
        options |= _exploration(options, options.get("seed", setting.seed))
    if make in (rivals.RMUCDD, rivals.UC3RL):
        kinds = [each["kind"] if isinstance(each, dict) else each for each in oracle_names(named)]
        options["scale"] = _bonus_scales(world, kinds, options.get("scale", arguments["scale"]))
    given = {name: value for name, value in supplied.items() if name in arguments}
    given |= {name: _power(name, value) if isinstance(value, dict) else value for name, value in options.items()}
    agent: Agent = make(**given | ({"episodes": None} if given.get("episodes") == UNKNOWN else {}))
    return agent


def _truth(world: Any) -> Callable[[Context], Any]:
    if isinstance(world, SampledWorld):
        raise ValueError("the agent plays the optimum, which nobody knows where there are no tables")
    return world.mdp  # type: ignore[no-any-return]


def _power(name: str, table: dict[str, Any]) -> agents.Power:
    if set(table) != {"scale", "exponent"}:
        raise ValueError(f"`{name}` must be a number or a table {{scale, exponent}}, got {table!r}")
    return agents.Power(**table)


def _exploration(options: dict[str, Any], seed: Any) -> dict[str, Any]:
    """Take the options of the exploration rule out of OMG's, and return the rule if there are any."""
    gamma = options.get("gamma", "adaptive")
    rule = TUNABLE_RULES.get(gamma) if isinstance(gamma, str) else None
    mine = arguments_of(rule) if rule else {}
    for name in [each for each in options if each in RULE_OPTIONS and each not in mine]:
        owners = " or ".join(repr(named) for named, each in TUNABLE_RULES.items() if name in arguments_of(each))
        raise ValueError(f"`{name}` must be left out unless gamma is {owners}, got gamma {gamma!r}")
    given = {name: options.pop(name) for name in RULE_OPTIONS if name in options}
    if rule is None or not given:
        return {}
    return {"gamma": rule(**given | ({"seed": seed} if "seed" in mine else {}))}


def _bonus_scales(world: Any, names: Sequence[str], scale: Any) -> tuple[Any, ...]:
    """Return the scales of both bonuses. What is known needs none: the truth, or a class of one function."""
    if isinstance(scale, list):
        return tuple(scale)
    classes = ("reward_functions", "transition_functions")
    return tuple(
        scale * (name != "known" and not (name in OF_CLASSES and len(getattr(world, member)(world.contexts[0])) == 1))
        for name, member in zip(names, classes, strict=True)
    )


def _features(world: Any) -> dict[str, Any]:
    """Return the features of contexts for generalised linear models: in the unit ball, or one for each label."""
    vectors = context_vectors(world.contexts)

    def features(context: Context) -> FloatArray:
        if isinstance(context, np.ndarray):
            return np.asarray(context / max(1.0, float(np.linalg.norm(context))))
        return np.asarray(vectors[world.contexts.index(context)])

    # By the proven strong convexity, which is far smaller, steps would never shorten.
    return {"strong_convexity": 1.0 / world.space.states, "dimension": vectors.shape[1], "features": features}


def _cover(world: Any, cover: Any, radius: Any, clusters: Any) -> rivals.Cover:
    name = COVER_OPTIONS["cover"] if cover is None else cover
    for option, value, owner in (("clusters", clusters, "clusters"), ("radius", radius, "per_ball")):
        if value is not None and name != owner:
            raise ValueError(f"`{option}` must be left out for cover = {name!r}")
    if name in ("per_ball", "clusters") and not isinstance(world.contexts[0], np.ndarray):
        raise ValueError(f"`cover` must be 'blind' or 'per_context' where contexts are labels, got {name!r}")
    if name == "blind":
        return rivals.Blind()
    if name == "per_context":
        return rivals.PerContext()
    if name == "per_ball":
        return rivals.PerBall(COVER_OPTIONS["radius"] if radius is None else radius)
    if name == "clusters":
        usual = max(2, len(world.contexts) // 4)
        return rivals.Clusters.by_means(world.contexts, count=usual if clusters is None else clusters)
    raise ValueError(f"`cover` must be one of blind, per_context, per_ball, clusters, got {name!r}")
