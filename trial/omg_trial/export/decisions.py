"""The decisions of a trial as one tidy table, and the dictionary that explains its columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from omg_cmdp.contexts import context_from_json
from omg_cmdp.logs.writers import csv_cell
from omg_cmdp.oracles.feature_map import Category, Number
from omg_cmdp.persistence import whole_file
from omg_cmdp.validation import file_path, instance_of
from omg_trial.episodes import Record
from omg_trial.log.events import Event, verified
from omg_trial.state import State
from omg_trial.trial_file.trial import Trial

if TYPE_CHECKING:
    import pandas

ENDINGS = (".csv", ".parquet")


class PlayedTrial(NamedTuple):
    """Everything that was played: records by episode, what was drawn, and who has withdrawn since."""

    records: dict[int, Record]
    drawn: dict[tuple[int, int], tuple[int, list[float]]]
    """(episode, step) -> the action that was drawn, and the probabilities of all."""
    withdrawn: set[str]


def fold_played(trial: Trial, events: Iterable[Event]) -> PlayedTrial:
    """Fold the log without its withdrawals: what was played stays played."""
    instance_of("trial", trial, Trial)
    state, drawn, withdrawn = State(trial.missing_reward), {}, set()
    for event in verified(events):
        if event.kind == "withdrawn":
            withdrawn.add(event.body["person"])
            continue
        if event.kind == "decided":
            body = event.body
            drawn[body["episode"], body["step"]] = body["drawn"], body["probabilities"]
        state.apply(event)
    return PlayedTrial(state.episodes, drawn, withdrawn)


def decisions(trial: Trial, events: Iterable[Event]) -> pandas.DataFrame:
    """Return a table with a row for every decision, in the order of episodes and steps.

    Parameters
    ----------
    trial : Trial
        The trial that the log is of.
    events : iterable of Event
        All events from the first on.

    Examples
    --------
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.log.store import MemoryStore
    >>> from omg_trial.trial_file import EXAMPLE
    >>> desk = Desk(Trial.parse(EXAMPLE), MemoryStore())
    >>> answer = desk.call("open", {"person": "p1", "context": "alone"})
    >>> answer = desk.call("decide", {"episode": 3, "step": 0, "state": "took it"})
    >>> table = decisions(desk.trial, desk.store.read())
    >>> table[["person", "step", "state", "source"]].values.tolist()
    [['p1', 0, 'took it', 'plan']]
    """
    import pandas

    rows = list(_rows(trial, fold_played(trial, events)))
    described = columns(trial)
    frame = pandas.DataFrame(rows, columns=list(described))
    return frame.astype({name: column.kind for name, column in described.items()})


def write_decisions(trial: Trial, events: Iterable[Event], path: str | os.PathLike[str]) -> list[Path]:
    """Write the table of `decisions` and a data dictionary beside it; return both paths.

    Parameters
    ----------
    trial, events
        As in `decisions`.
    path : path
        Ends with .csv or .parquet; the dictionary has the same name with .md.

    Examples
    --------
    >>> import tempfile
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.log.store import MemoryStore
    >>> from omg_trial.trial_file import EXAMPLE
    >>> desk = Desk(Trial.parse(EXAMPLE), MemoryStore())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [each.name for each in write_decisions(desk.trial, desk.store.read(), f"{folder}/table.csv")]
    ['table.csv', 'table.md']
    """
    target = file_path(path)
    if target.suffix not in ENDINGS:
        raise ValueError(f"`path` must end with {' or '.join(ENDINGS)}, got {target.name!r}")
    frame, explained = decisions(trial, events), target.with_suffix(".md")
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as file:
        if target.suffix == ".csv":
            texts = [name for name, column in columns(trial).items() if column.kind == "string"]
            safe = {name: frame[name].map(csv_cell, na_action="ignore") for name in texts}
            frame.assign(**safe).to_csv(file, index=False)
        else:
            frame.to_parquet(file, index=False)
    with whole_file(explained) as file:
        file.write_text(dictionary(trial, len(frame)), encoding="utf-8")
    return [target, explained]


class Column(NamedTuple):
    """A column of the table: the kind of its entries, and what they mean."""

    kind: str
    meaning: str


def columns(trial: Trial) -> dict[str, Column]:
    """Return the columns of the table, by name."""
    low, high = trial.reward_range
    of_actions = {f"probability_{name}": Column("float64", f"with which {name} was drawn") for name in trial.actions}
    return {
        "person": Column("string", "name of the person, as the app gave it"),
        "episode": Column("int64", "number of the episode, which is that of the event with which it was opened"),
        "step": Column("int64", f"number of the decision in its episode, 0 to {trial.space.horizon - 1}"),
        "time": Column(
            "string", "when it was decided, or told by an app that had no network; UTC, the service's clock"
        ),
        **_of_contexts(trial),
        "state": Column("string", f"one of {', '.join(trial.states)}"),
        "action": Column("string", f"what was done: one of {', '.join(trial.actions)}"),
        "drawn": Column("string", "what the service has drawn; not `action` if the app has done something else"),
        "probability": Column("float64", "of `action`, given all before it; empty if it is not the one drawn"),
        **of_actions,
        "version": Column("int64", "of the model that the policy was planned with; 0 has learned nothing"),
        "source": Column("string", "of the policy: plan (certified), last plan (for this context), fixed (fallback)"),
        "cause": Column("string", "why the source is not plan; empty if it is"),
        "rules": Column("string", "rules of the trial that have changed the probabilities, with ; between them"),
        "reward": Column("float64", f"in [{low:g}, {high:g}]; empty if it never came"),
        "next_state": Column(
            "string", "as reported, or as the next decision tells; empty if unknown, or if they differ"
        ),
        "revision": Column("Int64", "of the outcome: 0 as first reported, higher for corrections; empty without one"),
        "closed": Column("string", "why the episode has ended; empty if it is under way"),
        "withdrawn": Column("bool", "whether the person has withdrawn since; models in use have not learned from them"),
    }


def _of_contexts(trial: Trial) -> dict[str, Column]:
    if trial.features is None:
        return {"context": Column("string", f"one of {', '.join(trial.labels)}")}
    return {
        f"context_{each.column}": Column("string", f"{each.column}, known are {', '.join(map(str, each.labels))}")
        if isinstance(each, Category)
        else Column("float64", f"{each.column}; empty if it is no number")
        for each in trial.features.columns
    }


def dictionary(trial: Trial, rows: int) -> str:
    """Return the data dictionary, as Markdown."""
    lines = [f"| `{name}` | {column.kind} | {column.meaning} |" for name, column in columns(trial).items()]
    head = f"# Decisions of {trial.name}\n\n{rows} rows, one for each decision. Digest of the trial: `{trial.digest}`."
    notes = "In CSV a text that a spreadsheet would take for a formula begins with an apostrophe."
    return "\n".join([head, notes, "", "| column | kind | meaning |", "|---|---|---|", *lines, ""])


def _rows(trial: Trial, found: PlayedTrial) -> Iterator[list[Any]]:
    for record in found.records.values():
        context = context_from_json(record.context)
        known = [context] if trial.features is None else [_cell(context[c.column], c) for c in trial.features.columns]
        for step, choice in sorted(record.choices.items()):
            drawn, chances = found.drawn[record.number, step]
            outcome, after = record.outcomes.get(step), record.next_state(step)
            yield [
                *(record.person, record.number, step, choice.time, *known),
                *(trial.states[choice.state], trial.actions[choice.action], trial.actions[drawn]),
                *(choice.probability, *chances),
                *(choice.version, choice.source, choice.cause, "; ".join(choice.rules)),
                None if outcome is None else outcome.reward,
                None if after is None else trial.states[after],
                None if outcome is None else max(outcome.revisions),
                *(record.closed, record.person in found.withdrawn),
            ]


def _cell(value: Any, column: Number | Category) -> Any:
    """Return an entry of a record as its column has it."""
    if isinstance(column, Category):
        return None if value is None else str(value)
    return value if isinstance(value, (int, float)) else None
