"""Logged decisions for other programs: a step of an episode is a round, with the probability of its action.

    obp    a .npz with the arrays context, action, reward, pscore, ... of Open Bandit Pipeline's `BanditFeedback`
    vw     lines action:cost:probability | features of Vowpal Wabbit's `--cb`; cost = best reward - reward

Features are the context, the state and the step. Contexts that are numbers are features; labels get one each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.tabular import Space
from omg_cmdp.validation import FloatArray


class Decisions(NamedTuple):
    """One entry for each decision, (n,); `places` says which of the different `contexts` it was made in."""

    contexts: Sequence[Context]
    places: NDArray[np.int64]
    steps: NDArray[np.int64]
    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: FloatArray
    propensities: FloatArray


def write_obp(path: Path, decisions: Decisions, space: Space) -> Path:
    """Write the arrays of Open Bandit Pipeline."""
    rounds = len(decisions.actions)
    features = [
        context_vectors(decisions.contexts)[decisions.places],
        np.eye(space.states)[decisions.states],
        np.eye(space.horizon)[decisions.steps],
    ]
    with path.open("wb") as file:  # under this very name: numpy would add an ending
        np.savez_compressed(
            file,
            allow_pickle=False,
            n_rounds=np.array(rounds),
            n_actions=np.array(space.actions),
            context=np.hstack(features),
            action=decisions.actions,
            position=np.zeros(rounds, dtype=np.int64),
            reward=decisions.rewards,
            pscore=decisions.propensities,
        )
    return path


def write_vw(path: Path, decisions: Decisions, *, best_reward: float = 1.0) -> Path:
    """Write a line of Vowpal Wabbit for each decision."""
    contexts = [_words(context) for context in decisions.contexts]
    columns = (column.tolist() for column in decisions[1:])
    with path.open("w", encoding="utf-8") as file:
        for place, step, state, action, reward, propensity in zip(*columns, strict=True):
            label = f"{action + 1}:{best_reward - reward!r}:{propensity!r}"
            file.write(f"{label} |context {contexts[place]} |state s{state} |step h{step}\n")
    return path


def _numbers(context: Context) -> FloatArray | None:
    """Return a context as features, (d,); None for a label."""
    array = np.atleast_1d(np.asarray(context))
    is_label = np.ndim(context) == 0 and array.dtype.kind != "f"
    return None if is_label or array.dtype.kind not in "biuf" else array.astype(np.float64).reshape(-1)


def context_vectors(contexts: Sequence[Context]) -> FloatArray:
    """Return the contexts as vectors, (C, d): labels become unit vectors."""
    numbers = [vector for context in contexts if (vector := _numbers(context)) is not None]
    return np.array(numbers) if len(numbers) == len(contexts) > 0 else np.eye(len(contexts))


def _words(context: Context) -> str:
    """Return a context as features of Vowpal Wabbit, in which blanks, colons and bars have a meaning."""
    numbers = _numbers(context)
    if numbers is None:
        return "c" + str(context).translate({ord(character): "_" for character in " \t\n:|"})
    return " ".join(f"x{place}:{value!r}" for place, value in enumerate(numbers.tolist()))
