"""Recipes as arrays of numbers and text, for files: one text of JSON, and beside it every array that is not small."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.persistence import State
from omg_cmdp.recipes.recipe import Missing, Recipe
from omg_cmdp.validation import UNEXPECTED, frozen

PREFIX = "made with/"
"""The names of a recipe's arrays in a file begin with it; those of a state do not."""
DEEPEST = 60
"""How deep a recipe in a file may be nested."""
INLINE = 64
"""Arrays with at most this many numbers are written into the text."""


def pack_recipe(recipe: Recipe | Missing) -> dict[str, NDArray[Any]]:
    """Return a recipe as arrays.

    >>> again = unpack_recipe(pack_recipe(Recipe("omg_cmdp", "Power", {"scale": 1.0, "exponent": 0.5})))
    >>> again.name, again.arguments
    ('Power', {'scale': 1.0, 'exponent': 0.5})
    """
    packer = _Packer()
    text = json.dumps(packer.pack(recipe), allow_nan=False)
    arrays = {f"{PREFIX}{number}": array for number, array in enumerate(packer.arrays)}
    return {f"{PREFIX}recipe": np.array(text), **arrays}


def unpack_recipe(arrays: State) -> Any:
    """Undo `pack_recipe`; raise ValueError for anything else."""
    try:
        content = json.loads(str(arrays[f"{PREFIX}recipe"]), parse_constant=_refuse)
        found = _unpack(content, arrays, DEEPEST)
    except (*UNEXPECTED, ValueError) as error:
        raise ValueError(f"no recipe: {error!r:.80}") from None
    if not isinstance(found, (Recipe, Missing)):
        raise ValueError(f"no recipe: {found!r:.80}")
    return found


def without_recipe(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file that are not a recipe's: the state."""
    return {name: array for name, array in arrays.items() if not name.startswith(PREFIX)}


class _Packer:
    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._identities: dict[int, int] = {}

    def pack(self, part: Any) -> Any:
        """Return a part of a recipe as JSON's values; arrays are put aside."""
        if isinstance(part, Recipe):
            arguments = {name: self.pack(each) for name, each in part.arguments.items()}
            return {"make": [part.package, part.name], "with": arguments}
        if isinstance(part, Missing):
            return {"missing": part.kind, "same": self._identities.setdefault(part.identity, len(self._identities))}
        if isinstance(part, np.ndarray):
            return self._packed_array(part)
        if isinstance(part, (list, tuple)):
            return {type(part).__name__: [self.pack(each) for each in part]}
        if isinstance(part, dict):
            return {"dict": [[self.pack(key), self.pack(each)] for key, each in part.items()]}
        return {"float": str(part)} if isinstance(part, float) and not math.isfinite(part) else part

    def _packed_array(self, array: NDArray[Any]) -> Any:
        plain = array.dtype.kind in "biu" or (array.dtype == np.float64 and np.isfinite(array).all())
        if plain and array.size <= INLINE:
            return {"dtype": array.dtype.str, "shape": list(array.shape), "numbers": array.reshape(-1).tolist()}
        self.arrays.append(array)
        return {"array": len(self.arrays) - 1}


def _unpack(value: Any, arrays: State, depth: int) -> Any:
    """Return the part of a recipe that JSON's `value` stands for; raise one of several errors for anything else."""
    if not isinstance(value, (dict, list)):
        return value
    if not depth or isinstance(value, list):
        raise ValueError("nested too deep" if not depth else "a list outside of its place")

    def inner(each: Any) -> Any:
        return _unpack(each, arrays, depth - 1)

    match value:
        case {"make": [str(package), str(name)], "with": dict(arguments)}:
            return Recipe(package, name, {key: inner(each) for key, each in arguments.items()})
        case {"missing": str(kind), "same": int(identity)}:
            return Missing(kind, identity)
        case {"dtype": str(dtype), "shape": list(shape), "numbers": list(entries)} if len(entries) <= INLINE:
            if np.dtype(dtype).kind not in "biuf":
                raise ValueError(f"numbers of dtype {dtype}")
            return frozen(np.array(entries, dtype=dtype).reshape(shape))
        case {"array": int(number)}:
            return frozen(arrays[f"{PREFIX}{number}"])
        case {"list": list(entries)}:
            return [inner(each) for each in entries]
        case {"tuple": list(entries)}:
            return tuple(inner(each) for each in entries)
        case {"dict": list(entries)}:
            return {inner(key): inner(each) for key, each in entries}
        case {"float": "nan" | "inf" | "-inf" as text}:
            return float(text)
    raise ValueError(f"unknown keys {list(value)!r:.60}")


def _refuse(text: str) -> None:
    raise ValueError(f"the number {text}")
