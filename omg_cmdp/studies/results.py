"""The results of a study, read from its directory; and its finished runs played again.

Are they equal to their logs, and does the analysis hold on them?
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from omg_cmdp.studies.config import checked_plan
from omg_cmdp.studies.journal import SUMMED, kept
from omg_cmdp.studies.plan import Task
from omg_cmdp.studies.runner import BOUNDS
from omg_cmdp.studies.store import Store
from omg_cmdp.theory.audit import Audit, Row

if TYPE_CHECKING:
    import pandas


@dataclasses.dataclass(frozen=True, kw_only=True)
class Results:
    """A study: its configuration, a row for each finished run, and their logs."""

    directory: Path
    configuration: Mapping[str, Any]
    """With every name, kind and option that was set."""
    provenance: Mapping[str, Any]
    """Versions, commit and date."""
    runs: pandas.DataFrame
    """One row each: labels, episodes, sizes, the oracles' regret bounds, total regret and other totals, seconds."""
    failed: pandas.DataFrame
    """The runs that failed, with their errors."""

    @functools.cached_property
    def log(self) -> pandas.DataFrame:
        """A row per logged episode of the finished runs, ordered by run and episode."""
        return self.log_of(*sorted(self.runs["run"]))

    def log_of(self, *runs: str, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """Return the log of some runs; only `columns`, if they are given."""
        import pandas
        from pyarrow import concat_tables, parquet

        store, wanted = Store(self.directory), None if columns is None else list(columns)
        parts = [part for run in runs for part in store.parts(run)]
        if not parts:
            return pandas.DataFrame(columns=wanted)
        tables = [parquet.read_table(part, columns=wanted, partitioning=None) for part in parts]
        return concat_tables(tables, promote_options="default").to_pandas()

    def tasks(self) -> list[Task]:
        """Return the finished runs as tasks, which can be played again."""
        finished = set(self.runs["run"])
        return [task for task in checked_plan(self.configuration).tasks() if task.name in finished]


def load(directory: str | os.PathLike[str]) -> Results:
    """Return the results in `directory`. The log is read on first use.

    Raises `FileNotFoundError` where there is no study.
    """
    import pandas

    store = Store(directory)
    study = store.study()
    if study is None:
        raise FileNotFoundError(f"`directory` must hold a study, got {os.fspath(directory)}")
    results = list(store.results())
    ended = {status: [each for each in results if each["status"] == status] for status in ("finished", "failed")}
    finished = pandas.DataFrame(ended["finished"], columns=None if ended["finished"] else ["run", *_KEY])
    return Results(
        directory=Path(directory),
        configuration=study["configuration"],
        provenance={name: value for name, value in study.items() if name != "configuration"},
        runs=finished.drop(columns=["status", "error"], errors="ignore").astype(_numbers(finished)),
        failed=pandas.DataFrame(ended["failed"], columns=["run", *_KEY, "error"]),
    )


_KEY = ("world", "adversary", "agent", "seed", "episodes")


def _numbers(runs: pandas.DataFrame) -> dict[str, str]:
    """Return the types of columns in which every value may be missing."""
    return {name: "float64" for name in (*SUMMED, *BOUNDS) if name in runs}


class Audited(NamedTuple):
    """A run that was played again."""

    task: Task
    rows: list[Row]
    as_logged: bool
    """Whether its regret was that of the log, bit for bit."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with it.

        A statement that may fail with some probability may fail in a run, an assumption may be false of a world, and an
        oracle may have nothing to prove.
        """
        return self.as_logged and all(
            row.holds or row.kind in ("probable", "assumption") or (row.kind == "oracle" and not row.violations)
            for row in self.rows
        )


def audits(results: Results, *, episodes: int, choose: Callable[[str], bool]) -> Iterator[Audited]:
    """Play the first `episodes` of the finished runs of chosen names again, and check the analysis on each of them."""
    for task in filter(lambda task: choose(task.name), results.tasks()):
        audit = Audit()
        run = task.start(observe=audit)
        run.advance(min(episodes, task.episodes))
        regret = run.ledger.table()["regret"]
        log = results.log_of(task.name, columns=["episode", "regret"])
        logged = log[log["episode"] <= len(regret)]["regret"]
        rows = [episode for episode in regret.index if kept(episode, task.episodes)]
        yield Audited(task, audit.rows(), bool(logged.to_list() == regret[rows].to_list()))
