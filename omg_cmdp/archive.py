"""Plain arrays in a file: written whole or not at all, read without running anything."""

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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
