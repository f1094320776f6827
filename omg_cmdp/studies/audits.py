"""Finished runs played again: are they equal to their logs, and does the analysis hold on them?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from omg_cmdp.studies.journal import kept
from omg_cmdp.studies.plan import Task
from omg_cmdp.studies.results import Results
from omg_cmdp.theory.audit import Audit, Row


class Audited(NamedTuple):
    """A run that was played again."""

    task: Task
    rows: list[Row]
    as_logged: bool
    """Whether its regret was that of the log, bit for bit."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with it. A statement that may fail with some probability may fail in a run."""
        return self.as_logged and all(row.holds or row.failure > 0.0 for row in self.rows)


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
