"""What is learned, as plain arrays: in memory, and in a file.

    state() / load_state(mapping)    arrays in memory
    save(path) / restore(path)       a file

Everything that can be saved has the first pair; agents and runs have both. A state that does not fit is refused before
anything changes. A file is written whole or not at all, and read without running anything.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

State = Mapping[str, NDArray[Any]]
"""Arrays of numbers and text by name."""


AGENT_FILE: dict[str, Any] = {"kind": "saved agent", "version": 1}
"""What is written at the head of an agent's file."""


class Stateful(Protocol):
    """Whatever has a state."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, as arrays of numbers and text."""

    def load_state(self, state: State) -> None:
        """Continue from a state saved with the same settings, bit for bit; refuse any other, and change nothing."""


def joint_state(parts: Mapping[str, Stateful]) -> dict[str, NDArray[Any]]:
    """Return the states of all parts in one: "reward/loss", "dynamics/loss", ..."""
    return {f"{name}/{key}": array for name, part in parts.items() for key, array in part.state().items()}


def part_of(state: State, name: str) -> dict[str, NDArray[Any]]:
    """Return the state of one part of a joint state."""
    prefix = f"{name}/"
    return {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}


def load_parts(state: State, parts: Mapping[str, Stateful]) -> None:
    """Load all parts of a joint state, or none."""
    with all_or_nothing(*parts.values()):
        for name, part in parts.items():
            part.load_state(part_of(state, name))


@contextlib.contextmanager
def all_or_nothing(*parts: Stateful) -> Iterator[None]:
    """Give every one of `parts` its state back if what is done here fails."""
    before = [part.state() for part in parts]
    try:
        yield
    except BaseException:
        for part, state in zip(parts, before, strict=True):
            part.load_state(state)
        raise


def read_state(state: State) -> dict[str, NDArray[Any]]:
    """Return `state` with all arrays read, from a file perhaps, before any of them is used."""
    try:
        return {name: np.array(state[name]) for name in state}
    except (EOFError, OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"`state` must be readable, got {error}") from error


def numbers(name: str, state: State, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Return the array `name` of a `state` that was read: finite numbers of `shape` (None: any length)."""
    if name not in state:
        raise ValueError(f"`state` must hold {name!r}, got {sorted(state)}")
    array = state[name]
    if array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError(f"`state` must hold finite numbers under {name!r}, got dtype {array.dtype}")
    if len(shape) != array.ndim or any(want not in (None, got) for want, got in zip(shape, array.shape, strict=True)):
        raise ValueError(f"`state` must hold {name!r} of shape {shape}, got {array.shape}")
    return array


def check_settings(state: State, settings: str) -> None:
    """Raise unless `state` was saved with the same settings."""
    found = str(state["settings"]) if "settings" in state else None
    if found != settings:
        raise ValueError(f"`state` must come from {settings!r}, got {found!r}")


def fingerprint(array: ArrayLike) -> str:
    """Return a short text that tells tables apart, for settings."""
    return f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}"


@contextlib.contextmanager
def whole_file(target: Path, temporary: Path | None = None) -> Iterator[Path]:
    """Yield the name of a file to write, which takes the place of `target` when all of it is on disk.

    By default that is `{target.name}.tmp-...`, beside it: what a crash may leave there.
    """
    temporary = temporary or target.with_name(f"{target.name}.tmp-{secrets.token_hex(8)}")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, ArrayLike], *, kind: str, version: int) -> None:
    """Write `arrays` of numbers and text to `path` (npz), replacing what is there only when all is on disk."""
    # Behind a slash no name can be one of numpy's own arguments.
    named = {f"/{name}": np.asarray(array) for name, array in arrays.items()}
    with whole_file(Path(path)) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, format=np.array(f"{kind} {version}"), **named)


def read_arrays(path: str | os.PathLike[str], *, kind: str, version: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file that was written with the same `kind` and `version`; refuse any other."""
    refusal = f"`path` must be a {kind} of format {version}, got {os.fspath(path)}"
    content = Path(path).read_bytes()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = dict(file)
        if str(arrays.pop("format")) != f"{kind} {version}":
            raise ValueError(refusal)
    except _DAMAGE as error:
        raise ValueError(refusal) from error
    return {name.removeprefix("/"): array for name, array in arrays.items()}


_DAMAGE = (
    *(AttributeError, EOFError, KeyError, OSError, SyntaxError, TypeError, ValueError),
    *(NotImplementedError, RuntimeError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
"""What numpy and zipfile raise on a file that is damaged, or is something else."""
