"""States as plain arrays, in memory and in files.

A file is written whole or not at all, and read without running anything. `state()` and `load_state(mapping)` are arrays
in memory, `save(path)` and `restore(path)` a file: all that can be saved has the first pair, agents and runs have both.
A state that does not fit is refused before anything changes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
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
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

State = Mapping[str, NDArray[Any]]
"""Arrays of numbers and text by name."""

AGENT_FILE: dict[str, Any] = {"kind": "saved agent", "version": 3}
"""The head of an agent's file."""


class Stateful(Protocol):
    """An object with a state."""

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
    """Give each of `parts` its state back if the body of the `with` statement fails."""
    before = [part.state() for part in parts]
    try:
        yield
    except BaseException:
        for part, state in zip(parts, before, strict=True):
            part.load_state(state)
        raise


def read_state(state: State, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of `state`, or those of these `names`; of a file, read before any of them is used."""
    if not isinstance(state, Mapping):
        raise ValueError(f"`state` must be a mapping of names to arrays, got {type(state).__name__}")
    try:
        return {name: np.array(state[name]) for name in (state if names is None else names) if name in state}
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


_PLAIN = (str, bool, int, float, np.bool_, np.integer, np.floating, type(None))

UNTOLD = "?"
"""The end of a fingerprint of something that cannot be told from another of its kind, such as a function."""


def fingerprint(*parts: object) -> str:
    """Return a short text that tells values apart, for settings.

    Types count, and dtypes and shapes of arrays; a dictionary has no order, and numpy's scalars are Python's. What has
    a `fingerprint` of its own, a text, is known by it, and a dataclass by its fields. Of anything else, such as a
    function, only its name and that of its type count, and the text ends with "?".

    >>> fingerprint({"a": [1, None]}), fingerprint(1) == fingerprint(np.int64(1)), fingerprint(1) == fingerprint(1.0)
    ('ee6a982547a2add8', True, False)
    >>> fingerprint(len)[-1]
    '?'
    """
    digest, told = _content(parts)
    return digest.hex()[:16] + ("" if told else UNTOLD)


EPISODES = (*range(1, 101), *(2**power for power in range(7, 31)))
"""Where functions of the episode are compared: the first hundred, and the powers of two."""


def by_values(function: Callable[[int], Any]) -> str:
    """Return a fingerprint of a function of the episode, by its values in `EPISODES`.

    >>> by_values(lambda t: 2 * t) == by_values(lambda t: t + t), by_values(lambda t: t) == by_values(lambda t: t + 1)
    (True, False)
    """
    values: list[float | str] = []
    for episode in EPISODES:
        try:
            values.append(float(function(episode)))
        except Exception as error:  # whatever a caller's function raises beyond its domain
            values.append(type(error).__name__)
    return fingerprint(values)


def setting(value: object) -> str:
    """Return `value` as a text for settings: itself, if it is plain or says what it is; otherwise its fingerprint.

    >>> setting(0.1), setting((0, 1)), setting(np.zeros(2)), setting(len)[-1]
    ('0.1', '(0, 1)', '5b73965e73e2451b', '?')
    """
    data = dataclasses.is_dataclass(value) and not isinstance(value, type)
    fields = tuple(getattr(value, each.name) for each in dataclasses.fields(value)) if data else value  # type: ignore
    if _is_plain(fields):
        return str(value)
    # Of an array the text is shortened, and of a function it is an address.
    shortened = data or isinstance(value, (np.ndarray, list, tuple, dict, set, frozenset))
    own = type(value).__str__ is not object.__str__ or not (type(value).__repr__ is object.__repr__ or callable(value))
    return str(value) if own and not shortened else fingerprint(value)


def _is_plain(value: object) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else isinstance(value, _PLAIN)


def write_state(path: str | os.PathLike[str], state: State, *, kind: str, version: int) -> None:
    """Write a state to a file, and warn of settings that the file cannot tell from others."""
    write_arrays(path, state, kind=kind, version=version)
    settings = [str(array) for name, array in state.items() if name.rpartition("/")[2] == "settings"]
    untold = [piece for text in settings for piece in text.split(", ") if re.search(r"[0-9a-f]{16}\?", piece)]
    if untold:
        rule = "cannot be told from others of their kind when the file is restored: see that they are the same"
        warnings.warn(f"{os.fspath(path)}: {', '.join(untold)} {rule}", stacklevel=3)


def _content(value: Any) -> tuple[bytes, bool]:
    """Return a digest of `value`, and whether it tells the value from all others."""
    kind, content, parts = type(value).__name__, b"", list[Any]()
    told, own = True, getattr(value, "fingerprint", None)
    if isinstance(value, np.generic) and not isinstance(value.item(), np.generic):
        return _content(value.item())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        kind, content = f"array {value.dtype.str} {value.shape}", value.tobytes()
    elif isinstance(value, (list, tuple, np.ndarray)):
        parts = [_content(each) for each in value]
    elif isinstance(value, (Mapping, set, frozenset)):
        entries = value.items() if isinstance(value, Mapping) else value
        parts = sorted(_content(each) for each in entries)
    elif value is None or isinstance(value, (str, bytes, bool, int, float)):
        content = repr(value).encode()
    elif isinstance(own, str) and not isinstance(value, type):
        content, told = own.encode(), not own.endswith(UNTOLD)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [_content((each.name, getattr(value, each.name))) for each in dataclasses.fields(value)]
    else:
        content, told = str(getattr(value, "__name__", "")).encode(), False
    whole = hashlib.sha256(kind.encode())
    # Digests of digests: no content can run into the next.
    for part in (hashlib.sha256(content).digest(), *(digest for digest, _ in parts)):
        whole.update(part)
    return whole.digest(), told and all(known for _, known in parts)


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Yield the name of a file to write, which takes the place of `target` when all of it is on disk.

    Links are followed, and the mode and owner of a file that is replaced are kept. A device, a pipe or a folder is
    refused. The name is `.{target.name}.tmp-...`, beside `target`; a crash may leave it there.
    """
    target = Path(os.path.realpath(target))
    temporary = target.with_name(f".{target.name}.tmp-{secrets.token_hex(8)}")
    old = target.stat() if target.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise FileExistsError(errno.EEXIST, "not a regular file, and nothing else is replaced", str(target))
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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


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
