"""Data files that other packages ship, found without importing these packages."""

from __future__ import annotations

from pathlib import Path


def packaged_file(package: str, name: str, *, extra: str) -> Path:
    """Return where an installed `package` has its file `name`; `extra` is what of ours installs it."""
    import importlib.metadata

    try:
        files = importlib.metadata.files(package) or []
        return Path(str(next(file for file in files if file.name == name).locate()))
    except (importlib.metadata.PackageNotFoundError, StopIteration):
        advice = f"pip install 'omg-cmdp[{extra}]'"
        raise ImportError(f"{name} of the package {package} is needed, and not installed: {advice}") from None
