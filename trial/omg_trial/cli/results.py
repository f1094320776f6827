"""Commands of the analysis: rehearse, export."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from omg_trial.cli.commands import DatabaseUrl, KeysPath, TrialPath, command, reading, until_signal

HAPPENED = {"left": ("person who left", "people who left"), "withdraw": ("withdrawal",), "erase": ("erasure",)}
"""Words for what a rehearsal counts under the name of a call; the others are their own."""


@command
def rehearse(
    file: TrialPath,
    people: Annotated[int, typer.Option(min=10, help="People who take part.")] = 120,
    days: Annotated[int, typer.Option(min=2, help="Days that it lasts.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="The same seed is the same rehearsal.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A new folder; by default TRIAL.rehearsal beside the file.")
    ] = None,
    people_model: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="How people react, if not by the simple model.")
    ] = None,
    calm: Annotated[bool, typer.Option("--calm", help="Nothing goes wrong.")] = False,
    serve_port: Annotated[
        int | None, typer.Option("--serve", metavar="PORT", help="Show the page at the end, until Ctrl-C.")
    ] = None,
) -> None:
    """Play the whole trial with simulated people on a fast clock, and analyse it: before anybody is recruited."""
    from omg_trial.rehearsal.findings import analyse
    from omg_trial.rehearsal.player import FlakyDatabase, Player
    from omg_trial.rehearsal.reactions import load_model, simple_model
    from omg_trial.rehearsal.report import describe_rehearsal, write_rehearsal
    from omg_trial.rehearsal.script import TROUBLE, Script
    from omg_trial.tokens import Tokens
    from omg_trial.trial_file import Trial
    from omg_trial.trial_file.explain import counted
    from omg_trial.web.server import serving

    trial, folder = Trial.read(file), out or file.with_suffix(".rehearsal")
    if folder.exists():
        raise ValueError(f"{folder} is there already: name a new folder with --out, or move this one")
    folder.mkdir(parents=True)
    model = simple_model(trial, seed) if people_model is None else load_model(people_model)
    script = Script() if calm else TROUBLE
    with contextlib.closing(FlakyDatabase(folder / "trial.db")) as store:
        player = Player(trial, store, model, script, people=people, days=days, seed=seed)
        player.play()
        estimates = analyse(player)
        paths = write_rehearsal(player, estimates, folder)
        typer.echo("\n".join(describe_rehearsal(player)))
        counts = {name: count for name, count in player.counts.items() if not name.startswith("refused: ")}
        happened = (counted(count, *HAPPENED.get(name, (name,))) for name, count in counts.items())
        typer.echo(f"There were {', '.join(happened)}.")
        for each in estimates:
            verdict = "covers" if each.covered else "does not cover"
            interval = f"{each.value:.3f} [{each.low:.3f}, {each.high:.3f}]"
            typer.echo(f"{each.name}: {interval} {verdict} the truth, {each.truth:.3f}.")
        missed = sum(not each.covered for each in estimates)
        typer.echo(f"{missed} of {counted(len(estimates), 'interval')} missed; by chance one in twenty does.")
        for path in paths:
            typer.echo(path)
    if serve_port is not None:
        tokens = Tokens(folder / "tokens")
        word = tokens.add("analyst", "rehearsal")
        with serving(trial, folder / "trial.db", folder / "tokens", port=serve_port, clock=lambda: player.now) as url:
            typer.echo(f"The page: {url}, with the token {word}")
            until_signal()


@command
def export(
    database: DatabaseUrl,
    out: Annotated[Path, typer.Option(metavar="FILE", help="A table, .csv or .parquet; a new folder for minari.")],
    form: Annotated[
        str, typer.Option("--for", metavar="all|mrt|lifejacket|minari", help="Whose analysis it is for.")
    ] = "all",
    treatment: Annotated[
        list[str] | None,
        typer.Option(help="For mrt and lifejacket: what counts as treatment; all but the first action."),
    ] = None,
    keys: KeysPath = None,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="With people who have withdrawn; for all.")] = False,
) -> None:
    """Write the decisions of a trial as one table, with a data dictionary beside it, or as others read them."""
    from omg_trial.export import write_decisions, write_field_table, write_minari

    with reading(database, keys=keys) as (trial, events):
        if form == "all":
            paths = write_decisions(trial, events, out, withdrawn=withdrawn)
        elif form == "minari":
            paths = [write_minari(trial, events, out)]
        else:
            paths = [write_field_table(trial, events, out, form, treatment or ())]
    for path in paths:
        typer.echo(path)
