"""The output of a study while it runs and at its end: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from omg_cmdp.documents import plain
from omg_lab.audit.audit import combine
from omg_lab.reports.scenarios import played_worlds
from omg_lab.studies.plan import TABLES, StudyPlan, Task
from omg_lab.studies.results import Audited, Results
from omg_lab.studies.runner import Event, Failed, Finished, Lost, Waiting
from omg_lab.studies.runner import Progress as RunProgress

MOST_LINES = 24
"""The most runs that all stay on the display; with more, finished ones disappear."""


def print_line(console: Console, text: str) -> None:
    """Print one line as it is; control characters are shown, not obeyed."""
    console.print(plain(text), markup=False, highlight=False, soft_wrap=True)


class RunDisplay:
    """Shows the events of runs in a console; this base prints what both ways of showing say in words."""

    def __init__(self, console: Console, tasks: Sequence[Task]) -> None:
        self.console = console
        self.episodes = {task.name: task.episodes for task in tasks}
        self._waiting: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, Lost):
            print_line(self.console, f"{event.run}: its worker died; a new one continues from the last checkpoint")
        elif isinstance(event, Waiting) and event.run not in self._waiting:
            self._waiting.add(event.run)
            print_line(
                self.console,
                f"{event.run}: another process is playing it; waiting for its result (Ctrl-C stops waiting)",
            )


@final
class PlainDisplay(RunDisplay):
    """A line for each run when it ends, and when its worker dies."""

    ended = 0

    def __call__(self, event: Event) -> None:
        """Print a line, unless the run only goes on."""
        super().__call__(event)
        if isinstance(event, (Failed, Finished)):
            self.ended += 1
            place = f"{self.ended}/{len(self.episodes)} {event.run}"
            if isinstance(event, Failed):
                print_line(self.console, f"{place} failed: {event.error}")
            else:
                print_line(self.console, f"{place}: {_measured(event.result)}, {event.result['seconds']:.1f} s")


@final
class LiveDisplay(RunDisplay):
    """A line for each run, with episodes, regret, rate and time left; and one for all runs."""

    def __init__(self, console: Console, tasks: Sequence[Task]) -> None:
        super().__init__(console, tasks)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:>7.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[measured]:>16}"),
            TextColumn("{task.fields[rate]:>10}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._lines: dict[str, Any] = {}
        self._began: dict[str, tuple[float, int]] = {}
        self._done = dict.fromkeys(self.episodes, 0)
        self._all = self._progress.add_task("all runs", total=sum(self.episodes.values()), measured="", rate="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, event: Event) -> None:
        """Update the line of a run."""
        super().__call__(event)
        if isinstance(event, Lost):
            self._began.pop(event.run, None)
        elif isinstance(event, Failed):
            print_line(self.console, f"{event.run} failed: {event.error}")
            self._move(event.run, self.episodes[event.run], "")
        elif isinstance(event, Finished):
            self._move(event.run, self.episodes[event.run], _measured(event.result))
            if len(self.episodes) > MOST_LINES:
                self._progress.update(self._lines[event.run], visible=False)
        elif isinstance(event, RunProgress):
            self._move(event.run, event.episode, "" if math.isnan(event.regret) else f"regret {event.regret:9.1f}")

    def _move(self, run: str, episode: int, measured: str) -> None:
        if run not in self._lines:
            self._lines[run] = self._progress.add_task(run, total=self.episodes[run], measured="", rate="")
        began, first = self._began.setdefault(run, (time.monotonic(), episode))
        seconds = time.monotonic() - began
        rate: dict[str, Any] = (
            {"rate": f"{(episode - first) / seconds:.0f}/s"} if seconds > 0.1 and episode > first else {}
        )
        self._progress.update(self._lines[run], completed=episode, measured=measured, **rate)
        self._done[run] = episode
        self._progress.update(self._all, completed=sum(self._done.values()))


def _measured(result: Mapping[str, Any]) -> str:
    """Return the total regret of a run; where the truth is unknown, what was earned."""
    regret = result["regret"]
    known = regret is not None and not math.isnan(regret)
    return f"regret {regret:.1f}" if known else f"return {result['return']:.1f}"


def closing_tables(results: Results) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield the heads and rows of tables: the agents of each world and adversary, best first.

    Worlds whose truth is known have regret; others have what was earned, in a table of their own. An agent's own time
    is the median over episodes, so that compilation in the first one does not count.
    """
    key, own = ["world", "adversary", "agent"], ["seconds_deciding", "seconds_learning"]
    log = results.log_of(*results.runs["run"], columns=[*key, *own, "episode", "return"])
    places = list(itertools.product(played_worlds(results.configuration), results.configuration["adversaries"]))
    logs = dict(list(log.assign(own=1e3 * log[own].sum(axis=1)).groupby(key)))
    for exact in (True, False):
        rows = []
        for names, runs in results.runs[results.runs["regret"].notna() == exact].groupby(key):
            values = runs["regret"] if exact else runs["return"] / runs["episodes"]
            played, digits = logs[names], 1 if exact else 2
            if exact:
                late = f"{runs['regret_last_half'].sum() / max(runs['regret'].sum(), 1e-12):z.0%}"
            else:
                late = f"{played.loc[played['episode'] > runs['episodes'].iloc[0] // 2, 'return'].mean():.2f}"
            numbers = [
                f"{values.mean():.{digits}f}",
                f"{values.sem():.{digits}f}",
                late,
                f"{played['own'].median():.2f}",
            ]
            order = places.index(names[:2]), float(values.mean()) * (1.0 if exact else -1.0)
            rows.append((order, [*names, str(len(runs)), *numbers]))
        measure = "mean regret" if exact else "return per episode"
        if rows:
            heads = [*key, "seeds", measure, "± s.e.", "in the last half", "ms/episode"]
            yield heads, [row for _, row in sorted(rows, key=lambda each: each[0])]


