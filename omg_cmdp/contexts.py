"""What arrives before an episode: a vector, or a label."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

Context = Any
"""A vector of numbers, or a hashable label."""


def context_key(context: Context) -> Hashable | None:
    """Return what tells contexts apart: a vector's bytes, or a label; None for objects that may change in place.

    >>> context_key("a") == context_key("a"), context_key(1) == context_key(True)
    (True, False)
    """
    if isinstance(context, np.ndarray):
        return None if context.dtype.hasobject else (context.shape, context.dtype.str, context.tobytes())
    if isinstance(context, (str, int, float, np.generic)):
        return type(context), context
    if isinstance(context, (tuple, list)):
        keys = tuple(context_key(entry) for entry in context)
        return None if None in keys else (type(context), keys)
    return None
