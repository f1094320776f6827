"""The decisions of a trial as one tidy table, and the dictionary that explains its columns."""

from __future__ import annotations

import collections
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from omg_cmdp.contexts import context_from_json
from omg_cmdp.logs.exports import csv_cell
from omg_cmdp.oracles.feature_map import Category, Number
from omg_cmdp.persistence import whole_file
from omg_cmdp.validation import file_path, instance_of
from omg_trial.episodes import Record, StepDecision, StepOutcome
from omg_trial.keys.marks import ALIAS, alias_of
from omg_trial.log.events import Event, verified
from omg_trial.state import State
from omg_trial.trial_file.between import EpisodeBudgets
from omg_trial.trial_file.trial import Trial

if TYPE_CHECKING:
    import pandas

ENDINGS = (".csv", ".parquet")


class PlayedTrial(NamedTuple):
    """Everything that was played: records by episode, what was drawn, and who has withdrawn since."""

    records: dict[int, Record]
    drawn: dict[tuple[int, int], int | None]
    """(episode, step) -> the action that was drawn."""
    withdrawn: set[str]
    erased: int
    """Number of people with an episode who were erased; their records are left out."""


def fold_played(trial: Trial, events: Iterable[Event]) -> PlayedTrial:
    """Fold the log without its withdrawals: what was played stays played."""
    instance_of("trial", trial, Trial)
    state, drawn, withdrawn, erased = State(trial.missing_reward), {}, set[str](), set[str]()
    left = {"withdrawn": withdrawn, "erased": erased}
    for event in verified(events):
        if event.kind in left:
            left[event.kind].add(event.body["person"])
            continue
        if event.kind == "decided":
            drawn[event.body["episode"], event.body["step"]] = event.body["drawn"]
        state.apply(event)

    def is_erased(person: str) -> bool:  # an older key file may still have their key
        return person.startswith(ALIAS) or alias_of(state.secret, person) in erased

    gone = {person for person in state.of_person if is_erased(person)}
    kept = {number: record for number, record in state.episodes.items() if record.person not in gone}
    return PlayedTrial(kept, drawn, {each for each in withdrawn if not is_erased(each)}, len(gone))


def decisions(trial: Trial, events: Iterable[Event], *, withdrawn: bool = False) -> pandas.DataFrame:
    """Return a table with a row for every decision, in the order of episodes and steps.

    Parameters
    ----------
    trial : Trial
        The trial that the log is of.
    events : iterable of Event
        All events from the first on.
    withdrawn : bool, default False
        Whether decisions for people who have withdrawn are there too. Those of people who were erased never are.

    Examples
    --------
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE
    >>> desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"))
    >>> answer = desk.call("open", {"person": "p1", "context": "alone"})
    >>> answer = desk.call("decide", {"episode": 3, "step": 0, "state": "took it"})
    >>> table = decisions(desk.trial, desk.store.read())
    >>> table[["person", "step", "state", "source"]].values.tolist()
    [['p1', 0, 'took it', 'plan']]
    """
    return _table(trial, fold_played(trial, events), withdrawn)


def _table(trial: Trial, found: PlayedTrial, withdrawn: bool) -> pandas.DataFrame:
    import pandas

    described = columns(trial)
    shown = [row for row in _rows(found) if withdrawn or not row.withdrawn]
    rows = [[column.entry(row) for column in described.values()] for row in shown]
    frame = pandas.DataFrame(rows, columns=list(described))
    return frame.astype({name: column.kind for name, column in described.items()})


def write_decisions(
    trial: Trial, events: Iterable[Event], path: str | os.PathLike[str], *, withdrawn: bool = False
) -> list[Path]:
    """Write the table of `decisions` and a data dictionary beside it; return both paths.

    Parameters
    ----------
    trial, events, withdrawn
        As in `decisions`.
    path : path
        Ends with .csv or .parquet; the dictionary has the same name with .md.

    Examples
    --------
    >>> import tempfile
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE
    >>> desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [each.name for each in write_decisions(desk.trial, desk.store.read(), f"{folder}/table.csv")]
    ['table.csv', 'table.md']
    """
    found = fold_played(trial, events)
    frame, left = _table(trial, found, withdrawn), 0 if withdrawn else len(found.withdrawn)
    target = write_table(frame, path)
    with whole_file(target.with_suffix(".md")) as file:
        file.write_text(dictionary(trial, len(frame), left, found.erased), encoding="utf-8")
    return [target, target.with_suffix(".md")]


