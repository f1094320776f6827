"""Data files of other packages, found without importing them."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path


def packaged_file(package: str, name: str, *, extra: str) -> Path:
    """Return the path of the file `name` of an installed `package`; `extra` is our extra that installs it."""
    try:
        files = importlib.metadata.files(package) or []
        return Path(str(next(file for file in files if file.name == name).locate()))
    except (importlib.metadata.PackageNotFoundError, StopIteration):
        # Our extra says which versions have the file; some are published without.
        advice = f"in a clone, pip install './lab[{extra}]'"
        raise ImportError(f"{name} of the package {package} is needed but not installed: {advice}") from None
