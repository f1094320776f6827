"""The directory of a study: made, or found and extended."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from omg_cmdp.studies.document import StudyError
from omg_cmdp.studies.plan import TABLES, Plan
from omg_cmdp.studies.runner import now
from omg_cmdp.studies.store import Store

LIBRARIES = ("numpy", "scipy", "numba", "pandas", "pyarrow")


def open_study(plan: Plan, directory: str | os.PathLike[str]) -> Store:
    """Return the directory of a study, made or found; one that holds other runs under the same names is refused.

    Worlds, adversaries, agents and seeds may be added to a study later.
    """
    if importlib.util.find_spec("fcntl") is None:
        raise StudyError("studies need the file locks of Linux or macOS; on Windows use its Subsystem for Linux")
    store = Store(directory)
    found = store.study()
    configuration = plan.configuration()
    if found is None:
        found = _provenance()
    else:
        configuration = _merged(found["configuration"], configuration, store.directory)
    store.create()
    store.write_study({**found, "configuration": configuration})
    return store


def _merged(old: dict[str, Any], new: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Return both configurations as one."""
    for key in ("episodes", "seed", "propensities", "vary"):
        if old[key] != new[key]:
            raise StudyError(f"{directory} holds a study with {key} = {old[key]}, not {new[key]}")
    for table in TABLES:
        for name in old[table].keys() & new[table].keys():
            if old[table][name] != new[table][name]:
                raise StudyError(f"{directory} holds a study with other options of {table}.{name}")
    tables = {table: {**old[table], **new[table]} for table in TABLES}
    return {**new, "seeds": sorted({*old["seeds"], *new["seeds"]}), **tables}


def _provenance() -> dict[str, Any]:
    """Return the version, commit, date and libraries by which a study was begun."""
    versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in LIBRARIES}}
    return {"version": metadata.version("omg-cmdp"), "commit": _commit(), "date": now(), "versions": versions}


def _commit() -> str:
    """Return the commit of the source, "(changed)" behind it if it was; "unknown" where there is no repository."""
    try:
        folder = Path(__file__).parent
        git = ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--dirty= (changed)", "--exclude=*"]
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
