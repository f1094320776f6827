"""Data files of other packages, found without importing them."""

from __future__ import annotations

from pathlib import Path


def packaged_file(package: str, name: str, *, extra: str) -> Path:
    """Return the path of the file `name` of an installed `package`; `extra` is our extra that installs it."""
    import importlib.metadata

    try:
        files = importlib.metadata.files(package) or []
        return Path(str(next(file for file in files if file.name == name).locate()))
    except (importlib.metadata.PackageNotFoundError, StopIteration):
        advice = f"pip install {package}"
        raise ImportError(f"{name} of the package {package} is needed but not installed: {advice}") from None
