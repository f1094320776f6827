"""An experiment in its directory: begun, or gone on with; and its runs played again for an audit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from omg_cmdp.studies.config import checked_plan
from omg_cmdp.studies.document import ConfigurationError
from omg_cmdp.studies.journal import kept
from omg_cmdp.studies.plan import TABLES, Plan, Task
from omg_cmdp.studies.results import Results
from omg_cmdp.studies.runner import labels, now
from omg_cmdp.studies.store import Store
from omg_cmdp.theory.audit import Audit, Row

LIBRARIES = ("numpy", "scipy", "numba", "pandas", "pyarrow")


def open_study(plan: Plan, directory: str | os.PathLike[str]) -> Store:
    """Return the directory of an experiment, made or found; one that holds other runs under the same names is refused.

    Worlds, adversaries, agents and seeds may be added to an experiment later.
    """
    store = Store(directory)
    found = store.experiment()
    configuration = plan.configuration()
    if found is not None:
        configuration = _joined(found["configuration"], configuration, store.directory)
    store.create()
    store.write_experiment({"configuration": configuration, **(_provenance() if found is None else _kept(found))})
    return store


def _joined(old: dict[str, Any], new: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Return both configurations as one."""
    for key in ("episodes", "seed", "propensities", "vary"):
        if old[key] != new[key]:
            raise ConfigurationError(f"{directory} holds an experiment with {key} = {old[key]}, not {new[key]}")
    for table in TABLES:
        for name in old[table].keys() & new[table].keys():
            if old[table][name] != new[table][name]:
                raise ConfigurationError(f"{directory} holds an experiment with other options of {table}.{name}")
    tables = {table: {**old[table], **new[table]} for table in TABLES}
    return {**new, "seeds": sorted({*old["seeds"], *new["seeds"]}), **tables}


def _kept(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name != "configuration"}


def _provenance() -> dict[str, Any]:
    versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in LIBRARIES}}
    return {"version": metadata.version("omg-cmdp"), "commit": _commit(), "date": now(), "versions": versions}


def _commit() -> str:
    """Return the commit of the source, "changed" behind it if it was; "unknown" where there is no repository."""
    try:
        folder = Path(__file__).parent
        git = ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--dirty= (changed)", "--exclude=*"]
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


class Audited(NamedTuple):
    """A run that was played again."""

    task: Task
    rows: list[Row]
    as_logged: bool
    """Whether it had, to the bit, the regret that stands in the log."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with it. A statement with a probability of failure may fail in a run."""
        return self.as_logged and all(row.holds or row.failure > 0.0 for row in self.rows)


def audits(results: Results, *, episodes: int, choose: Callable[[str], bool]) -> Iterator[Audited]:
    """Play the first `episodes` of the finished runs of chosen names again, and check the analysis on each of them."""
    finished = set(results.runs["run"])
    for task in checked_plan(results.configuration).tasks():
        if task.name in finished and choose(task.name):
            audit = Audit()
            run = task.start(observe=audit)
            run.advance(min(episodes, task.episodes))
            regret = run.ledger.table()["regret"]
            log = results.log
            for name, value in labels(task).items():
                log = log[log[name] == value]
            logged = log[log["episode"] <= len(regret)].set_index("episode")["regret"]
            shown = [episode for episode in regret.index if kept(episode, task.episodes)]
            yield Audited(task, audit.rows(), bool(logged.to_list() == regret[shown].to_list()))
