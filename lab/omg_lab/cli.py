"""The command line: run, resume, audit, compare, report and export studies.

Exit codes: 0 done, 1 a run failed or a statement of the analysis does not hold, 2 bad usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from omg_cmdp.documents import FileError, plain
from omg_lab.listing import print_kind, print_kinds
from omg_lab.reports.scenarios import compare_scenarios
from omg_lab.reports.tables import comparisons_table
from omg_lab.reports.terminal import RunDisplay, audit_table, print_line, print_plan, print_scenarios, print_table
from omg_lab.studies import engines
from omg_lab.studies.config import load_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.export import export
from omg_lab.studies.outside.starter import write_starter
from omg_lab.studies.overrides import read_overrides
from omg_lab.studies.plan import StudyPlan
from omg_lab.studies.results import Results, audits, load
from omg_lab.studies.runner import estimate, peak_memory

WIDTH = 160
"""The width of plain output, whose lines are not wrapped."""

SAME = "equal to its log, bit for bit"
CORRECTED = (
    "Bounds and p-values (in brackets) are corrected for the pairs of a scenario: all pairs here, those with the first "
    "agent in a report. --against AGENT does the same here."
)
OTHER = "NOT equal to its log, which another version may have written"

app = typer.Typer(
    help="Studies of contextual MDPs: run, resume, audit, compare, report.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a study.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only errors.")]
Study = Annotated[
    Path | None, typer.Option(metavar="FILE.toml", help="The study file, if it names modules or files of yours.")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Where results go; by default studies/NAME.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; by default one for each core.")]


@app.command()
def demo(out: Out = None, workers: Workers = None, as_json: Json = False, quiet: Quiet = False) -> None:
    """Run a small trial of two drugs, OMG against four other agents, and write its report."""
    with _refusing():
        plan = load_plan("demo")
        directory = out or Path("studies") / plan.name
        results = _execute(plan, directory, workers, as_json=as_json, quiet=quiet)
        path = _write_report(results)
        if not (as_json or quiet):
            print_line(_console(), f"\nThe report: {path}")
    raise typer.Exit(0 if results.failed.empty else 1)


@app.command()
def run(
    source: Annotated[str, typer.Argument(metavar="PRESET|FILE.toml", help="See `omg-lab list`.")],
    out: Out = None,
    episodes: Annotated[str | None, typer.Option(metavar="T", help="Episodes of each run.")] = None,
    seeds: Annotated[str | None, typer.Option(metavar="N|[..]", help="Number of seeds, or a list of seeds.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any key, such as agents.omg.gamma=100.")
    ] = None,
    workers: Workers = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan, and the time and memory it would take.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a study, or continue it: finished runs are not played again."""
    with _refusing():
        plan = load_plan(source, read_overrides(episodes, seeds, changes or ()))
        if dry_run:
            count = workers or engines.cores()
            seconds, memory = estimate(plan) / count, count * peak_memory()
            if as_json:
                typer.echo(json.dumps({"configuration": plan.configuration(), "seconds": seconds, "bytes": memory}))
            else:
                print_plan(_console(), plan, seconds, memory, count)
            return
        results = _execute(plan, out or Path("studies") / plan.name, workers, as_json=as_json, quiet=quiet)
    raise typer.Exit(0 if results.failed.empty else 1)


@app.command("list")
def list_kinds(name: Annotated[str | None, typer.Argument(help="A preset or a kind.")] = None) -> None:
    """List presets, and the kinds of worlds, adversaries, agents, delays and oracles; or the options of one of them."""
    with _refusing():
        print_kinds(_console()) if name is None else print_kind(_console(), name)


