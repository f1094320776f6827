"""Checks at the public boundary: errors name the argument, the rule, the value and the first bad index."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

ROW_SUM_TOLERANCE = 1e-8
LARGEST_FLOAT = np.finfo(np.float64).max
LARGEST_INTEGER = 2**53
"""The largest size of a table and number of episodes: beyond it, floats skip some integers."""
UNEXPECTED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError)
"""What decoding raises, beside ValueError, on a content that nothing here has written."""


def instance_of(name: str, value: object, *kinds: type) -> None:
    """Raise unless `value` is one of these kinds."""
    if not isinstance(value, kinds):
        names = " or ".join(f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}" for kind in kinds)
        raise ValueError(f"`{name}` must be {names}, got {type(value).__name__}")


def function(name: str, value: object) -> None:
    """Raise unless `value` can be called."""
    if not callable(value):
        raise ValueError(f"`{name}` must be a function, got {type(value).__name__}")


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Raise unless `value` is one of these words."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"`{name}` must be one of {', '.join(known)}, got {value!r:.60}")


def listed(name: str, value: Any) -> list[Any]:
    """Return the entries of `value` as a list."""
    try:
        return list(value)
    except TypeError:
        raise ValueError(f"`{name}` must be a list, got {type(value).__name__}") from None


def file_path(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return `path` as a Path."""
    try:
        found = Path(path)
    except TypeError:
        raise ValueError(f"`{name}` must be the name of a file, got {type(path).__name__}") from None
    if not found.name:
        raise ValueError(f"`{name}` must be the name of a file, got {os.fspath(path)!r}")
    return found


def integer(name: str, value: Any, least: int, most: float = LARGEST_INTEGER) -> int:
    """Return `value` as an int in least..most; by default at most 2⁵³, beyond which floats skip some."""
    try:
        # True is no number of states, though Python counts with it.
        number = least - 1 if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        bounded = number >= least or most < LARGEST_INTEGER
        rule = f"in {least}..{most if most < LARGEST_INTEGER else '2**53'}" if bounded else f"of at least {least}"
        raise ValueError(f"`{name}` must be an integer {rule}, got {value!r:.60}")
    return number


def positive_integer(name: str, value: Any, most: float = LARGEST_INTEGER) -> int:
    """Return `value` as an int of at least 1."""
    return integer(name, value, 1, most)


def whole_number(name: str, value: Any) -> int:
    """Return `value` as an int of at least 0."""
    return integer(name, value, 0)


def positive_number(name: str, value: Any) -> float:
    """Return `value` as a float in (0, ∞)."""
    return _number(name, value, "be a positive, finite number", lambda found: 0.0 < found < math.inf)


def at_least_zero(name: str, value: Any) -> float:
    """Return `value` as a float in [0, ∞]."""
    return _number(name, value, "be a number of at least 0", lambda found: found >= 0.0)


def number(name: str, value: Any) -> float:
    """Return `value` as a float in [-∞, ∞]."""
    return _number(name, value, "be a number", lambda found: not math.isnan(found))


def probability(name: str, value: Any) -> float:
    """Return `value` as a float in (0, 1)."""
    return _number(name, value, "lie in (0, 1)", lambda found: 0.0 < found < 1.0)


def _number(name: str, value: Any, rule: str, fits: Callable[[float], bool]) -> float:
    found = real_number(value)
    if not fits(found):
        raise ValueError(f"`{name}` must {rule}, got {value!r:.60}")
    return found


def real_number(value: Any) -> float:
    """Return `value` as a float; nan for what is no number."""
    if type(value) is float:
        return value
    if isinstance(value, (str, bytes)):
        return math.nan
    try:
        return float(value) if np.ndim(value) == 0 else math.nan
    except Exception:  # whatever a foreign object raises
        return math.nan


def interval(name: str, value: Any) -> tuple[float, float]:
    """Return `value` as (low, high), finite, with a finite distance."""
    try:
        low, high = (real_number(bound) for bound in value)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (low < high and math.isfinite(low) and math.isfinite(high) and high / 2 - low / 2 < 1e307):
        raise ValueError(f"`{name}` must be an interval (low, high) of finite numbers, got {value!r:.60}")
    return low, high


