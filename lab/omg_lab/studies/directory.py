"""The directory of a study: made, or found and extended."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omg_cmdp.documents import FileError
from omg_cmdp.provenance import provenance
from omg_lab.studies.catalogue import DIGEST
from omg_lab.studies.config import unchecked_plan
from omg_lab.studies.plan import TABLES, StudyPlan
from omg_lab.studies.runner import now
from omg_lab.studies.store import StudyStore


def open_study(plan: StudyPlan, directory: str | os.PathLike[str]) -> StudyStore:
    """Return the directory of a study, made or found; one that holds other runs under the same names is refused.

    Worlds, adversaries, agents and seeds may be added to a study later.
    """
    if importlib.util.find_spec("fcntl") is None:
        raise FileError("studies run on Linux and macOS; on Windows use its Subsystem for Linux")
    store = StudyStore(directory)
    store.create()
    with store.owned("study"):  # of two processes that add to a study, neither may undo what the other adds
        found, configuration = store.study(), plan.configuration()
        if found is None:
            found = {**provenance(), "date": now()}
        else:
            configuration = _merged(stored_plan(store, found).configuration(), configuration, store.directory)
        store.write_study({**found, "configuration": configuration})
    return store


def stored_plan(store: StudyStore, study: Mapping[str, Any]) -> StudyPlan:
    """Return the plan of a study that is stored; nothing is built, and nothing that it names is imported."""
    try:
        return unchecked_plan(study["configuration"])
    except FileError as error:
        raise FileError(f"{store.directory / 'study.json'}: {error}; restore it, or run the study elsewhere") from None


def _merged(old: dict[str, Any], new: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Return both configurations as one."""
    for key in ("episodes", "seed", "propensities", "ceiling", "delay"):
        if old[key] != new[key]:
            raise FileError(f"{directory} holds a study with {key} = {old[key]}, not {new[key]}")
    for table in TABLES:
        for name in old[table].keys() & new[table].keys():
            ours, theirs = old[table][name], new[table][name]
            if ours != theirs:
                only_sources = {**ours, DIGEST: None} == {**theirs, DIGEST: None}
                what = "other sources or files" if only_sources else "other options"
                raise FileError(f"{directory} holds a study with {what} of {table}.{name}; choose another with --out")
    tables = {table: {**old[table], **new[table]} for table in TABLES}
    both = {**new, "seeds": sorted({*old["seeds"], *new["seeds"]}), **tables}
    try:
        unchecked_plan(both)
    except FileError as error:
        raise FileError(f"{directory} holds a study to which this one cannot be added: {error}") from None
    return both
