"""The oracles of a study by name, built for a world.

`oracles` is one name for both, or a table {rewards = "...", dynamics = "..."}:

    finite     the function class of the world, online (the default of most agents, where the world has one)
    offline    fits of that class to all past episodes
    least_squares   (dynamics) the same, by least squares; as a name for both, the rewards are "offline"
    log_loss   (rewards) that class, under log loss
    counts     a table for each context of the world, label or vector
    linear     (rewards) linear in features; as a name for both, the dynamics are softmax
    softmax    (dynamics) softmax in features
    basis      (dynamics) unknown transitions, mixed by features
    known      the truth: nothing to learn

In the table each of the two may be a table itself, {kind = "linear", ridge = 2.0}, with arguments of the constructor.
There each class of `omg_cmdp.oracles` is a kind (`omg-lab list`), and `module:Class` is one of yours. An argument may
be "module:function", or a table {kind = "module:Class", ...}, an object that is made; `oracle` and `oracles`,
of oracles made of oracles, are such kinds again.

Features are the world's `features`, else the context itself if it is a vector, else those that a `FeatureMap` finds if
contexts are records, else a unit vector for each label; a constant is added unless they add up to one. Counts, softmax
and basis know the `support` of a world that has one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from omg_cmdp import oracles
from omg_cmdp.agents.building import arguments_of
from omg_cmdp.contexts import Context, context_numbers
from omg_cmdp.environments import ContextualMDP
from omg_cmdp.oracles.adapters.models import DynamicsOptions, Options
from omg_cmdp.validation import FloatArray
from omg_lab.features import Vectors, world_features
from omg_lab.rivals.cells import true_rewards, true_transitions
from omg_lab.studies.options import check_options
from omg_lab.studies.outside.folder import Folder, is_outside

OTHER_NAMES = {"Count": "counts", "Epoch": "epochs", "OfflineFinite": "offline", "OfflineLeastSquares": "least_squares"}
"""Kinds that are not called like their classes."""


def _kinds(part: str) -> dict[str, type]:
    """Return the classes `…Rewards` or `…Dynamics` by their kinds."""
    stems = {name.removesuffix(part): vars(oracles)[name] for name in oracles.__all__ if name.endswith(part)}
    return {OTHER_NAMES.get(stem, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", stem).lower()): stems[stem] for stem in stems}


ORACLES = {"rewards": _kinds("Rewards"), "dynamics": _kinds("Dynamics")}
PAIRS = {
    "finite": ("finite", "finite"),
    "offline": ("offline", "offline"),
    "least_squares": ("offline", "least_squares"),
    "log_loss": ("log_loss", "finite"),
    "counts": ("counts", "counts"),
    "linear": ("linear", "softmax"),
}
"""One name for both oracles."""

SUPPLIED = frozenset(
    {"states", "actions", "horizon", "contexts", "space", "admissible", "support", "predictions", "functions"}
    | {"function", "features", "feature_norm", "intercept", "bases", "dimension"}
)
"""The arguments that the world supplies where the file does not: see `_supplied`."""
FROM_WORLD = "(from the world)"


def has_class(world: Any) -> bool:
    """Return whether the world has a class of functions."""
    return world.reward_functions is not None and world.transition_functions is not None


def usual_oracles(world: Any) -> str:
    """Return the usual oracles where there is no class: linear for vectors and records, else counts."""
    first = world.contexts[0]
    return "linear" if isinstance(first, Mapping) or np.ndim(first) else "counts"


def oracle_pair(world: Any, named: Any, folder: Folder | None = None) -> tuple[Any, Any]:
    """Return a reward oracle and a dynamics oracle; what the file names outside the package is found in `folder`."""
    specs = zip(ORACLES, oracle_names(named), strict=True)
    rewards, dynamics = (_built(world, part, spec, folder) for part, spec in specs)
    return rewards, dynamics


def oracle_names(named: Any) -> tuple[Any, Any]:
    """Return the names of both oracles, or their tables.

    >>> oracle_names("counts"), oracle_names({"rewards": "known", "dynamics": "counts"})
    (('counts', 'counts'), ('known', 'counts'))
    """
    if isinstance(named, str) and named in PAIRS:
        return PAIRS[named]
    if parts := [part for part in ORACLES if isinstance(named, str) and named in ORACLES[part]]:
        table = ", ".join(f"{part} = " + (f'"{named}"' if part in parts else "…") for part in ORACLES)
        rule = f"is for {parts[0]} only" if len(parts) == 1 else "is no name for both at once"
        raise ValueError(f"`oracles`: {named!r} {rule}: {{ {table} }}")
    if not isinstance(named, Mapping) or set(named) != set(ORACLES):
        rule = f"one of {', '.join(PAIRS)}, or a table {{rewards, dynamics}}"
        raise ValueError(f"`oracles` must be {rule}, got {named!r}")
    return named["rewards"], named["dynamics"]


def oracle_arguments(part: str, name: str) -> dict[str, Any]:
    """Return the arguments of an oracle of `part`, with their defaults, or `FROM_WORLD`."""
    arguments = _arguments(part, _class(part, name, None))
    return {each: FROM_WORLD if each in SUPPLIED else usual for each, usual in arguments.items()}


def _class(part: str, name: Any, folder: Folder | None) -> Any:
    """Return the class of an oracle."""
    known: dict[str, Any] = ORACLES[part]
    if not isinstance(name, str) or (name not in known and not (folder and is_outside(name))):
        rule = f"one of {', '.join(known)}, module:Class, or a table with such a `kind`"
        raise ValueError(f"`oracles`: {part} must be {rule}, got {name!r:.80}")
    return known[name] if name in known else _found(folder, name)


def _arguments(part: str, make: Any) -> dict[str, Any]:
    """Return the arguments of the constructor, with their defaults."""
    own = arguments_of(make)
    if "forecasters" in own:  # an adapter's frame, which makes them itself
        del own["forecasters"]
        own |= dict.fromkeys((Options if part == "rewards" else DynamicsOptions).__annotations__)
    return own


def _built(world: Any, part: str, spec: Any, folder: Folder | None) -> Any:
    """Return the oracle of a name, or of a table with its `kind` and arguments; others are supplied by their names."""
    given = dict(spec) if isinstance(spec, Mapping) else {"kind": spec}
    name = given.pop("kind", None)
    make = _class(part, name, folder)
    if world.product_class and part == "rewards" and name in ("finite", "offline"):
        make = oracles.ProductRewards  # there is no offline fit of a product class
    asked = _arguments(part, make)
    supplied = _supplied(world, part, asked, given)
    check_options(name, given, asked, supplied=supplied)
    supplied |= {key: _argument(world, part, key, value, folder) for key, value in given.items()}
    made = make(**{key: supplied[key] for key in asked if key in supplied})
    base = oracles.RewardOracle if part == "rewards" else oracles.DynamicsOracle
    if not isinstance(made, base):
        raise ValueError(f"`oracles`: {part} must be a {base.__name__}, got {type(made).__name__}")
    return made


def _argument(world: Any, part: str, key: str, value: Any, folder: Folder | None) -> Any:
    """Return what the file gives as an argument: an oracle of an oracle made of others, an object, or a plain value."""
    if key == "oracle":
        return _built(world, part, value, folder)
    if key == "oracles" and isinstance(value, list):
        return [_built(world, part, each, folder) for each in value]
    if isinstance(value, Mapping) and "kind" in value:
        return _found(folder, value["kind"])(**{name: each for name, each in value.items() if name != "kind"})
    return _found(folder, value) if folder and is_outside(value) else value


def _found(folder: Folder | None, name: Any) -> Any:
    if folder is None or not is_outside(name):
        raise ValueError(f"`oracles`: a `kind` must be module:Class, named by a study file, got {name!r:.60}")
    return folder.find(name)


def _supplied(world: Any, part: str, asked: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the world knows of the arguments of an oracle."""
    space, rewards, support = world.space, part == "rewards", world.support
    functions = world.reward_functions if rewards else world.transition_functions
    given: dict[str, Any] = {
        **{"states": space.states, "actions": space.actions, "horizon": space.horizon, "contexts": world.contexts},
        **{"space": space, "admissible": space.admissible, "support": support},
    }
    if "predictions" in asked and "predictions" not in own:
        if functions is None:
            raise ValueError('`oracles`: this world has no class of functions; use oracles = "counts" or "linear"')
        given |= {"predictions": functions}
        if "functions" in asked:
            given["functions"] = len(functions(world.contexts[0]))
    if "function" in asked:
        if not isinstance(world, ContextualMDP):
            raise ValueError("`oracles`: nothing is 'known' of a world without tables; use another kind")
        given["function"] = functools.partial(true_rewards if rewards else true_transitions, world)
    if "features" in asked and "features" not in own:
        features, vectors = world_mixture(world) if "bases" in asked else world_features(world)
        norm = float(np.linalg.norm(vectors, axis=1).max())
        sizes = dict.fromkeys(("bases", "dimension"), vectors.shape[1])
        # Unit vectors and mixture weights add up to one, as a constant would: labels share nothing.
        constant = bool(np.abs(vectors.sum(axis=1) - 1.0).max() <= 1e-8)
        given |= {"features": features, "feature_norm": norm or 1.0, "intercept": not constant, **sizes}
    return given


def world_mixture(world: Any) -> Vectors:
    """Return the features as weights of a mixture. A number c is ((c - low), (high - c))/(high - low).

    low and high are the least and the largest of the world's contexts: what is affine in c is a mixture of what is at
    both ends.
    """
    features, vectors = world_features(world)
    if vectors.min() >= 0.0 and np.abs(vectors.sum(axis=1) - 1.0).max() <= 1e-8:
        return features, vectors
    numbers = [context_numbers(context) for context in world.contexts]
    if any(each is None or len(each) != 1 for each in numbers):
        raise ValueError("`oracles`: dynamics must not be 'basis' unless features are mixture weights, or one number")
    ends = [edge(float(each[0]) for each in numbers if each is not None) for edge in (min, max)]
    low, wide = ends[0], (ends[1] - ends[0]) or 1.0

    def mixture(context: Context) -> FloatArray:
        share = min(max((float(np.asarray(context).item()) - low) / wide, 0.0), 1.0)
        return np.array([share, 1.0 - share])

    return mixture, np.array([mixture(context) for context in world.contexts])