def unit_scaled(values: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return `values` scaled from the interval `bounds` to [0, 1], nan where they are nan; a fresh array."""
    low, high = bounds
    return np.clip((values - low) / (high - low), 0.0, 1.0)  # rounding may leave [0, 1] by an ulp


def return_interval(given: Any, horizon: int, reward_range: tuple[float, float]) -> tuple[float, float] | None:
    """Return the part of `given` that H rewards can add up to; None if that says no more than `reward_range`."""
    if given is None:
        return None
    least, most = interval("return_range", given)
    low, high = (horizon * bound for bound in reward_range)
    if least > high or most < low:
        rule = f"have a part in [{low:g}, {high:g}], {horizon} times the range of rewards"
        raise ValueError(f"`return_range` must {rule}, got {given!r}")
    return (max(least, low), min(most, high)) if least > low or most < high else None


def seed_number(seed: int) -> int:
    """Return `seed` as an int of at least 0."""
    return integer("seed", seed, 0, math.inf)


def float_table(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as a fresh C-ordered float64 array."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value.copy()
    return typed_array(name, value, "biuf", "an array of real numbers").astype(np.float64, copy=False)


def typed_array(name: str, value: ArrayLike, kinds: str, rule: str) -> NDArray[Any]:
    """Return `value` as a fresh C-ordered array; `kinds` are those of numpy's dtypes that `rule` says in words."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):  # numpy would take what is below the mask
        raise ValueError(f"`{name}` has masked entries; fill them in, or leave them out")
    try:
        array = np.array(value, order="C")
    except Exception:  # whatever a foreign object raises
        raise ValueError(f"`{name}` must be {rule}, got {type(value).__name__}") from None
    if array.dtype.kind not in kinds:
        got = f"dtype {array.dtype}" if array.dtype.kind in "biuf" else type(value).__name__
        raise ValueError(f"`{name}` must be {rule}, got {got}")
    return array


def integer_vector(name: str, value: ArrayLike) -> NDArray[np.int64]:
    """Return `value` as a fresh vector of 64-bit integers."""
    array = typed_array(name, value, "iu", "a vector of integers")
    if array.ndim != 1 or (array.dtype == np.uint64 and (array >> 63).any()):
        raise ValueError(f"`{name}` must be a vector of integers, got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64, copy=False)


def indices(name: str, values: NDArray[np.int64], count: int) -> None:
    """Raise unless all `values` lie in 0..count-1."""
    outside = values[(values < 0) | (values >= count)]
    if len(outside):
        raise ValueError(f"`{name}` must lie in 0..{count - 1}, got {outside[0]}")


def one_of_shapes(name: str, array: NDArray[Any], *shapes: tuple[int, ...]) -> None:
    """Raise unless `array` has one of `shapes`."""
    if array.shape not in shapes:
        wanted = " or ".join(str(shape) for shape in shapes)
        raise ValueError(f"`{name}` must have shape {wanted}, got {array.shape}")


def in_range(name: str, array: FloatArray, low: float, high: float) -> None:
    """Raise unless every entry lies in [low, high]; NaN and, for infinite bounds, ±inf are refused too."""
    # min and max propagate NaN, so one comparison each is enough if all is well.
    if not array.size or (array.min() >= low and array.max() <= min(high, LARGEST_FLOAT)):
        return
    bad = np.asarray(~((array >= low) & (array <= high) & np.isfinite(array)))
    if bad.any():
        where = first_index(bad)
        finite = "be finite" if low == -np.inf else f"be finite and at least {low:g}"
        rule = f"lie in [{low:g}, {high:g}]" if high < np.inf else finite
        raise ValueError(f"`{name}` must {rule}, got {float(array[where])} at index {where}")


def distributions(name: str, array: FloatArray) -> None:
    """Raise unless the last axis of `array` holds probability distributions (sum 1 within 1e-8)."""
    # min and max propagate NaN; large entries are cut off before they can overflow the sum.
    largest = array.max()
    if not (array.min() >= 0.0 and largest < np.inf):
        where = first_index(np.asarray(~((array >= 0.0) & np.isfinite(array))))
        raise ValueError(f"`{name}` must be finite and non-negative, got {float(array[where])} at index {where}")
    sums = (array if largest <= 2.0 else np.minimum(array, 2.0)).sum(axis=-1)
    if not (sums.min() >= 1.0 - ROW_SUM_TOLERANCE and sums.max() <= 1.0 + ROW_SUM_TOLERANCE):
        where = first_index(np.asarray(np.abs(sums - 1.0) > ROW_SUM_TOLERANCE))
        place = f"row {where}" if where else "the whole array"
        total = float(np.minimum(array[where], 1e300).sum())
        raise ValueError(f"`{name}` must sum to 1 (within {ROW_SUM_TOLERANCE:g}), got {total} at {place}")


def start_distribution(start: ArrayLike, states: int) -> FloatArray:
    """Return the distribution (S,) given by `start`, a state's index or a distribution."""
    if not isinstance(start, np.ndarray) or start.ndim == 0:  # an array is a distribution
        if isinstance(start, (int, np.integer)) and not isinstance(start, bool):
            return np.asarray(np.eye(1, states, integer("start", start, 0, states - 1))[0])
        if start is None or np.isscalar(start):
            raise ValueError(f"`start` must be a state or a distribution over states, got {start!r}")
    table = float_table("start", start)
    one_of_shapes("start", table, (states,))
    distributions("start", table)
    return table


def admissible_mask(admissible: ArrayLike | None, states: int, actions: int) -> BoolArray:
    """Return the boolean mask (S, A); None admits every action."""
    if admissible is None:
        return np.ones((states, actions), dtype=np.bool_)
    mask = typed_array("admissible", admissible, "b", "a boolean mask")
    one_of_shapes("admissible", mask, (states, actions))
    allowed = np.asarray(mask.any(axis=1))
    if not allowed.all():
        state = first_index(np.asarray(~allowed))[0]
        raise ValueError(f"`admissible` must leave an action in every state, got none in state {state}")
    return mask


def policy_table(policy: ArrayLike, shape: tuple[int, int, int], admissible: BoolArray) -> FloatArray:
    """Return `policy` as a float array (H, S, A) of distributions over admissible actions."""
    table = float_table("policy", policy)
    one_of_shapes("policy", table, shape)
    distributions("policy", table)
    outside = (table > 0.0) > admissible
    if outside.any():
        where = first_index(outside)
        raise ValueError(f"`policy` must be zero on inadmissible actions, got {float(table[where])} at index {where}")
    return table


def first_index(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first True of `bad` in C order."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return `array` marked read-only."""
    array.setflags(write=False)
    return array
