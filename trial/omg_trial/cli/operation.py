"""Commands of operation: steer, backup, follow, restore, upgrade, erase."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from omg_trial.cli.commands import (
    TOKEN,
    DatabaseUrl,
    Expected,
    KeysPath,
    TokensPath,
    command,
    existing,
    reading,
    show_replay,
    token_for,
)


@command
def steer(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="pause, resume, stop, learn, publish, roll-back or withdraw.")
    ],
    cause: Annotated[str | None, typer.Option(help="Why; it stays in the log, so do not name the person.")] = None,
    person: Annotated[str | None, typer.Option(help="To pause, resume, stop or withdraw one person.")] = None,
    action: Annotated[str | None, typer.Option(help="To pause, resume or stop one action.")] = None,
    version: Annotated[int | None, typer.Option(help="Of the model to publish or to roll back to.")] = None,
    url: Annotated[str, typer.Option(help="The address of the service.")] = "http://127.0.0.1:8000",
) -> None:
    """Pause, resume or stop the trial, a person or an action; learn; publish; withdraw a person.

    A token with the role administrator is read from the environment variable OMG_TRIAL_TOKEN.
    """
    from omg_trial.client import Client

    given = {"person": person, "action": action, "version": version, "cause": cause}
    with Client(url, token_for("administrator")) as client:
        answer = client.steer(what, **{name: value for name, value in given.items() if value is not None})
    typer.echo(json.dumps(answer))


@command
def backup(
    database: DatabaseUrl,
    copy: Annotated[Path, typer.Argument(metavar="FILE", help="A new SQLite file, which can be served.")],
) -> None:
    """Copy a log to a file, also while a service writes; every event is verified. Print its head."""
    from omg_trial.operation.copies import copy_log

    chain = copy_log(existing(database), copy)
    typer.echo(f"{len(chain)} events are copied to {copy}. Head: {chain.head}")


@command
def follow(
    source: Annotated[str, typer.Argument(metavar="ADDRESS|DATABASE", help="https://... of a service, or its log.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where log.db is kept.")],
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Between two looks.")] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="Catch up, and end.")] = False,
) -> None:
    """Pull new events into a copy of the log, and check that they continue its chain; until Ctrl-C.

    A token with the role follower is read from the environment variable OMG_TRIAL_TOKEN, if the source is a service.
    """
    from omg_trial.operation.copies import Follower, SourceError

    with contextlib.closing(Follower(source, folder, os.environ.get(TOKEN, ""))) as follower:
        while True:
            try:
                if follower.catch_up():
                    typer.echo(f"Head: {follower.head}")
            except SourceError as error:
                if once:
                    raise
                typer.echo(f"omg-trial: {error}", err=True)  # the service is restarted, say
            if once:
                return
            time.sleep(every)


@command
def restore(
    copy: Annotated[str, typer.Argument(metavar="COPY", help="A backup, or the log.db of a follower.")],
    database: Annotated[
        str, typer.Argument(metavar="DATABASE", help="A new SQLite file, or an empty postgresql://...")
    ],
    expect: Expected = None,
    keys: KeysPath = None,
) -> None:
    """Restore a copy to a new place, verify it, compute everything again, and say whether it can be served."""
    from omg_trial.operation.copies import copy_log
    from omg_trial.replay import replay

    if not (secrets := keys or Path(database).with_suffix(".keys")).is_file():
        raise ValueError(f"there is no key file {secrets}: give the one of this log (--keys)")
    chain = copy_log(existing(copy), database, expect)
    typer.echo(f"{len(chain)} events are restored.")
    with reading(database, keys=secrets) as (trial, events):
        show_replay(replay(trial, events))
    typer.echo(f"Ready: omg-trial serve TRIAL.toml --database {database} --keys {secrets}")


@command
def upgrade(database: DatabaseUrl, expect: Expected = None, keys: KeysPath = None) -> None:
    """Tell whether this software may go on with a trial: it must compute everything in the log as it was computed."""
    from omg_cmdp.provenance import provenance
    from omg_trial.replay import check_software, replay

    ours = provenance()
    with reading(database, expect, keys) as (trial, events):
        found = replay(trial, events)
        wrote = found.state.software
        typer.echo(f"Written last by version {wrote['version']}, commit {wrote['commit']}.")
        typer.echo(f"This is version {ours['version']}, commit {ours['commit']}.")
        show_replay(found)
        check_software(trial, found.state, found.agent, ours)
    typer.echo("Ready: stop the service, make a backup, and start it with this software.")


@command
def erase(
    database: DatabaseUrl,
    person: Annotated[str, typer.Argument(metavar="PERSON", help="Name of the person, as the app gave it.")],
    cause: Annotated[str, typer.Option(help="Why; it stays in the log, so do not name the person.")],
    keys: KeysPath = None,
    tokens: TokensPath = None,
) -> None:
    """Erase a person from a trial that is not served: destroy the key of their name and contexts, and their tokens."""
    from omg_trial.contract import Refusal
    from omg_trial.desk import Desk
    from omg_trial.log.database import Database, InUseError
    from omg_trial.tokens import Tokens

    known = tokens or (None if "://" in database else Path(database).with_suffix(".tokens"))
    with reading(database, keys=keys) as (trial, _):
        pass
    try:
        with contextlib.closing(Database(database, keys=keys)) as store:
            desk = Desk(trial, store, new=False)
            call = desk.prepare("erase", {"person": person, "cause": cause})
            [answer] = desk.answer([call._replace(actor="omg-trial erase")])
            refused = answer if isinstance(answer, Refusal) else None
            kept = Tokens(known) if known is not None and known.is_file() else None
            # Also if they were erased by a command that was interrupted.
            if kept is not None and (refused is None or refused.status == 410):
                kept.forget(person)
            if refused is not None:
                raise ValueError(refused.message)
            typer.echo(f"The person was erased by event {desk.chain.head}. Destroy copies of the key file, too.")
            if kept is None:
                advice = "take back the tokens of their phones, which name them"
                typer.echo(f"There is no token file here (--tokens): {advice}.")
    except InUseError:
        how = "an administrator can erase by POST /v1/people/PERSON/erase"
        raise ValueError(f"the trial is served: {how}, or stop the service first") from None
