"""The command line of a trial: check, token, serve, replay, verify, export; `operation.py` has those of its operation.

Exit codes: 0 done, 1 the log is not what was written, 2 bad usage. Heavy imports are inside the commands, so that
`omg-trial --help` is quick.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omg_cmdp.documents import plain
from omg_trial.log.traces import log_discreetly

if TYPE_CHECKING:
    from omg_trial.log.events import Event
    from omg_trial.replay import Replay
    from omg_trial.trial_file import Trial

app = typer.Typer(
    help="Run a trial: check its file, serve it, replay its log, export its decisions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

TrialPath = Annotated[Path, typer.Argument(metavar="TRIAL.toml", help="The trial file.")]
TokensPath = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Hashes of tokens; by default the same name, ending with .tokens.")
]
Expected = Annotated[
    str | None, typer.Option(metavar="N:HASH", help="An event that the log must have, as a replay has printed it.")
]
KeysPath = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The key file; by default the same name, ending with .keys.")
]
TOKEN = "OMG_TRIAL_TOKEN"
DatabaseUrl = Annotated[str, typer.Argument(metavar="DATABASE", help="A SQLite file, or postgresql://...")]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command; an error of usage, of a file or of the database becomes one line and exit code 2."""

    @app.command()
    @functools.wraps(function)
    def guarded(*arguments: object, **options: object) -> None:
        from omg_trial.log.database import StoreError
        from omg_trial.log.events import BrokenChainError

        try:
            function(*arguments, **options)
            return
        except BrokenPipeError:  # the reader of the output has seen enough
            raise
        except OSError as error:
            message = f"{os.fspath(error.filename)}: {error.strerror}" if error.filename else str(error)
        except BrokenChainError as error:
            typer.echo(f"NOT the log that was written: {plain(str(error))}")
            raise typer.Exit(1) from None
        except (StoreError, ValueError) as error:
            message = str(error)
        typer.echo(f"omg-trial: {plain(message)}", err=True)
        raise typer.Exit(2)

    return guarded


@command
def check(file: TrialPath, people: Annotated[int, typer.Option(min=1, help="People in the rehearsal.")] = 20) -> None:
    """Explain a trial file in plain sentences, and rehearse it with random people and outcomes."""
    from omg_trial.rehearsal.report import describe_rehearsal, rehearse
    from omg_trial.trial_file import Trial
    from omg_trial.trial_file.explain import explain_trial

    trial = Trial.read(file)
    rehearsed = describe_rehearsal(rehearse(trial, people=people))
    typer.echo("\n".join([*explain_trial(trial), f"\nA rehearsal with {people} people:", *rehearsed]))


