"""Logs as files. For other programs every decision is a round, with the probability of its action:

    obp    a .npz with the arrays context, action, reward, pscore, ... of Open Bandit Pipeline's `BanditFeedback`
    vw     lines action:cost:probability | features of Vowpal Wabbit's `--cb`; cost = best reward - reward

Features are the context, the state and the step. A context of numbers is a vector of features; a label is one feature.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, alike, context_numbers, context_vectors
from omg_cmdp.mdp.space import Space
from omg_cmdp.persistence import pack_arrays, whole_file
from omg_cmdp.validation import FloatArray, file_path

if TYPE_CHECKING:
    from omg_cmdp.logs.log import Log

FORMS = (".csv", ".parquet", ".npz", ".vw")
"""The endings of files that a log can be written to."""


def write(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` in the format that the ending of `path` says; see `Log.write`."""
    target = file_path(path)
    if target.suffix not in FORMS:
        raise ValueError(f"`path` must end in {', '.join(FORMS)}, got {os.fspath(path)!r}")
    # pandas writes in pieces; a reader must never see half a log.
    with whole_file(target) as file:
        if target.suffix == ".csv":
            log.table().to_csv(file, index=False)
        elif target.suffix == ".parquet":
            log.table().to_parquet(file, index=False)
        elif target.suffix == ".npz":
            write_obp(file, decisions_of(log), log.space)
        else:
            write_vw(file, decisions_of(log), best_reward=log.reward_range[1])
    return target


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
        return "c" + str(context).translate({ord(character): "_" for character in " \t\n:|"})
    return " ".join(f"x{place}:{value!r}" for place, value in enumerate(numbers.tolist()))


def csv_cell(text: str) -> str:
    """Return a text for a cell of a CSV file, which no spreadsheet takes for a formula.

    >>> csv_cell("=1+1"), csv_cell("a=1")
    ("'=1+1", 'a=1')
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
