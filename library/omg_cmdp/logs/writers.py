"""Logs as files. Three kinds hold all of a log, and `read_log` reads them back equal:

    jsonl          a line for each episode
    csv, parquet   the table, a row for each step, with `context_json` beside the columns for people and their programs

For other programs every decision is a round, with the probability of its action:

    obp    a .npz with the arrays context, action, reward, pscore, ... of Open Bandit Pipeline's `BanditFeedback`
    vw     lines action:cost:probability | features of Vowpal Wabbit's `--cb`; cost = best reward - reward

Features are the context, the state and the step. A context of numbers is a vector of features; a label is one feature.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, alike, context_numbers, context_to_json, context_vectors
from omg_cmdp.logs.lines import episode_line
from omg_cmdp.mdp.space import Space
from omg_cmdp.persistence import pack_arrays, whole_file
from omg_cmdp.records import missing
from omg_cmdp.validation import FloatArray, file_path

if TYPE_CHECKING:
    import pandas

    from omg_cmdp.logs.log import Log

FORMS = (".csv", ".parquet", ".jsonl", ".npz", ".vw")
"""The endings of files that a log can be written to."""

EXACT = "context_json"
"""The column of contexts as JSON, in brackets, so that no reader of tables takes "1" for a number or "NA" for a gap."""


def write(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` in the format that the ending of `path` says; see `Log.write`."""
    target = file_path(path)
    if target.suffix not in FORMS:
        raise ValueError(f"`path` must end in {', '.join(FORMS)}, got {os.fspath(path)!r}")
    # pandas writes in pieces; a reader must never see half a log.
    with whole_file(target) as file:
        if target.suffix == ".jsonl":
            file.write_text("".join(map(episode_line, log.episodes)), encoding="utf-8")
        elif target.suffix == ".csv":
            # All texts in quotes: without them a carriage return would end the row.
            whole_table(log, csv_cell).to_csv(file, index=False, quoting=csv.QUOTE_NONNUMERIC)
        elif target.suffix == ".parquet":
            whole_table(log, str).to_parquet(file, index=False)
        elif target.suffix == ".npz":
            write_obp(file, decisions_of(log), log.space)
        else:
            write_vw(file, decisions_of(log), best_reward=log.reward_range[1])
    return target


def whole_table(log: Log, cell: Callable[[str], str]) -> pandas.DataFrame:
    """Return `log.table()` with what it leaves out; whatever is neither number nor text there becomes a text."""
    table, episodes = log.table(), log.episodes
    for name in table.select_dtypes(exclude=["number", "bool"]):
        table[name] = [None if missing(entry) else cell(str(entry)) for entry in table[name]]
    more = {
        EXACT: [f"[{context_to_json(episode.context)}]" for episode in episodes],
        "length": [episode.length for episode in episodes],
        "total": [np.nan if episode.total is None else episode.total for episode in episodes],
    }
    return table.assign(**{name: np.repeat(np.array(values), log.steps) for name, values in more.items()})


class Decisions(NamedTuple):
    """One entry for each decision, (n,); `places` are indices into the distinct `contexts`."""

    contexts: Sequence[Context]
    places: NDArray[np.int64]
    steps: NDArray[np.int64]
    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: FloatArray
    propensities: FloatArray


def decisions_of(log: Log) -> Decisions:
    """Return the steps of `log` with a decision: those before the end of each episode."""
    propensities = log.propensities
    if propensities is None:
        raise ValueError("`log` must hold propensities for this format, got None: write .csv or .parquet")
    if np.isnan([reward for episode in log.episodes for reward in episode.rewards]).any():
        raise ValueError("`log` must hold all rewards for this format, got an unknown one: write .csv or .parquet")
    contexts, horizon = log.contexts, log.space.horizon
    groups, place = alike(contexts), np.empty(len(log), dtype=np.int64)
    for number, members in enumerate(groups):
        place[members] = number
    lengths = np.array([episode.length for episode in log.episodes], dtype=np.int64)
    decided = np.arange(horizon) < lengths[:, None]
    return Decisions(
        # Each distinct context once: features and words are made once for all its decisions.
        contexts=[contexts[members[0]] for members in groups],
        places=np.repeat(place, lengths),
        steps=np.nonzero(decided)[1],
        states=log.states[:, :-1][decided],
        actions=log.actions[decided],
        rewards=log.rewards[decided],
        propensities=propensities[decided],
    )


def write_obp(path: Path, decisions: Decisions, space: Space) -> Path:
    """Write the arrays of Open Bandit Pipeline."""
    rounds = len(decisions.actions)
    features = [
        context_vectors(decisions.contexts)[decisions.places],
        np.eye(space.states)[decisions.states],
        np.eye(space.horizon)[decisions.steps],
    ]
    arrays: dict[str, ArrayLike] = {
        "n_rounds": rounds,
        "n_actions": space.actions,
        "context": np.hstack(features),
        "action": decisions.actions,
        "position": np.zeros(rounds, dtype=np.int64),
        "reward": decisions.rewards,
        "pscore": decisions.propensities,
    }
    path.write_bytes(pack_arrays(arrays))
    return path


def write_vw(path: Path, decisions: Decisions, *, best_reward: float = 1.0) -> Path:
    """Write a line of Vowpal Wabbit for each decision."""
    contexts = [_words(context) for context in decisions.contexts]
    columns = (column.tolist() for column in decisions[1:])
    with path.open("w", encoding="utf-8") as file:
        for place, step, state, action, reward, propensity in zip(*columns, strict=True):
            # Vowpal Wabbit counts actions from 1, and has costs in the place of rewards.
            label = f"{action + 1}:{best_reward - reward!r}:{propensity!r}"
            file.write(f"{label} |context {contexts[place]} |state s{state} |step h{step}\n")
    return path


def _words(context: Context) -> str:
    """Return a context as features of Vowpal Wabbit, whose format gives blanks, colons and bars a meaning."""
    numbers = context_numbers(context)
    if numbers is None:
        # Quoted, and = before what is no text: 1 and "1" must not share a feature, nor "a b" and "a_b".
        return f"c{quote(context)}" if isinstance(context, str) else f"c={quote(context_to_json(context))}"
    return " ".join(f"x{place}:{value!r}" for place, value in enumerate(numbers.tolist()))


def csv_cell(text: str) -> str:
    """Return a text for a cell of a CSV file, which no spreadsheet takes for a formula.

    >>> csv_cell("=1+1"), csv_cell("a=1")
    ("'=1+1", 'a=1')
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
