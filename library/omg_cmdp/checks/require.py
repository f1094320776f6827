"""What the checks of oracles and agents share: rules, and values that break them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from omg_cmdp.validation import FloatArray


def require(holds: bool, rule: str) -> None:
    """Raise AssertionError with the `rule`, unless it holds."""
    if not holds:
        raise AssertionError(rule)


def require_equal(before: Sequence[FloatArray], after: Sequence[FloatArray], rule: str) -> None:
    """Raise unless all arrays are the same to the bit."""
    require(all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True)), rule)


def require_refusal(what: str, method: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Raise unless `method` raises a ValueError."""
    try:
        method(*arguments)
    except ValueError:
        return
    raise AssertionError(f"{what} must be refused with a ValueError")


def with_last(values: Any, last: float) -> Any:
    """Return a copy of `values` with another last entry."""
    changed = np.array(values)
    changed[-1] = last
    return changed
