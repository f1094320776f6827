"""What a rehearsal leaves behind: sentences, the tables of the final analysis, and its estimates beside the truth."""

from __future__ import annotations

import collections
import math
import os
from collections.abc import Iterable
from pathlib import Path

from omg_cmdp.validation import file_path
from omg_trial.decisions import PolicySource
from omg_trial.export.decisions import decisions, write_decisions, write_table
from omg_trial.export.field import lifejacket_table, mrt_table
from omg_trial.export.minari import write_minari
from omg_trial.rehearsal.findings import Estimated
from omg_trial.rehearsal.player import FlakyDatabase, Player, decisions_per_day
from omg_trial.rehearsal.reactions import simple_model
from omg_trial.rehearsal.script import Script
from omg_trial.trial_file.explain import counted
from omg_trial.trial_file.trial import Trial

EPISODES = 2
"""Episodes of each person: what comes of the first is learned before the second."""


def rehearse(trial: Trial, *, people: int = 20) -> Player:
    """Play two episodes of everybody in memory, in which nothing goes wrong; the trial begins on a Monday.

    Parameters
    ----------
    trial : Trial
        The trial to rehearse.
    people : int, default 20
        Number of people, with contexts at random, who react by `simple_model`.

    Examples
    --------
    >>> from omg_trial.trial_file import EXAMPLE
    >>> describe_rehearsal(rehearse(Trial.parse(EXAMPLE), people=3))[0].partition(":")[0]
    '6 episodes, 12 decisions'
    """
    days = math.ceil(EPISODES * trial.space.horizon / decisions_per_day(trial))
    player = Player(trial, FlakyDatabase(":memory:"), simple_model(trial), Script(), people=people, days=days, seed=0)
    player.play()
    return player


def describe_rehearsal(player: Player) -> list[str]:
    """Return what was played, sentence by sentence, without people who were taken out."""
    trial, state = player.trial, player.desk.state
    choices = [choice for record in state.episodes.values() for choice in record.choices.values()]
    taken = collections.Counter(choice.action for choice in choices)
    each = [100.0 * taken[place] / max(len(choices), 1) for place in range(len(trial.actions))]
    shares = ", ".join(f"{name} {share:.3g}%" for name, share in zip(trial.actions, each, strict=True))
    least = min((choice.probability for choice in choices if choice.probability is not None), default=math.nan)
    published = counted(state.version.number, "model was", "models were")
    found = [
        f"{len(state.episodes)} episodes, {counted(len(choices), 'decision')}: {shares}.",
        f"The least probable action that was drawn had probability {least:.3g}.",
        f"{published} published.",
    ]
    sources = [choice.source for choice in choices if choice.source != PolicySource.PLAN]
    changed = collections.Counter([*sources, *(rule for choice in choices for rule in choice.rules)])
    for name, count in changed.items():
        found.append(f"{counted(count, 'decision was', 'decisions were')} made or changed by: {name}.")
    refused = (change.cause for change in state.changes if change.verdict == "refused")
    return found + [f"A model was not published: {cause}." for cause in refused]


def write_rehearsal(player: Player, estimates: Iterable[Estimated], folder: str | os.PathLike[str]) -> list[Path]:
    """Write the tables of the final analysis, and its estimates beside the truth; return their paths.

    Parameters
    ----------
    player : Player
        A rehearsal that was played.
    estimates : iterable of Estimated
        What `analyse` has found in it.
    folder : path
        Where to write them. The same seed writes the same bytes.

    Returns
    -------
    list of Path
        decisions.csv and its dictionary, mrt.csv, lifejacket.csv, the data of minari/, and analysis.csv.
    """
    import pandas

    trial, target = player.trial, file_path(folder)
    paths = write_decisions(trial, player.store.read(), target / "decisions.csv")
    table = decisions(trial, player.store.read())
    found = pandas.DataFrame([(*each, each.covered) for each in estimates])
    found.columns = ["estimate", "value", "low", "high", "truth", "covered"]
    tables = {"mrt": mrt_table(trial, table), "lifejacket": lifejacket_table(trial, table), "analysis": found}
    paths += [write_table(rows, target / f"{name}.csv") for name, rows in tables.items()]
    return [*paths, write_minari(trial, player.store.read(), target / "minari")]