def write_table(frame: pandas.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a table whose name ends with .csv or .parquet; return its path."""
    target = file_path(path)
    if target.suffix not in ENDINGS:
        raise ValueError(f"`path` must end with {' or '.join(ENDINGS)}, got {target.name!r}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as file:
        if target.suffix == ".csv":
            safe = {name: frame[name].map(csv_cell, na_action="ignore") for name in frame.select_dtypes("string")}
            # With both characters in the end of a line, a text that has one of them is quoted, and splits no row.
            frame.assign(**safe).to_csv(file, index=False, lineterminator="\r\n")
        else:
            frame.to_parquet(file, index=False)
    return target


class DecisionRow(NamedTuple):
    """A decision, with everything that its row is made of."""

    record: Record
    step: int
    choice: StepDecision
    outcome: StepOutcome
    drawn: int | None
    withdrawn: bool
    abandoned: int


class Column(NamedTuple):
    """A column of the table: the kind of its entries, what they mean, and how each follows from a decision."""

    kind: str
    meaning: str
    entry: Callable[[DecisionRow], Any]


def columns(trial: Trial) -> dict[str, Column]:
    """Return the columns of the table, by name."""
    states, actions, (low, high) = trial.states, trial.actions, trial.reward_range
    text, number, count = (functools.partial(Column, kind) for kind in ("string", "float64", "int64"))

    def state_after(row: DecisionRow) -> str | None:
        after = row.record.next_state(row.step)
        return None if after is None else states[after]

    def revision(row: DecisionRow) -> int | None:
        highest = max(row.outcome.revisions)
        return None if highest < 0 else highest

    return {
        "person": text("name of the person, as the app gave it", lambda row: row.record.person),
        "episode": count("number of the event with which the episode was opened", lambda row: row.record.number),
        "occasion": text(
            "name of the decision point; a number with # if the app gave none", lambda row: row.record.occasion
        ),
        "step": count(f"number of the decision in its episode, 0 to {trial.space.horizon - 1}", lambda row: row.step),
        "time": text("of the decision, or of its report by an app without a network; UTC", lambda row: row.choice.time),
        "local_time": text("of the decision, by the person's own clock", lambda row: row.choice.local),
        "drift": number("seconds by which the clock of the device was ahead", lambda row: row.choice.drift),
        "arm": text("learning or control", lambda row: row.record.arm),
        **_context_columns(trial),
        "state": text(f"one of {', '.join(states)}", lambda row: states[row.choice.state]),
        "action": text(f"what was done: one of {', '.join(actions)}", lambda row: trial.action_name(row.choice.action)),
        "drawn": text("what was drawn; empty if nothing was", lambda row: trial.action_name(row.drawn)),
        "available": Column("bool", "whether there was something to draw", lambda row: row.choice.available),
        "closed_actions": text(
            "actions that a rule closed, with ; between",
            lambda row: "; ".join(actions[each] for each in row.choice.closed),
        ),
        "probability": number("of `action`, given all before; empty if not drawn", lambda row: row.choice.probability),
        **{f"probability_{name}": _chance_column(place, name) for place, name in enumerate(actions)},
        **{f"expected_{name}": _cost_column(trial.budgets, place) for place, name in enumerate(trial.budgets.names)},
        "version": count("of the model; 0 has learned nothing", lambda row: row.choice.version),
        "source": text("of the policy: plan (certified), last plan, fixed, control", lambda row: row.choice.source),
        "cause": text("why the source is not plan; empty if it is", lambda row: row.choice.cause),
        "rules": text("that have changed the probabilities, with ; between", lambda row: "; ".join(row.choice.rules)),
        "reward": number(f"in [{low:g}, {high:g}]; empty if it never came", lambda row: row.outcome.reward),
        "next_state": text("as reported, or as the next decision tells; empty if unknown or in doubt", state_after),
        "revision": Column("Int64", "of the outcome; higher for corrections", revision),
        "closed": text("why the episode has ended; empty if it is under way", lambda row: row.record.closed),
        "abandoned": count(
            "openings of the person just before this one in which nothing was decided", lambda row: row.abandoned
        ),
        "withdrawn": Column("bool", "whether the person has withdrawn since", lambda row: row.withdrawn),
    }


def _draw_column(meaning: str, number: Callable[[StepDecision], float]) -> Column:
    """Return a column that is empty where nothing was drawn."""
    return Column("float64", meaning, lambda row: number(row.choice) if row.choice.probabilities else None)


def _chance_column(place: int, name: str) -> Column:
    return _draw_column(f"with which {name} was drawn", lambda choice: choice.probabilities[place])


def _cost_column(budgets: EpisodeBudgets, place: int) -> Column:
    """Return the column of what the decision was to cost."""
    meaning = f"expected {budgets.names[place]}, by all probabilities; an episode may have {budgets.most[place]:g}"
    return _draw_column(meaning, lambda made: float(budgets.expected(made.state, made.probabilities)[place]))


def _context_columns(trial: Trial) -> dict[str, Column]:
    if trial.features is None:
        rule = f"one of {', '.join(trial.labels)}"
        return {"context": Column("string", rule, lambda row: context_from_json(row.record.context))}
    return {f"context_{each.column}": _context_column(trial, each) for each in trial.features.columns}


def _context_column(trial: Trial, column: Number | Category) -> Column:
    """Return the column of an entry of the record, as the model has it."""

    def entry(row: DecisionRow) -> Any:
        context: Any = trial.context(row.record.context)
        return context[column.column]

    if isinstance(column, Number):
        return Column("float64", f"{column.column}; empty if it is no number", entry)
    known = f"{column.column}, known are {', '.join(map(str, column.labels))}"
    return Column("string", known, lambda row: column.label(entry(row)))


def dictionary(trial: Trial, rows: int, withdrawn: int = 0, erased: int = 0) -> str:
    """Return the data dictionary, as Markdown; it says how many people are left out."""
    lines = [f"| `{name}` | {column.kind} | {column.meaning} |" for name, column in columns(trial).items()]
    head = f"# Decisions of {trial.name}\n\n{rows} rows, one for each decision. Digest of the trial: `{trial.digest}`."
    notes = "In CSV a text that a spreadsheet would take for a formula begins with an apostrophe."
    gone = f"Left out: {withdrawn} people who have withdrawn, and {erased} who were erased."
    return "\n".join([head, gone, notes, "", "| column | kind | meaning |", "|---|---|---|", *lines, ""])


def _rows(found: PlayedTrial) -> Iterator[DecisionRow]:
    abandoned: collections.Counter[str] = collections.Counter()
    for record in found.records.values():
        before = abandoned[record.person]
        abandoned[record.person] = 0 if record.choices else before + 1
        for step in record.steps():
            yield DecisionRow(*step, found.drawn[record.number, step.number], record.person in found.withdrawn, before)
