"""Contexts as rows of numbers, for regressions on a log: what the user's features say, or what the contexts are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context, alike, context_numbers
from omg_cmdp.oracles.feature_map import FeatureMap
from omg_cmdp.validation import FloatArray, float_table, function

Features = Callable[[Any], ArrayLike]
"""context -> (d,), numbers of the size of 1 without a constant."""

MOST_LABELS = 20
"""The number of labels that have a column of their own, the most frequent ones."""

FARTHEST = 3.0
"""The number of standard deviations beyond which a number is cut."""


def context_rows(contexts: Sequence[Context], features: Features | None) -> FloatArray:
    """Return numbers of the size of 1 without a constant for each context, (n, d).

    By default: the entries of vectors, standardised; of records what a `FeatureMap` makes of them, gaps and categories
    included; of labels an entry for each of the most frequent.

    >>> context_rows(["a", "b", "a"], None)
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    """
    if features is not None:
        function("features", features)
        return _feature_rows(features, contexts)
    if all(isinstance(context, Mapping) and context for context in contexts):
        rows = _feature_rows(FeatureMap.fit(list(contexts)), contexts)
        return np.asarray(rows[:, 1:] / rows[:, :1])
    vectors = [None if np.isscalar(context) else context_numbers(context) for context in contexts]
    if all(vector is not None and vector.shape == vectors[0].shape for vector in vectors):  # type: ignore[union-attr]
        table = np.array(vectors, dtype=np.float64)
        spread = table.std(axis=0)
        scaled = (table - table.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        return np.asarray(np.clip(scaled, -FARTHEST, FARTHEST))
    groups = sorted(alike(contexts), key=len, reverse=True)
    known = groups[:MOST_LABELS] if len(groups) > 1 else []
    rows = np.zeros((len(contexts), len(known)))
    for place, members in enumerate(known):
        rows[members, place] = 1.0
    return rows


def _feature_rows(features: Features, contexts: Sequence[Context]) -> FloatArray:
    """Return the features of each context, (n, d)."""
    rows = [float_table("features", features(context)) for context in contexts]
    for row in rows:
        if row.ndim != 1 or row.shape != rows[0].shape or not np.isfinite(row).all():
            raise ValueError(f"`features` must return vectors of one length with finite numbers, got {row!r:.80}")
    return np.array(rows)