@command
def token(
    file: TrialPath,
    role: Annotated[str, typer.Argument(metavar="app|phone|analyst|blinded|follower|administrator")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="To know it by.")],
    tokens: TokensPath = None,
    person: Annotated[str | None, typer.Option(help="Whose phone it is; it may call for this person only.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="The last day it is valid.")] = None,
    rate: Annotated[float | None, typer.Option(help="Calls a second; by default 5 of a phone, 500 of others.")] = None,
    replaces: Annotated[bool, typer.Option("--replaces", help="Take back the tokens of this name.")] = False,
) -> None:
    """Make a token, and print it. Only its hash is kept, in a file."""
    from omg_trial.tokens import Tokens
    from omg_trial.trial_file import Trial

    Trial.read(file)
    known = Tokens(tokens or file.with_suffix(".tokens"))
    typer.echo(known.add(role, name, person=person, expires=expires, rate=rate, replaces=replaces))


@command
def tokens(
    file: TrialPath,
    tokens: TokensPath = None,
    revoke: Annotated[str | None, typer.Option(metavar="NAME", help="Take back the tokens of this name.")] = None,
) -> None:
    """List the tokens of a trial, or take some back; a service that runs notices it at once."""
    from omg_trial.tokens import Tokens

    known = Tokens(tokens or file.with_suffix(".tokens"))
    if revoke is not None and not known.revoke(revoke):
        raise ValueError(f"there is no token {revoke!r}")
    for each in known.all():
        until = "" if each.expires is None else f", until {each.expires}{'' if each.valid() else ' (expired)'}"
        typer.echo(plain(f"{each.role} {each.hash[:12]} {each.name}{until}"))


@command
def serve(
    file: TrialPath,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="A file, or postgresql://...; by default TRIAL.db beside it.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    host: Annotated[str, typer.Option(help="Where to listen; TLS belongs to a proxy in front of it.")] = "127.0.0.1",
    tokens: TokensPath = None,
    keys: KeysPath = None,
    correct_clock: Annotated[bool, typer.Option("--correct-clock", help="Believe the clock, not the log.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Found the trial in an empty or missing database.")] = False,
) -> None:
    """Serve a trial: decisions over HTTP, until SIGTERM or Ctrl-C."""
    from omg_trial.trial_file import Trial
    from omg_trial.web.server import serving

    trial, known = Trial.read(file), tokens or file.with_suffix(".tokens")
    log_discreetly()
    if not known.exists():
        typer.echo(f"nobody has a token yet: omg-trial token {file} app NAME", err=True)
    store = database or str(file.with_suffix(".db"))
    # A wrong path, or a volume that was not mounted, must not begin the trial anew.
    if not new and "://" not in store and not Path(store).exists():
        raise ValueError(f"{store}: there is no such database; add --new to found the trial there")
    secrets = keys or file.with_suffix(".keys")
    with serving(
        trial, store, known, keys=secrets, host=host, port=port, correct_clock=correct_clock, new=new
    ) as address:
        typer.echo(f"{trial.name}: {address}")
        until_signal()


@command
def enrol(
    file: TrialPath,
    people: Annotated[Path, typer.Argument(metavar="PEOPLE.csv", help="A row for each: person, arm, zone, ...")],
    url: Annotated[str, typer.Option(help="The address of the service.")] = "http://127.0.0.1:8000",
) -> None:
    """Enrol the people of a table; all rows are checked before the first is sent. OMG_TRIAL_TOKEN holds the token."""
    from omg_trial.client import Client, RefusedError, UnreachableError
    from omg_trial.people.roster import read_roster
    from omg_trial.trial_file import Trial

    rows = read_roster(Trial.read(file), people)
    with Client(url, token_for("app")) as client:
        for row in rows:
            try:
                client.enrol(**row)
            except (RefusedError, UnreachableError) as error:
                advice = "once that is mended, enrol the whole table again"
                raise ValueError(f"{row['person']}: {error}; {advice}") from None
    typer.echo(f"{len(rows)} people are enrolled.")


@command
def replay(database: DatabaseUrl, expect: Expected = None, keys: KeysPath = None) -> None:
    """Fold the log of a trial anew, and compare every probability, action and model with it, bit for bit."""
    from omg_trial import replay as replays
    from omg_trial.watching.losses import LossWatch

    with reading(database, expect, keys) as (trial, events):
        losses = LossWatch(trial)
        found = replays.replay(trial, map(losses.follow, events))
    typer.echo(losses.conclude(found.state).text())
    show_replay(found)


def show_replay(found: Replay) -> None:
    """Print what a replay has found; exit code 1 if it differs from the log."""
    from omg_trial.log.machine import TOLERANCE
    from omg_trial.trial_file.explain import counted

    counts = (
        f"{counted(found.policies, 'policy', 'policies')}, {counted(found.decisions - found.only_drawn, 'decision')}"
    )
    typer.echo(f"{found.state.number} events: {counts}, {counted(found.versions, 'model')} computed again.")
    if found.only_drawn:
        why = "the people were erased, or nobody knows any more why planning failed"
        typer.echo(f"Of {counted(found.only_drawn, 'decision')} more only the draw was compared: {why}.")
    for source, count in found.fallbacks.items():
        typer.echo(f"{counted(count, 'decision')} without a fresh plan: {source}.")
    typer.echo(f"Head: {found.state.number}:{found.state.hash}")
    for difference in found.differences:
        typer.echo(difference)
    if found.differences:
        typer.echo("NOT equal to the log; perhaps that was written by another version.")
        raise typer.Exit(1)
    if found.gone:
        policies = counted(found.gone["policies"], "policy", "policies")
        gone = ", ".join(policies if name == "policies" else name for name in found.gone)
        typer.echo(f"Not computed again, as people were erased whose data they need: {gone}.")
    if (found.gone or found.only_drawn) and found.bits:
        typer.echo("All else is equal to the log, bit for bit.")
    elif found.bits:
        typer.echo("Equal to the log, bit for bit.")
    else:
        much = f"probabilities differ by {found.largest:.1g} at most, allowed are {TOLERANCE:g}"
        typer.echo(f"Equal to the log, of which another processor or BLAS has computed a part: {much}.")


@command
def verify(database: DatabaseUrl, expect: Expected = None, keys: KeysPath = None) -> None:
    """Verify chain, keys and draws of a log by an independent program, which is one file and needs nothing else."""
    from omg_trial import verify as verifier
    from omg_trial.log.database import Database
    from omg_trial.log.events import BrokenChainError

    verifier.mark(expect)
    with contextlib.closing(Database(existing(database), writing=False, keys=keys)) as store:
        kept = store.snapshot()
        try:
            known = verifier.read_keys(str(store.keys.path)) if store.keys.secret else None
            found = verifier.verify(store.rows(), expect, 0 if kept is None else kept.number, known)
        except verifier.BrokenLogError as error:
            raise BrokenChainError(str(error)) from None
    typer.echo(plain(verifier.describe(found)))
    if found.problems:
        raise typer.Exit(1)


def token_for(role: str) -> str:
    """Return the token of the environment, with which the service is called."""
    if not (token := os.environ.get(TOKEN)):
        raise ValueError(f"the service asks for a token: set {TOKEN} to one with the role {role}")
    return token


def until_signal() -> None:
    """Wait until the process is asked to end."""
    # Not as exceptions: a second signal must not interrupt the end, in which calls under way are answered.
    ended = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: ended.set())
    ended.wait()


@contextlib.contextmanager
def reading(url: str, expect: str | None = None, keys: Path | None = None) -> Iterator[tuple[Trial, Iterator[Event]]]:
    """Yield the trial of a database, and its events; also beside a service that writes."""
    from omg_trial.log.database import Database
    from omg_trial.log.events import ending, verified
    from omg_trial.state import State
    from omg_trial.trial_file import Trial

    if keys is not None and not keys.is_file():
        raise ValueError(f"{keys}: there is no such key file")
    with contextlib.closing(Database(existing(url), writing=False, keys=keys)) as store:
        kept = store.snapshot()
        least = 0 if kept is None else kept.number
        founded = next(ending(verified(store.read()), least, expect), None)
        if founded is None:
            raise ValueError(f"{url}: nothing has happened there yet")
        State().apply(founded)  # refuses a log of another format
        yield Trial.parse(founded.body["file"], f"{url}, event 1"), ending(store.read(), least, expect)


def existing(url: str) -> str:
    """Return the URL of a database that is there."""
    if "://" not in url and not Path(url).is_file():
        raise ValueError(f"{url}: there is no such database")
    return url
