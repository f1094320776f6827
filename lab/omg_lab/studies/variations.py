"""Rate studies: the worlds in several sizes T, S, A or H, one size at a time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from omg_lab.studies.catalogue import WORLDS, Part

SIZES = {"T": "episodes", "S": "states", "A": "actions", "H": "horizon"}
"""The option of a world that is such a size."""

EXPONENTS = {"T": 0.5, "S": 0.5, "A": 0.5, "H": 2.5}
"""The exponents of the theorem's bound, H^2.5 · √(T·S·A·R); R, the regret of the oracles, is held fixed."""

FACTORS = {"T": (0.125, 0.25, 0.5, 1.0)}
AROUND = (0.5, 1.0, 2.0, 4.0)
"""If no values are given, T is multiplied by `FACTORS`, and S, A and H by these; rounded up, and at least 2."""


class Variant(NamedTuple):
    """A world in another size."""

    world: Part
    base: str
    """The name of the world of the study file."""
    size: str
    value: int


def variants(worlds: Iterable[Part], vary: Mapping[str, Sequence[int]], episodes: int) -> list[Variant]:
    """Return every world in every size of `vary`, one size at a time; a plan has been checked to have these sizes."""
    return [
        Variant(_resized(world, size, value), world.name, size, value)
        for world in worlds
        for size, values in vary.items()
        for value in (values or _around(world, size, episodes))
    ]


def sized_worlds(worlds: Sequence[Part], vary: Mapping[str, Sequence[int]], episodes: int) -> tuple[Part, ...]:
    """Return the worlds in which runs are played: every variant, or `worlds` themselves if nothing is varied."""
    return tuple(variant.world for variant in variants(worlds, vary, episodes)) or tuple(worlds)


def sizes_of(world: Part) -> dict[str, Any]:
    """Return the options of a world that may be sizes; of one that is not of this package, those that the file sets."""
    return {"episodes": None, **(WORLDS[world.kind].options if world.kind in WORLDS else {}), **world.options}


def _resized(world: Part, size: str, value: int) -> Part:
    changed = {**world.options, SIZES[size]: value}
    return dataclasses.replace(world, name=f"{world.name}, {size} = {value}", options=changed)


def _around(world: Part, size: str, episodes: int) -> list[int]:
    own = sizes_of(world)[SIZES[size]] or episodes  # only the number of episodes may be left to the study
    if not isinstance(own, int):
        return [0]  # refused when the world is built
    return sorted({max(2, math.ceil(factor * own)) for factor in FACTORS.get(size, AROUND)})