@app.command()
def audit(
    directory: Directory,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of each run that are played again.")] = 300,
    runs: Annotated[str, typer.Option(metavar="TEXT", help="Only runs whose name contains this.")] = "",
    study: Study = None,
    as_json: Json = False,
) -> None:
    """Play finished runs again, and check every statement of the analysis on them."""
    console, done = _console(), []
    with _refusing():
        plan, chosen = None if study is None else load_plan(str(study)), lambda name: runs in name
        for each in audits(load(directory), episodes=episodes, choose=chosen, study=plan):
            done.append(each)
            if not as_json:
                print_line(console, f"{each.task.name}: played again, {SAME if each.as_logged else OTHER}")
        if not done:
            raise FileError(f"no finished run in {directory} has {runs!r} in its name; try another --runs")
    if as_json:
        typer.echo(json.dumps([each.record() for each in done]))
    else:
        print_table(console, *audit_table(done))
    raise typer.Exit(0 if all(each.sound for each in done) else 1)


@app.command()
def compare(
    directory: Directory,
    against: Annotated[str | None, typer.Option(metavar="AGENT", help="Compare with this agent only.")] = None,
    as_json: Json = False,
) -> None:
    """Test which agents differ, on average and on most seeds; both tests may be repeated after every seed."""
    with _refusing():
        compared = compare_scenarios(load(directory), against)
    if as_json:
        labels = [({"world": each.world, "adversary": each.adversary}, pairs) for each, pairs in compared]
        typer.echo(json.dumps([{**place, **pair.record()} for place, pairs in labels for pair in pairs]))
        return
    for scenario, pairs in compared:
        table = comparisons_table(scenario, pairs)
        nothing = "" if pairs else "; nothing to compare yet"
        print_table(_console(), list(table.columns), table.lines(), title=f"{scenario.title}{nothing}")
    print_line(_console(), CORRECTED)


@app.command()
def report(directories: Annotated[list[Path], typer.Argument(metavar="DIR...")]) -> None:
    """Write report.html, its figures and its tables into the directory of each study."""
    with _refusing():
        for directory in directories:
            typer.echo(_write_report(load(directory)))


@app.command("export")
def export_results(
    directory: Directory,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to write; DIR/export by default.")] = None,
) -> None:
    """Write the log of the finished runs of a study as one CSV file."""
    with _refusing():
        typer.echo(export(load(directory), out or directory / "export"))


@app.command()
def new(directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")]) -> None:
    """Write a study to start from: study.toml, a world of its own, its test, and a README."""
    with _refusing():
        for path in write_starter(directory):
            typer.echo(path)
    typer.echo(f"\nNext: omg-lab run {directory / 'study.toml'}")


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Turn errors of usage, and of files, into a line and exit code 2."""
    try:
        yield
        return
    except BrokenPipeError:  # the reader of the output has seen enough
        raise
    except OSError as error:
        message = f"{os.fspath(error.filename)}: {error.strerror}" if error.filename else str(error)
    except ValueError as error:
        message = str(error)
    Console(stderr=True, soft_wrap=True).print(f"[bold red]omg-lab:[/] {escape(plain(message))}", highlight=False)
    raise typer.Exit(2)


def _execute(plan: StudyPlan, directory: Path, workers: int | None, *, as_json: bool, quiet: bool) -> Results:
    """Play the missing runs, and show them."""
    store = open_study(plan, directory)
    finished = set(load(directory).runs["run"])  # and nothing is played in a folder with a damaged file
    tasks = [task for task in plan.tasks() if task.name not in finished]
    console = _console()
    try:
        with RunDisplay(Console(quiet=True, force_terminal=False) if as_json or quiet else console, tasks) as display:
            if tasks:
                engines.play_all(tasks, store, display, workers=workers)
    except KeyboardInterrupt:
        print_line(Console(stderr=True), "stopped; the same command continues from here")
        raise typer.Exit(130) from None
    results = load(directory)
    if as_json:
        document = {"directory": str(directory), "runs": list(store.results())}
        typer.echo(json.dumps(document))
    elif not quiet:
        if not results.runs.empty:
            print_line(console, plan.description)
            print_scenarios(console, results)
        print_line(console, f"{len(results.runs)} finished runs are in {directory}")
    for failure in results.failed.itertuples():
        print_line(Console(stderr=True), f"{failure.run} failed:\n{failure.error}")
    return results


def _write_report(results: Results) -> Path:
    from omg_lab.reports.page import write_report

    return write_report(results, results.directory)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)
