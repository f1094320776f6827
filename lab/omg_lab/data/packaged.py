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
        advice = f"pip install '{_requirement(package, extra)}'"
        raise ImportError(f"{name} of the package {package} is needed but not installed: {advice}") from None


def _requirement(package: str, extra: str) -> str:
    """Return what our extra asks for: some versions of a package are published without the file."""
    try:
        listed = importlib.metadata.requires("omg-lab") or []
    except importlib.metadata.PackageNotFoundError:  # run from a clone
        listed = []
    own = (each.partition(";")[0].strip() for each in listed if extra in each.partition("extra ==")[2])
    return next(own, package)
