"""A report on encoders: how many cells are enough, answered from steps alone, before any agent has played.

*Information*. Each encoder is fitted to the episodes of all folds but one, and so are counts for each context, cell and
action, with ½ added as in `CountDynamics`; on the fold left out,

    information = mean log P̂(next cell | context, cell, action)/P̂(next cell), and the same for the reward,

in nats per step: the held-out log loss, in comparison with what is known without looking. A cell is a function of the
observation, so that no encoder can expect more than the observation tells (the data-processing inequality), which makes
encoders with different cells comparable. (The log loss itself is not: it grows with the number of cells, whatever they
are.) Too few cells tell little; too many cannot be learned from the steps. So give about as many steps, for each
context, as the agent will have. What is chosen is the encoder with the fewest cells within one standard error of the
best, a standard error of the difference, over episodes.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, final

import numpy as np

from omg_cmdp.environments.encoders.base import Encoder
from omg_cmdp.environments.encoders.steps import IntArray, Steps
from omg_cmdp.validation import BoolArray, FloatArray, instance_of, listed, seed_number

if TYPE_CHECKING:
    import pandas

FOLDS = 3
REWARD_LEVELS = 10
"""Rewards of more values are counted by deciles."""


@final
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class EncodingReport:
    """The findings of `encoding_report`; as text, a table and a sentence.

    Parameters
    ----------
    table : pandas.DataFrame
        A row for each encoder: cells, held-out log losses, information, its distance to the best.
    choice : Encoder
        The encoder with the fewest cells that is as good as the best, fitted to all steps.

    Examples
    --------
    >>> import pandas
    >>> from omg_cmdp.environments import Bins
    >>> row = {"encoder": "Bins(2)", "information": 0.5, "chosen": True}
    >>> print(str(EncodingReport(table=pandas.DataFrame([row]), choice=Bins(2))).splitlines()[-1])
    Chosen: Bins(2). It tells 0.50 nats of next cell and reward.
    """

    table: pandas.DataFrame
    choice: Encoder

    def __str__(self) -> str:
        rows = self.table.round(3).to_string(index=False)
        chosen = self.table[self.table["chosen"]].iloc[0]
        return (
            f"{rows}\nChosen: {chosen['encoder']}. It tells {chosen['information']:.2f} nats of next cell and reward."
        )


def encoding_report(encoders: Iterable[Encoder], steps: Steps, *, seed: int = 0) -> EncodingReport:
    """Compare encoders by what they tell about the next cell and reward, and choose one.

    Compare numbers of cells of one kind: an encoder of another kind may tell more about what has no bearing on the
    rewards. The module says how information is measured.

    Parameters
    ----------
    encoders : iterable of Encoder
        The candidates. Copies of them are fitted.
    steps : Steps
        At least six episodes, with about as many steps for each context as the agent will have.
    seed : int, default 0
        The seed of the folds.

    Returns
    -------
    EncodingReport
        A `table` with a row for each encoder, and the `choice`: the encoder with the fewest cells that is as good as
        the best, fitted to all steps.

    Examples
    --------
    >>> from omg_cmdp.environments import Bins
    >>> generator = np.random.default_rng(0)
    >>> places = generator.random((400, 1))
    >>> steps = Steps(observations=places, next_observations=generator.random((400, 1)), rewards=places[:, 0] > 0.5,
    ...     terminated=np.zeros(400, dtype=bool), actions=np.zeros(400, dtype=int), episodes=np.arange(400) // 4,
    ...     contexts=np.zeros(400, dtype=int))
    >>> encoding_report([Bins(1), Bins(2), Bins(16)], steps).choice
    Bins(2, strategy='quantile')
    """
    import pandas

    given = listed("encoders", encoders)
    for encoder in given:
        instance_of("encoders", encoder, Encoder)
    if not given:
        raise ValueError("`encoders` must hold at least one, got none")
    instance_of("steps", steps, Steps)
    # Fitting changes an encoder, and the caller's may be in use.
    candidates = copy.deepcopy(given)
    episodes = np.unique(steps.episodes, return_inverse=True)[1]
    if episodes.max() + 1 < 2 * FOLDS:
        raise ValueError(f"`steps` must hold at least {2 * FOLDS} episodes, got {episodes.max() + 1}")
    generator, levels = np.random.default_rng(seed_number(seed)), _levels(steps.rewards)
    folds = generator.permutation(np.arange(episodes.max() + 1) % FOLDS)[episodes]  # drawn: contexts may come in turn
    rows, told = [], []
    for encoder in candidates:
        losses = np.zeros((4, len(steps)))
        for fold in range(FOLDS):
            held = folds == fold
            encoder.fit(steps.where(~held))
            before, following = _cells(encoder, steps)
            losses[:2, held] = _log_losses(before, following, held)
            losses[2:, held] = _log_losses(before, levels, held)
        told.append(losses[1] - losses[0] + losses[3] - losses[2])
        rows.append(
            {
                "encoder": repr(encoder),
                "cells": encoder.fit(steps).cells,
                "next_cell_loss": losses[0].mean(),
                "reward_loss": losses[2].mean(),
                "information": told[-1].mean(),
            }
        )
    best = max(range(len(candidates)), key=lambda k: float(told[k].mean()))
    lost = [_mean_and_error(told[best] - each, episodes) for each in told]
    # One standard error, as for the pruning of trees (Breiman et al., 1984): the simplest that is hardly worse.
    as_good = [k for k, (mean, error) in enumerate(lost) if mean <= error]
    chosen = min(as_good, key=lambda k: (rows[k]["cells"], k))
    table = pandas.DataFrame(rows).assign(
        below_best=[mean for mean, _ in lost],
        error=[error for _, error in lost],
        chosen=[k == chosen for k in range(len(candidates))],
    )
    return EncodingReport(table=table, choice=candidates[chosen])


def _cells(encoder: Encoder, steps: Steps) -> tuple[IntArray, IntArray]:
    """Return the number of context, cell and action of each step, and the cell that follows, the last for the end."""
    sizes = int(steps.contexts.max()) + 1, encoder.cells, int(steps.actions.max()) + 1
    before, following = encoder.encode_steps(steps)
    return np.asarray(np.ravel_multi_index((steps.contexts, before, steps.actions), sizes)), following


def _levels(rewards: FloatArray) -> IntArray:
    values, codes = np.unique(rewards, return_inverse=True)
    if len(values) <= REWARD_LEVELS:
        return np.asarray(codes)
    return np.searchsorted(np.quantile(rewards, np.arange(1, REWARD_LEVELS) / REWARD_LEVELS), rewards, side="right")


def _log_losses(before: IntArray, outcome: IntArray, held: BoolArray) -> FloatArray:
    """Return the log losses (2, n) of the held steps: of counts for each `before`, and of counts for all together."""
    outcomes = int(outcome.max()) + 1
    # ½ each, as `CountDynamics` begins: what an agent with such cells would predict.
    counts = np.full((int(before.max()) + 1, outcomes), 0.5)
    np.add.at(counts, (before[~held], outcome[~held]), 1.0)
    known = counts[before[held], outcome[held]] / counts.sum(axis=1)[before[held]]
    without = np.bincount(outcome[~held], minlength=outcomes) + 0.5
    return -np.log([known, (without / without.sum())[outcome[held]]])


def _mean_and_error(values: FloatArray, episodes: IntArray) -> tuple[float, float]:
    """Return the mean over steps and its standard error, where episodes are independent."""
    mean = float(values.mean())
    sums = np.bincount(episodes, values - mean)
    return mean, float(np.sqrt((sums**2).sum()) / len(values))
