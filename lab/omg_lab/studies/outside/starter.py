"""`omg-lab new`: a study to start from, with a world in a file of its own."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from omg_cmdp.documents import FileError
from omg_cmdp.persistence import whole_file

ENDING = ".txt"
"""The ending that files have in the package, so that nothing takes them for its own modules and tests."""


def write_starter(directory: Path) -> list[Path]:
    """Write the files into a new or empty folder, and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise FileError(f"{directory} must be a new or empty folder, got one with files in it")
    files = sorted(resources.files(__package__).joinpath("starter_files").iterdir(), key=lambda file: file.name)
    paths = []
    for file in files:
        paths.append(directory / file.name.removesuffix(ENDING))
        with whole_file(paths[-1]) as temporary:
            temporary.write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    return paths