def audit_table(audited: Sequence[Audited]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of a table: each statement, over all runs."""
    heads = ["kind", "statement", "runs", "violated", "not proven", "vacuous", "allowed rate", "smallest slack"]
    names = ("kind", "name", "runs", "violated", "unproven", "vacuous")
    return heads, [
        [*(str(getattr(each, name)) for name in names), f"{each.allowed:g}", f"{each.smallest_slack:.2g}"]
        for each in combine([run.rows for run in audited])
    ]


def print_plan(console: Console, plan: StudyPlan, seconds: float, workers: int) -> None:
    """Print what a plan would run, and how long it would take."""
    print_line(console, f"{plan.name}: {plan.description}")
    for table in TABLES:
        parts = plan.sized_worlds() if table == "worlds" else getattr(plan, table)
        rows = [[p.name, p.kind, ", ".join(f"{k} = {v}" for k, v in p.options.items())] for p in parts]
        print_table(console, [table, "kind", "options"], rows)
    print_line(console, f"{size_of(plan)}; about {_duration(seconds)} on {workers} core(s)")


def size_of(plan: StudyPlan) -> str:
    """Return the number of runs and of episodes, in words."""
    lengths = sorted({task.episodes for task in plan.tasks()})
    return f"{len(plan.tasks())} runs of {' to '.join(map(str, dict.fromkeys([lengths[0], lengths[-1]])))} episodes"


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds > 2.0 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def print_table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table, with a frame on a terminal."""
    if title:
        print_line(console, title)
    table = Table(box=box.ROUNDED if console.is_terminal else None)
    for place, head in enumerate(heads):
        numeric = bool(rows) and all(_is_number(row[place]) for row in rows)
        table.add_column(head, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(plain(text)) for text in row))
    console.print(table)


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("%"))
    except ValueError:
        return False
    return True
