"""What the terminal shows of a study while it runs and at its end: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

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

LOST = "{}: its worker died; a new one continues from the last checkpoint"
BUSY = "{}: another process is playing it; waiting for that one (Ctrl-C stops waiting)"
MOST_LINES = 24
"""With more runs than this, finished ones disappear from the display."""


_UNKNOWN: dict[str, Any] = {"measured": "", "rate": ""}


@final
class Live:
    """A line for each run: episodes, regret, rate, time left; and one for all runs."""

    def __init__(self, console: Console, tasks: Sequence[Task]) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:>7.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[measured]:>16}"),
            TextColumn("{task.fields[rate]:>10}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._episodes = {task.name: task.episodes for task in tasks}
        self._lines: dict[str, Any] = {}
        self._began: dict[str, tuple[float, int]] = {}
        total = sum(self._episodes.values())
        self._all = self._progress.add_task("all runs", total=total, **_UNKNOWN)
        self._done = dict.fromkeys(self._episodes, 0)
        self._waiting: set[str] = set()

    def __enter__(self) -> Live:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, event: Event) -> None:
        """Update the line of a run."""
        if isinstance(event, Lost):
            self._progress.console.print(LOST.format(event.run))
            self._began.pop(event.run, None)
        elif isinstance(event, Waiting):
            if event.run not in self._waiting:
                self._progress.console.print(BUSY.format(event.run))
            self._waiting.add(event.run)
        elif isinstance(event, Failed):
            error = escape(plain(event.error))
            self._progress.console.print(f"[bold red]{event.run} failed[/]: {error}", highlight=False)
            self._move(event.run, self._episodes[event.run], "")
        elif isinstance(event, Finished):
            self._move(event.run, self._episodes[event.run], _measured(event.result))
            if len(self._episodes) > MOST_LINES:
                self._progress.update(self._lines[event.run], visible=False)
        else:
            self._move(event.run, event.episode, "" if math.isnan(event.regret) else f"regret {event.regret:9.1f}")

    def _move(self, run: str, episode: int, measured: str) -> None:
        if run not in self._lines:
            self._lines[run] = self._progress.add_task(run, total=self._episodes[run], **_UNKNOWN)
        began, first = self._began.setdefault(run, (time.monotonic(), episode))
        seconds = time.monotonic() - began
        rate = f"{(episode - first) / seconds:.0f}/s" if seconds > 0.1 and episode > first else ""
        shown: dict[str, Any] = {"rate": rate} if rate else {}
        self._progress.update(self._lines[run], completed=episode, measured=measured, **shown)
        self._done[run] = episode
        self._progress.update(self._all, completed=sum(self._done.values()))


@final
class Plain:
    """A line for each run when it ends, and when its worker dies."""

    def __init__(self, console: Console, tasks: Sequence[Task]) -> None:
        self._console, self._left, self._count = console, len(tasks), len(tasks)
        self._waiting: set[str] = set()

    def __call__(self, event: Event) -> None:
        """Print a line."""
        if isinstance(event, RunProgress):
            return
        if isinstance(event, Lost):
            self._line(LOST.format(event.run))
            return
        if isinstance(event, Waiting):
            if event.run not in self._waiting:
                self._line(BUSY.format(event.run))
            self._waiting.add(event.run)
            return
        self._left -= 1
        place = f"{self._count - self._left}/{self._count} {event.run}"
        if isinstance(event, Failed):
            self._line(f"{place} failed: {event.error}")
        else:
            self._line(f"{place}: {_measured(event.result)}, {event.result['seconds']:.1f} s")

    def _line(self, text: str) -> None:
        self._console.print(plain(text), markup=False, highlight=False, soft_wrap=True)


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
    log, runs = results.log_of(*results.runs["run"], columns=[*_KEY, *_OWN, "episode", "return"]), results.runs
    for exact in (True, False):
        chosen = runs[runs["regret"].notna() == exact]
        rows = [row for place in _places(results) for row in _rows(*place, chosen, log, exact)]
        measure = "mean regret" if exact else "return per episode"
        if rows:
            yield [*_KEY, "seeds", measure, "± s.e.", "in the last half", "ms/episode"], rows


_KEY, _OWN = ("world", "adversary", "agent"), ("seconds_deciding", "seconds_learning")


def _places(results: Results) -> list[tuple[str, str]]:
    configuration = results.configuration
    return list(itertools.product(played_worlds(configuration), configuration["adversaries"]))


def _rows(world: str, adversary: str, runs: Any, log: Any, exact: bool) -> list[list[str]]:
    """Return a row for each agent that played in one world under one adversary."""
    agents = runs[(runs["world"] == world) & (runs["adversary"] == adversary)].groupby("agent")
    here = log[(log["world"] == world) & (log["adversary"] == adversary)]
    rows = []
    for agent, mine in agents:
        played = here[here["agent"] == agent]
        values = mine["regret"] if exact else mine["return"] / mine["episodes"]
        error = values.sem() if len(mine) > 1 else float("nan")
        if exact:
            late = f"{mine['regret_last_half'].sum() / max(mine['regret'].sum(), 1e-12):z.0%}"
        else:
            late = f"{played.loc[played['episode'] > mine['episodes'].iloc[0] // 2, 'return'].mean():.2f}"
        time = 1e3 * played[list(_OWN)].sum(axis=1).median()
        digits = 1 if exact else 2
        numbers = [f"{values.mean():.{digits}f}", f"{error:.{digits}f}", late, f"{time:.2f}"]
        rows.append((float(values.mean()), [world, adversary, str(agent), str(len(mine)), *numbers]))
    return [row for _, row in sorted(rows, key=lambda each: each[0] if exact else -each[0])]


def audit_table(audited: Sequence[Audited]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of a table: each statement, over all runs."""
    heads = ["kind", "statement", "runs", "violated", "not proven", "vacuous", "allowed rate", "smallest slack"]
    summaries = combine([each.rows for each in audited]) if audited else []
    return heads, [
        [
            s.kind,
            s.name,
            *map(str, (s.runs, s.violated, s.unproven, s.vacuous)),
            f"{s.allowed:g}",
            f"{s.smallest_slack:.2g}",
        ]
        for s in summaries
    ]


def print_plan(console: Console, plan: StudyPlan, seconds: float, workers: int) -> None:
    """Print what a plan would run, and how long it would take."""
    console.print(plain(f"{plan.name}: {plan.description}"), markup=False, highlight=False)
    for table in TABLES:
        parts = plan.sized_worlds() if table == "worlds" else getattr(plan, table)
        rows = [[p.name, p.kind, ", ".join(f"{k} = {v}" for k, v in p.options.items())] for p in parts]
        print_table(console, [table, "kind", "options"], rows)
    console.print(f"{size_of(plan)}; about {_duration(seconds)} on {workers} core(s)", highlight=False)


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
        console.print(plain(title), markup=False, highlight=False, soft_wrap=True)
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
