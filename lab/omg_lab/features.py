"""Features of the contexts of any world, for oracles and agents that are linear in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from omg_cmdp import oracles
from omg_cmdp.contexts import Context, context_numbers, context_vectors, table_label
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.validation import FloatArray, instance_of

Vectors = tuple[Callable[[Context], FloatArray], FloatArray]
"""A map from contexts to vectors, and the vectors (C, d) of the world's contexts."""


def world_features(world: Any) -> Vectors:
    """Return the features of contexts: the world's own, a vector itself, those of records, or a unit vector each."""
    if world.features is not None:
        own = world.features
        return own, np.array([own(context) for context in world.contexts], dtype=np.float64)
    if isinstance(world.contexts[0], Mapping):
        fitted = oracles.FeatureMap.fit(list(world.contexts))
        return fitted, np.array([fitted(context) for context in world.contexts])
    vectors = context_vectors(world.contexts)
    if context_numbers(world.contexts[0]) is not None:
        return _numbers, vectors
    return _listed(world, vectors), vectors


def unit_features(world: Environment) -> tuple[Callable[[Context], FloatArray], int]:
    """Return features of a world's contexts in the unit ball, and their length d."""
    instance_of("world", world, Environment)
    features, vectors = world_features(world)
    return lambda context: features(context) / max(1.0, float(np.linalg.norm(features(context)))), vectors.shape[1]


def _numbers(context: Context) -> FloatArray:
    found = context_numbers(context)
    assert found is not None  # as the first of them, all are vectors
    return found


def _listed(world: Any, vectors: FloatArray) -> Callable[[Context], FloatArray]:
    """Return the map from the contexts of a world to these vectors."""
    labels = [table_label(context) for context in world.contexts]
    place = {label: labels.index(label) for label in labels}
    return lambda context: np.asarray(vectors[place[table_label(context)]])
