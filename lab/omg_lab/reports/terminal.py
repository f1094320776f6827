"""The output of a study while it runs and at its end: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self, final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from omg_cmdp.documents import plain
from omg_cmdp.progress import Bar
from omg_lab.audit.audit import combine
from omg_lab.reports.scenarios import scenarios
from omg_lab.reports.sentences import exploring_pays
from omg_lab.reports.tables import agents_table
from omg_lab.studies.plan import TABLES, StudyPlan, Task
from omg_lab.studies.results import Audited, Results
from omg_lab.studies.runner import Event, Failed, Lost, Waiting
from omg_lab.studies.runner import Progress as RunProgress


def print_line(console: Console, text: str) -> None:
    """Print one line as it is; control characters are shown, not obeyed."""
    console.print(plain(text), markup=False, highlight=False, soft_wrap=True)


@final
class RunDisplay:
    """A line for each run that ends; on a terminal also a bar for all of them, with the time left."""

    def __init__(self, console: Console, tasks: Sequence[Task]) -> None:
        self._console = console
        self._episodes = {task.name: task.episodes for task in tasks}
        self._played, self._ended, self._waiting = dict.fromkeys(self._episodes, 0), 0, set[str]()
        self._bar = Bar("all runs", sum(self._episodes.values()), show=console.is_terminal)

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.__exit__(None, None, None)

    def __call__(self, event: Event) -> None:
        """Show one event."""
        run, note = event.run, ""
        if isinstance(event, RunProgress):
            self._played[run] = event.episode
            note = run if math.isnan(event.regret) else f"{run}: regret {event.regret:.1f}"
        elif isinstance(event, Lost):
            self._print(f"{run}: its worker died; a new one continues from the last checkpoint")
        elif isinstance(event, Waiting):
            if run not in self._waiting:
                self._waiting.add(run)
                waits = "another process is playing it; waiting for its result (Ctrl-C stops waiting)"
                self._print(f"{run}: {waits}")
        else:
            self._ended, self._played[run] = self._ended + 1, self._episodes[run]
            outcome = f" failed: {event.error}" if isinstance(event, Failed) else f": {_measured(event.result)}"
            self._print(f"{self._ended}/{len(self._episodes)} {run}{outcome}")
        self._bar.update(sum(self._played.values()), note)

    def _print(self, text: str) -> None:
        self._bar.clear()
        print_line(self._console, text)


def _measured(result: Mapping[str, Any]) -> str:
    """Return the total regret of a run, or what was earned where the truth is unknown, and how long it took."""
    regret = result["regret"]
    known = regret is not None and not math.isnan(regret)
    measured = f"regret {regret:.1f}" if known else f"return {result['return']:.1f}"
    return f"{measured}, {result['seconds']:.1f} s"


def print_scenarios(console: Console, results: Results) -> None:
    """Print the table of agents of each scenario, as in the report; few columns of the log are read for it."""
    own = ["seconds_deciding", "seconds_learning"]
    columns = ["world", "adversary", "agent", "seed", "episode", "return", *own]
    for scenario in scenarios(results, results.log_of(*results.runs["run"], columns=columns)):
        table = agents_table(scenario)
        print_table(console, list(table.columns), table.lines(), title=f"\n{scenario.title}: {table.caption}")
        for text in exploring_pays(scenario):
            print_line(console, text)


def audit_table(audited: Sequence[Audited]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of a table: each statement, over all runs."""
    heads = ["kind", "statement", "runs", "violated", "not proven", "vacuous", "allowed rate", "smallest slack"]
    names = ("kind", "name", "runs", "violated", "unproven", "vacuous")
    return heads, [
        [*(str(getattr(each, name)) for name in names), f"{each.allowed:g}", f"{each.smallest_slack:.2g}"]
        for each in combine([run.rows for run in audited])
    ]


def print_plan(console: Console, plan: StudyPlan, seconds: float, memory: float, workers: int) -> None:
    """Print what a plan would run, how long it would take, and how much memory."""
    print_line(console, f"{plan.name}: {plan.description}")
    for table in TABLES:
        parts = getattr(plan, table)
        rows = [[p.name, p.kind, ", ".join(f"{k} = {v}" for k, v in p.options.items())] for p in parts]
        print_table(console, [table, "kind", "options"], rows)
    needs = f"{datetime.timedelta(seconds=round(seconds))} and {memory / 2**30:.1f} GiB of memory"
    print_line(console, f"{size_of(plan)}; about {needs} on {workers} core(s)")


def size_of(plan: StudyPlan) -> str:
    """Return the number of runs and of episodes, in words."""
    lengths = sorted({task.episodes for task in plan.tasks()})
    return f"{len(plan.tasks())} runs of {' to '.join(map(str, dict.fromkeys([lengths[0], lengths[-1]])))} episodes"


def print_table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table, with a frame on a terminal."""
    if title:
        print_line(console, title)
    table = Table(box=box.ROUNDED if console.is_terminal else None)
    for place, head in enumerate(heads):
        numeric = all(re.match(r"[-−]?\d|nan|–", row[place]) for row in rows)
        table.add_column(head, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(plain(text)) for text in row))
    console.print(table)
