"""The oracles of a study by name, built for a world.

`oracles` is one name for both, or a table {rewards = "...", dynamics = "..."}:

    finite     the function class of the world, online (the default of most agents)
    offline    fits of that class to all past episodes
    log_loss   (rewards) that class, under log loss
    counts     a table for each context of the world, label or vector
    linear     (rewards) linear in features; as a name for both, the dynamics are softmax
    softmax    (dynamics) softmax in features
    basis      (dynamics) unknown kernels, mixed by features
    known      the truth: nothing to learn

Features are the world's `features`, else the context itself if it is a vector, else a unit vector for each label.
Counts, softmax and basis know the `support` of a world that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from omg_cmdp import oracles
from omg_cmdp.contexts import Context, context_numbers, context_vectors, label_index, table_label
from omg_cmdp.environments.world import World
from omg_cmdp.studies.options import arguments_of
from omg_cmdp.validation import FloatArray

REWARDS: dict[str, type] = {
    "finite": oracles.FiniteRewards,
    "offline": oracles.OfflineFiniteRewards,
    "log_loss": oracles.LogLossRewards,
    "counts": oracles.CountRewards,
    "linear": oracles.LinearRewards,
    "known": oracles.KnownRewards,
}
DYNAMICS: dict[str, type] = {
    "finite": oracles.FiniteDynamics,
    "offline": oracles.OfflineFiniteDynamics,
    "counts": oracles.CountDynamics,
    "softmax": oracles.SoftmaxDynamics,
    "basis": oracles.BasisDynamics,
    "known": oracles.KnownDynamics,
}
PARTS = {"rewards": REWARDS, "dynamics": DYNAMICS}
PAIRS = {
    "finite": ("finite", "finite"),
    "offline": ("offline", "offline"),
    "log_loss": ("log_loss", "finite"),
    "counts": ("counts", "counts"),
    "linear": ("linear", "softmax"),
}
"""One name for both oracles."""

OF_CLASSES = ("finite", "offline", "log_loss")
"""Those that know the function class of the world."""

SETTINGS = {name: arguments_of(oracles.FiniteDynamics)[name] for name in ("rate", "smoothing")}
"""What a study file may set of the oracles, with the defaults of the usual ones."""


def oracle_pair(world: World, named: Any, settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return a reward oracle and a dynamics oracle; each gets those `settings` that it has."""
    names = oracle_names(named)
    makes = [REWARDS[names[0]], DYNAMICS[names[1]]]
    if world.product_class and names[0] in ("finite", "offline"):  # there is no offline fit of a product class
        makes[0] = oracles.ProductRewards
    for setting, value in settings.items():
        if not any(setting in arguments_of(make) for make in makes):
            raise ValueError(f"`{setting}` must be left out for oracles = {named!r}, got {value!r}")
    rewards, dynamics = (_made(world, make, settings) for make in makes)
    return rewards, dynamics


def oracle_names(named: Any) -> tuple[str, str]:
    """Return the names of both oracles.

    >>> oracle_names("counts"), oracle_names({"rewards": "known", "dynamics": "counts"})
    (('counts', 'counts'), ('known', 'counts'))
    """
    if isinstance(named, str) and named in PAIRS:
        return PAIRS[named]
    if not isinstance(named, Mapping) or set(named) != set(PARTS):
        rule = f"one of {', '.join(PAIRS)}, or a table {{rewards, dynamics}}"
        raise ValueError(f"`oracles` must be {rule}, got {named!r}")
    for part, makes in PARTS.items():
        if named[part] not in makes:
            raise ValueError(f"`oracles`: {part} must be one of {', '.join(makes)}, got {named[part]!r}")
    return named["rewards"], named["dynamics"]


def _made(world: World, make: type, settings: Mapping[str, Any]) -> Any:
    """Return an oracle for the world: each argument of its constructor is supplied by its name."""
    space, asked, rewards = world.space, arguments_of(make), issubclass(make, oracles.RewardOracle)
    support = getattr(world, "support", None)
    given: dict[str, Any] = {
        **{"states": space.states, "actions": space.actions, "horizon": space.horizon, "contexts": world.contexts},
        "predictions": world.reward_functions if rewards else world.transition_functions,
        "function": lambda context: world.mdp(context).rewards if rewards else world.mdp(context).transitions,
        "support": support,
        "base": None if support is None else support / support.sum(axis=-1, keepdims=True),
        **settings,
    }
    if make is oracles.ProductRewards:
        given["functions"] = len(world.reward_functions(world.contexts[0]))
    if make is oracles.BasisDynamics:
        features, vectors = world_mixture(world)
        given |= {"features": features, "bases": vectors.shape[1]}
    elif "features" in asked:
        features, vectors = world_features(world)
        norm = float(np.linalg.norm(vectors, axis=1).max())
        given |= {"features": features, "dimension": vectors.shape[1], "feature_norm": norm or 1.0}
    return make(**{name: value for name, value in given.items() if name in asked})


Vectors = tuple[Callable[[Context], FloatArray], FloatArray]
"""A map from contexts to vectors, and the vectors (C, d) of the world's contexts."""


def world_features(world: World) -> Vectors:
    """Return the features of contexts: the world's own, the context as a vector, or a unit vector for each label."""
    own = getattr(world, "features", None)
    if own is not None:
        return own, np.array([own(context) for context in world.contexts], dtype=np.float64)
    vectors = context_vectors(world.contexts)
    if context_numbers(world.contexts[0]) is not None:
        return _numbers, vectors
    return _listed(world, vectors), vectors


def world_mixture(world: World) -> Vectors:
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


def _numbers(context: Context) -> FloatArray:
    found = context_numbers(context)
    assert found is not None  # as the first of them, all are vectors
    return found


def _listed(world: World, vectors: FloatArray) -> Callable[[Context], FloatArray]:
    """Return the map from the contexts of a world to these vectors."""
    labels = [table_label(context) for context in world.contexts]
    place = {label: labels.index(label) for label in label_index(labels)}
    return lambda context: np.asarray(vectors[place[table_label(context)]])
