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

import numpy as np

from omg_cmdp.documents import FileError
from omg_cmdp.runs.advice import Advice
from omg_lab.audit.audit import Audit, AuditRow
from omg_lab.shown import Names
from omg_lab.studies.config import build_everything_once, unchecked_plan
from omg_lab.studies.directory import stored_plan
from omg_lab.studies.journal import LOGGED_TOTALS, SUMMED, kept, read_part
from omg_lab.studies.plan import TABLES, StudyPlan, Task
from omg_lab.studies.runner import BOUNDS, FAILED_FORM, FINISHED_FORM, FURTHER
from omg_lab.studies.store import StudyStore, check_form

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Policies(NamedTuple):
    """The decisions of an agent for some contexts, and the names of states, actions and features."""

    advice: list[Advice]
    names: Names


@dataclasses.dataclass(frozen=True, kw_only=True)
class Results:
    """A study: its configuration, a row for each finished run, and their logs."""

    directory: Path
    configuration: Mapping[str, Any]
    """The study file with every name, kind and option that was set."""
    provenance: Mapping[str, Any]
    """Versions, commit and date of its beginning."""
    runs: pandas.DataFrame
    """One row each: labels, episodes, sizes, the oracles' regret bounds, total regret and other totals, seconds."""
    failed: pandas.DataFrame
    """The runs that failed, with their errors."""
    parts: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    """A digest of each part of the log of every finished run."""

    policies: Mapping[str, Policies] = dataclasses.field(default_factory=dict)
    """The decisions of every finished run's agent at its end."""

    @functools.cached_property
    def log(self) -> pandas.DataFrame:
        """A row per logged episode of the finished runs, ordered by run and episode."""
        return self.log_of(*sorted(self.runs["run"]))

    def log_of(self, *runs: str, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """Return the log of some runs; only `columns`, if they are given."""
        import pandas
        from pyarrow import concat_tables

        wanted = None if columns is None else list(columns)
        tables = list(self.tables(*runs, columns=wanted))
        if not tables:
            return pandas.DataFrame(columns=wanted)
        return concat_tables(tables, promote_options="default").to_pandas()

    def tables(self, *runs: str, columns: list[str] | None = None) -> Iterator[pyarrow.Table]:
        """Yield the parts of the log of some runs, each checked to be the one that was written."""
        store, trajectories = StudyStore(self.directory), self.configuration["propensities"]
        for run in runs:
            for number, digest in enumerate(self.parts[run]):
                content = store.read_part(run, number, digest)
                with store.reading_part(run, number):
                    table = read_part(content, trajectories=trajectories, columns=columns)
                yield table

    def tasks(self, study: StudyPlan | None = None) -> list[Task]:
        """Return the finished runs as tasks, which can be played again.

        What they name outside the package comes from `study`, the plan of a file that the user has named.
        """
        finished, stored = set(self.runs["run"]), unchecked_plan(self.configuration)
        for table in TABLES:
            named = {part.name: part for part in (getattr(study, table) if study else ())}
            for part in getattr(stored, table):
                if (part.digest or any(part.named_outside(table))) and named.get(part.name) != part:
                    rule = "they have changed since it was run" if study else "name the study file with --study FILE"
                    raise FileError(f"{table}.{part.name} names sources or files outside this package: {rule}")
        plan = dataclasses.replace(stored, folder=study.folder if study else None)
        build_everything_once(plan)
        return [task for task in plan.tasks() if task.name in finished]


def load(directory: str | os.PathLike[str]) -> Results:
    """Return the results in `directory`. The log is read on first use.

    Raises `FileNotFoundError` where there is no study.
    """
    import pandas

    store = StudyStore(directory)
    study = store.study()
    if study is None:
        raise FileNotFoundError(f"there is no study in {os.fspath(directory)}; name the folder of an `omg-lab run`")
    plan = stored_plan(store, study)
    results = _checked(store, plan)
    ended = {status: [each for each in results if each["status"] == status] for status in ("finished", "failed")}
    finished = pandas.DataFrame(ended["finished"], columns=None if ended["finished"] else ["run", *_KEY, "regret"])
    # Columns in which every value may be missing.
    numbers = {name: "float64" for name in (*SUMMED, *BOUNDS, *FURTHER) if name in finished}
    return Results(
        directory=Path(directory),
        configuration=plan.configuration(),
        provenance={**_UNKNOWN, **{name: value for name, value in study.items() if name != "configuration"}},
        runs=finished.drop(columns=_ELSEWHERE, errors="ignore").astype(numbers),
        failed=pandas.DataFrame(ended["failed"], columns=["run", *_KEY, "error"]),
        parts={each["run"]: each["parts"] for each in ended["finished"]},
        policies={each["run"]: each["policies"] for each in ended["finished"]},
    )


def _checked(store: StudyStore, plan: StudyPlan) -> list[dict[str, Any]]:
    """Return the results of a study, each of a run of this plan, with all the parts of its log in place."""
    tasks = {task.name: task for task in plan.tasks()}
    worlds: dict[tuple[str, int], dict[str, Any]] = {}
    results, logged = list(store.results()), {path.name for path in store.log.glob("*.parquet")}
    for result in results:
        run = result["run"]
        with store.reading_result(run):
            check_form(run, result, FINISHED_FORM if result["status"] == "finished" else FAILED_FORM)
            if run not in tasks or result["settings"] != tasks[run].settings:
                raise ValueError("it is of a run with other settings than in study.json")
            if not {**tasks[run].labels, "episodes": tasks[run].episodes}.items() <= result.items():
                raise ValueError("it has the labels of another run")
            if result["status"] == "finished":
                result["policies"] = _policies(result)
                # Agents are compared seed by seed, which is fair in the same world only.
                first = worlds.setdefault((result["world"], result["seed"]), result)
                if first["world_digest"] != result["world_digest"]:
                    raise ValueError(f"it was played in another world than {first['run']}, by the same options")
            result["made_with"] = "; then ".join(map(_made_with, result["made_with"]))
        for number, digest in enumerate(result.get("parts", ())):
            if store.part(run, number).name not in logged:
                store.read_part(run, number, digest)  # says what to do
    return results


def _made_with(made: Mapping[str, Any]) -> str:
    libraries = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return f"omg-cmdp {made['version']}, commit {made['commit']}, {libraries}"


def _policies(result: Mapping[str, Any]) -> Policies:
    """Return the decisions of a result, each of the sizes that it has, so that reports need not ask again."""
    names = Names(**{kind: tuple(names) for kind, names in result["names"].items()})
    told = [Advice.of_record(record) for record in result["policies"]]
    for each in told:
        cells, actions = (len(each.steps), len(each.states)), range(result["actions"])
        tables = [each.best, each.runner_up, *(t for t in (each.visits, each.lead, each.sure) if t is not None)]
        if each.policy.shape != (*cells, len(actions)) or any(table.shape != cells for table in tables):
            raise ValueError("its policies must have one size")
        for numbers, most in ((each.best, actions), (each.runner_up, actions), (each.states, range(result["states"]))):
            if not all(number in most for number in numbers.flat):
                raise ValueError("its policies must name states and actions of the world")
    return Policies(told, names)


_ELSEWHERE = ["status", "error", "settings", "world_digest", "parts", "policies", "names"]
"""The fields of a result that are no columns of `Results.runs`."""
_UNKNOWN = dict.fromkeys(("version", "commit", "date"), "unknown")
_KEY = ("world", "adversary", "agent", "seed", "episodes")


class Audited(NamedTuple):
    """A run that was played again."""

    task: Task
    rows: list[AuditRow]
    as_logged: bool
    """Whether its regret was that of the log, bit for bit, and the totals of its result are those of the log."""

    def record(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        rows = [row.record() for row in self.rows]
        return {"run": self.task.name, "as_logged": self.as_logged, "rows": rows}

    @property
    def sound(self) -> bool:
        """Whether the run is as logged, and no statement fails that must hold.

        A statement that may fail with some probability may fail in a run, an assumption may be false of a world, and an
        oracle may have nothing to prove.
        """
        return self.as_logged and all(
            row.holds or row.kind in ("probable", "assumption") or (row.kind == "oracle" and not row.violations)
            for row in self.rows
        )


def audits(
    results: Results, *, episodes: int, choose: Callable[[str], bool], study: StudyPlan | None = None
) -> Iterator[Audited]:
    """Play the first `episodes` of the finished runs of chosen names again, and check the analysis on each of them.

    Runs in worlds whose truth is unknown are left out: there is nothing to check.
    """
    exact = set(results.runs.loc[results.runs["regret"].notna(), "run"])
    for task in filter(lambda task: choose(task.name) and task.name in exact, results.tasks(study)):
        audit = Audit()
        run = task.start(observe=audit)
        run.advance(min(episodes, task.episodes))
        regret = run.ledger.table()["regret"]
        totals = [f"cumulative_{name}" for name in LOGGED_TOTALS]
        log = results.log_of(task.name, columns=["episode", "regret", *totals])
        result = results.runs.set_index("run").loc[task.name, list(LOGGED_TOTALS)]
        summed = np.array_equal(log[totals].iloc[-1], result.astype(float), equal_nan=True)
        logged = log[log["episode"] <= len(regret)]["regret"]
        rows = [episode for episode in regret.index if kept(episode, task.episodes)]
        yield Audited(task, audit.rows(), summed and logged.to_list() == regret[rows].to_list())
