"""The memory that is free, and a refusal of what would take too much of it, before anything is allocated."""

from __future__ import annotations

import math
import os
from pathlib import Path

SHARE = 0.25
"""The part of the free memory that one oracle may take: agents have two, and a decision needs tables besides."""

SMALL = 2**24
"""Bytes up to which nothing is refused, and the free memory is not looked up."""


def check_memory(name: str, numbers: int, instead: str) -> None:
    """Raise if `numbers` of 8 bytes are more than a quarter of the memory that is free.

    Parameters
    ----------
    name : str
        The class that needs them.
    numbers : int
        How many numbers it keeps.
    instead : str
        What to do instead.

    >>> check_memory("CountDynamics", 10**15, "merge states")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: CountDynamics would need 8000000.0 GB, more than a quarter of the ... GB that are free; merge states
    """
    wanted = 8 * numbers
    if wanted <= SMALL or wanted <= SHARE * (free := free_memory()):
        return
    space = f"more than a quarter of the {free / 1e9:.1f} GB that are free"
    raise ValueError(f"{name} would need {wanted / 1e9:.1f} GB, {space}; {instead}")


def free_memory(root: Path = Path("/")) -> float:
    """Return the bytes that can be had: of the machine, or those that its control group leaves; inf if neither says.

    >>> free_memory() > 0
    True
    """
    return min(_of_machine(root), _of_group(root))


def _of_machine(root: Path) -> float:
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return 1024.0 * int(line.split()[1])
    try:  # not Linux
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def _of_group(root: Path) -> float:
    """Return the least that a control group of this process, or one above it, leaves of its limit (version 2)."""
    groups = root / "sys/fs/cgroup"
    inside = groups / _text(root / "proc/self/cgroup").rpartition("::")[2].strip("/")
    left = math.inf
    # A container often sees its own group as the root, under the path that it has outside.
    for place in (each for each in (inside, *inside.parents) if each == groups or groups in each.parents):
        most, used = _text(place / "memory.max"), _text(place / "memory.current")
        if most.isdigit() and used.isdigit():
            left = min(left, max(0.0, float(int(most) - int(used) + _cached(place))))
    return left


def _cached(place: Path) -> int:
    """Return the bytes of files in memory, which are given up when they are needed."""
    found = [line.split() for line in _text(place / "memory.stat").splitlines()]
    return sum(int(value) for name, value in found if name == "inactive_file")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
