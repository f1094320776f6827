"""States as plain arrays, in memory and in files.

A file is written whole or not at all, and read without running anything. `state()` and `load_state(mapping)` are arrays
in memory, `save(path)` and `restore(path)` a file: all that can be saved has the first pair, agents and runs have both.
A state that does not fit is refused before anything changes.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import functools
import hashlib
import io
import math
import os
import re
import secrets
import stat
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

State = Mapping[str, NDArray[Any]]
"""Arrays of numbers and text by name."""

AGENT_FILE: dict[str, Any] = {"kind": "saved agent", "version": 4}
"""The head of an agent's file."""


class Stateful(Protocol):
    """An object with a state."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, as arrays of numbers and text."""

    def load_state(self, state: State) -> None:
        """Continue from a state saved with the same settings, bit for bit; refuse any other, and change nothing."""


class Learned:
    """Something whose state is float arrays, its attributes named in `learned`, and the states of its `parts`."""

    learned: ClassVar[tuple[str, ...]] = ()
    """The attributes that are learned, float arrays."""

    def parts(self) -> Mapping[str, Stateful]:
        """Return the parts that have a state of their own."""
        return {}

    def shape_of(self, name: str) -> tuple[int | None, ...]:
        """Return the shape that an array must have to be loaded; None: any length."""
        return tuple(getattr(self, name).shape)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned."""
        return {**{name: bounded(getattr(self, name)) for name in self.learned}, **joint_state(self.parts())}

    def load_state(self, state: State) -> None:
        """Load what was learned, or raise and change nothing."""
        found = {name: numbers(name, state, self.shape_of(name)) for name in self.learned}
        load_parts(state, self.parts())
        for name, array in found.items():
            setattr(self, name, array)
        self.refresh()

    def refresh(self) -> None:
        """Compute what follows from all that was learned, and is not saved."""


def joint_state(parts: Mapping[str, Stateful]) -> dict[str, NDArray[Any]]:
    """Return the states of all parts in one: "reward/loss", "dynamics/loss", ..."""
    return {f"{name}/{key}": array for name, part in parts.items() for key, array in part.state().items()}


def part_of(state: State, name: str) -> dict[str, NDArray[Any]]:
    """Return the state of one part of a joint state."""
    prefix = f"{name}/"
    return {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}


def load_parts(state: State, parts: Mapping[str, Stateful]) -> None:
    """Load all parts of a joint state, or none."""
    with undone_on_failure(*parts.values()):
        for name, part in parts.items():
            part.load_state(part_of(state, name))


@contextlib.contextmanager
def undone_on_failure(*learners: Stateful) -> Iterator[None]:
    """Give each of `learners` back what it had learned if the body of the `with` statement fails."""
    ways_back = [_way_back(learner) for learner in learners]
    try:
        yield
    except BaseException as error:
        for learner, undo in zip(learners, ways_back, strict=True):
            if undo is None:
                error.add_note(f"{type(learner).__name__} may have learned this episode, and cannot be saved or copied")
            else:
                undo()
        raise


def _way_back(learner: Stateful) -> Callable[[], object] | None:
    """Return a function that undoes what `learner` learns from now on; None if there is no way."""
    try:
        return functools.partial(learner.load_state, learner.state())
    except NotImplementedError:
        # One of the user's own, which need not be able to save, nor to be copied.
        with contextlib.suppress(Exception):
            return functools.partial(vars(learner).update, copy.deepcopy(vars(learner)))
    return None


def read_state(state: State, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of `state`, or those of these `names`; of a file, read before any of them is used."""
    if not isinstance(state, Mapping):
        raise ValueError(f"`state` must be a mapping of names to arrays, got {type(state).__name__}")
    try:
        return {name: np.array(state[name]) for name in (state if names is None else names) if name in state}
    except (EOFError, OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"`state` must be readable, got {error}") from error


MOST = 1e300
"""Stands for infinity in a state, whose numbers are finite."""


