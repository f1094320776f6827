"""The claims of oracles: what they were charged, their regrets, and whether their classes hold the truth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import Oracle
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY
from omg_cmdp.theory.lateness import Lateness
from omg_cmdp.theory.rounds import Round
from omg_cmdp.validation import FloatArray
from omg_lab.audit.statements import Sides

NAMES = ("rewards", "dynamics")


def losses(mdp: TabularMDP, this: Round) -> tuple[float, float]:
    """Return the square loss and the log loss of the tables of `mdp` on the episode played, as oracles are charged."""
    path = this.played
    steps = np.arange(len(path.actions))
    pairs = path.states[:-1], path.actions
    means = mdp.reward_steps[steps % len(mdp.reward_steps), *pairs]
    chances = mdp.transition_steps[steps % len(mdp.transition_steps), *pairs, path.states[1:]]
    logs = -float(np.log(chances + SMALLEST_PROBABILITY).sum())
    return float(((means - path.rewards) ** 2).sum()), logs


def of_the_charges(this: Round, model: TabularMDP) -> Iterator[Sides]:
    """Yield whether the oracles were charged the loss of the model; a late outcome is charged to a later model."""
    if this.arrived != (this.episode,):
        return
    for oracle, name, own, charged in zip(this.oracles, NAMES, losses(model, this), this.charged, strict=True):
        if oracle is not None:
            yield f"charge, {name}", abs(own - charged), 0.0


class Records:
    """The oracles of one run, beside the truth."""

    def __init__(self) -> None:
        self.oracles: tuple[Any, ...] = (None, None)
        self.horizon = 0
        self.worst: list[FloatArray | None] = [None, None]
        """The largest distance of each function of a class from the truth; None: it is not known."""
        self.lateness = Lateness()
        self._met = False

    def add(self, this: Round, model: TabularMDP | None) -> None:
        """Note how far the classes of the oracles are from the truth in one episode, and which feedback arrived."""
        self.oracles, self.horizon = this.oracles, this.truth.mdp.horizon
        played = (math.nan, math.nan) if model is None else losses(model, this)
        self.lateness.add(this.episode, played, this.arrived)
        for k, oracle in enumerate(this.oracles):
            if oracle is not None:
                self._note(k, this)
        self._met = True

    def _note(self, k: int, this: Round) -> None:
        """Note the distance of each function of class `k` from the truth in this context."""
        if self._met and self.worst[k] is None:
            return
        mdp, before = this.truth.mdp, self.worst[k]
        truth = (mdp.reward_steps, mdp.transition_steps)[k]
        found = this.oracles[k].distances(this.context, truth, mdp.admissible)
        self.worst[k] = found if before is None or found is None else np.maximum(before, found)

    def proven(self, episodes: int) -> list[float]:
        """Return what the oracles prove of their regrets after a run of `episodes`, or all that they learned from."""
        return [math.inf if oracle is None else self._proven(oracle, episodes) for oracle in self.oracles]

    def _proven(self, oracle: Oracle, episodes: int) -> float:
        if self.lateness.is_late:
            delay, constant = self.lateness.delay()
            return oracle.delayed_regret_bound(episodes, self.horizon, delay, constant=constant)
        return oracle.regret_bound(episodes if oracle.episodes is None else oracle.episodes, self.horizon)

    def sides(self, episodes: int) -> Iterator[Sides]:
        """Yield the regrets of the oracles, and the distances of their classes from the truth."""
        late, proven = self.lateness, self.proven(episodes)
        for k, (oracle, name, bound, worst) in enumerate(zip(self.oracles, NAMES, proven, self.worst, strict=True)):
            if oracle is None:
                continue
            if late.is_late:  # the loss of what was played, if the oracle learned nothing but this run
                whole = oracle.episodes in (None, late.updates)
                yield f"delayed regret, {name}", late.losses[k] - oracle.best_loss() if whole else math.nan, bound
            else:
                yield f"oracle regret, {name}", oracle.loss - oracle.best_loss(), bound
            yield f"realizability, {name}", math.nan if worst is None else float(worst.min()), 0.0