def bounded(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy of the array for a state; `numbers` undoes it.

    >>> bounded(np.array([0.5, -np.inf]))
    array([ 5.e-001, -1.e+300])
    """
    return np.asarray(np.clip(array, -MOST, MOST))


def numbers(name: str, state: State, shape: tuple[int | None, ...], *, whole: bool = False) -> NDArray[np.float64]:
    """Return the array `name` of a `state` that was read: finite numbers of `shape` (None: any length)."""
    if name not in state:
        raise ValueError(f"`state` must hold {name!r}, got {sorted(state)}")
    array = np.array(state[name])
    if array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError(f"`state` must hold finite numbers under {name!r}, got dtype {array.dtype}")
    if len(shape) != array.ndim or any(want not in (None, got) for want, got in zip(shape, array.shape, strict=True)):
        raise ValueError(f"`state` must hold {name!r} of shape {shape}, got {array.shape}")
    if whole and (array != np.floor(np.clip(array, 0.0, 2.0**53))).any():  # beyond it, floats skip some integers
        raise ValueError(f"`state` must hold whole numbers, 0 or more, under {name!r}, got {array}")
    array[np.abs(array) >= MOST] *= np.inf
    return array


def check_settings(state: State, settings: str) -> None:
    """Raise unless `state` was saved with the same settings."""
    found = str(state["settings"]) if "settings" in state else None
    if found != settings:
        raise ValueError(f"`state` must come from {settings!r}, got {found!r}")


def write_state(path: str | os.PathLike[str], state: State, *, kind: str, version: int) -> None:
    """Write a state to a file, and warn of settings that cannot be compared when it is restored."""
    write_arrays(path, state, kind=kind, version=version)
    settings = [str(array) for name, array in state.items() if name.rpartition("/")[2] == "settings"]
    untold = [piece for text in settings for piece in text.split(", ") if re.search(r"[0-9a-f]{16}\?", piece)]
    if untold:
        rule = "cannot be checked when the file is restored: make sure that they are the same"
        warnings.warn(f"{os.fspath(path)}: {', '.join(untold)} {rule}", stacklevel=3)


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Yield the name of a file to write, which takes the place of `target` when all of it is on disk, and stays there.

    Links are followed, and the mode and owner of a file that is replaced are kept. A device, a pipe or a folder is
    refused. The name is `.{target.name}.tmp-...`, beside `target`; a crash may leave it there.
    """
    target = Path(os.path.realpath(target))
    temporary = target.with_name(f".{target.name}.tmp-{secrets.token_hex(8)}")
    old = target.stat() if target.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise FileExistsError(errno.EEXIST, "not a regular file; only regular files are replaced", str(target))
    try:
        if old is not None:  # private while it is written, as the old one may be
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        if old is not None:
            with contextlib.suppress(PermissionError):  # only root may give files away
                os.chown(temporary, old.st_uid, old.st_gid)
            temporary.chmod(stat.S_IMODE(old.st_mode))
        # On disk before it takes the name: a crash in between leaves the old file.
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Let the names in a folder survive a power cut: without this a file may be lost that a later one counts on."""
    if hasattr(os, "O_DIRECTORY"):  # elsewhere a folder cannot be opened
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def pack_arrays(arrays: Mapping[str, ArrayLike]) -> bytes:
    """Return `arrays` of numbers and text as the content of an npz file.

    They are not compressed, so that reading never takes much more memory than the content has bytes.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), version=(1, 0), allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return content.getvalue()


def unpack_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Undo `pack_arrays`; raise `ValueError` for anything else.

    >>> unpack_arrays(pack_arrays({"a": [1, 2]}))
    {'a': array([1, 2])}
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            listed = file.infolist()
            stored = all(each.compress_type == zipfile.ZIP_STORED for each in listed)
            # Compressed members could expand to more than the machine has.
            if not stored or sum(each.file_size for each in listed) > len(content):
                raise ValueError("members must be stored as they are")
            return {each.filename.removesuffix(".npy"): _array(file.read(each)) for each in listed}
    except _DAMAGE as error:
        raise ValueError(f"`content` must be an npz file that was packed here, got {content[:20]!r}") from error


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, ArrayLike], *, kind: str, version: int) -> None:
    """Write `arrays` of numbers and text to `path` (npz), replacing what is there only when all is on disk."""
    # Behind a slash no name can be that of the head.
    named = {f"/{name}": np.asarray(array) for name, array in arrays.items()}
    content = pack_arrays({_HEAD: f"{kind} {version} {_digest(named)}", **named})
    with whole_file(Path(path)) as temporary:
        temporary.write_bytes(content)


def read_arrays(path: str | os.PathLike[str], *, kind: str, version: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file that was written with the same `kind` and `version`; refuse any other."""
    refusal = f"`path` must be a {kind} of format {version}, got {os.fspath(path)}"
    content = Path(path).read_bytes()
    try:
        arrays = unpack_arrays(content)
        found = str(arrays.pop(_HEAD))
    except (KeyError, ValueError) as error:
        raise ValueError(refusal) from error
    if found != f"{kind} {version} {_digest(arrays)}":
        raise ValueError(refusal)
    return {name.removeprefix("/"): array for name, array in arrays.items()}


_HEAD = "format"
_DAMAGE = (
    *(AttributeError, EOFError, KeyError, OSError, OverflowError, SyntaxError, TypeError, ValueError),
    *(NotImplementedError, RuntimeError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
"""The errors of numpy and zipfile on a file that is damaged, or is something else."""


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    whole = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        # Digests of digests: no name can run into its content.
        for part in (name.encode(), f"{array.dtype.str} {array.shape}".encode(), array.tobytes()):
            whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()


def _array(member: bytes) -> NDArray[Any]:
    """Return the array of a member, whose size must be the one that its header declares."""
    file = io.BytesIO(member)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("the version of npy must be 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    # Objects would be pickled, and a false shape would read beyond the member.
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(member) - file.tell():
        raise ValueError("a member must hold as many numbers as it declares")
    flat = np.frombuffer(member, dtype, offset=file.tell()) if math.prod(shape) else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C").copy(order="K")
