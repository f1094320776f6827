"""Lagrangian greedy: the optimum of the model for r - λ·c, and prices that follow what episodes have cost.

    λ_j <- max(0, λ_j + η_t·(what the episode has cost - b_j)),   one λ for each cell of contexts

Policies are deterministic, so that a budget is kept on average over episodes, if at all, and passed in about every
other one. No exploration and no guarantee.

Source: the usual dual ascent of constrained reinforcement learning, as in the introduction of Liu, Zhou, Kalathil,
Kumar and Tian (2021), which was read, and its references.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.exploration.schedules import Power, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.budgets.limited import Limited, Notes
from omg_lab.rivals.cells import own_cover
from omg_lab.rivals.covers import Cover, PerContext
from omg_lab.rivals.declared import ModelRival, Option, schedule


@final
class LagrangianGreedy(Limited, ModelRival):
    """Play the optimum of the model for rewards less priced costs, with prices by dual ascent.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Any two oracles; the model of a context is what they predict.
    step : float, Power or function of the episode
        η; 1/√t by default, to be tuned.
    cover : Cover
        Which contexts share prices; `PerContext()` by default.
    costs, budgets
        As for `OMG`; required.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import LagrangianGreedy
    >>> from omg_lab.worlds import Reminders
    >>> LagrangianGreedy.for_world(Reminders()).policy(0).shape
    (7, 6, 3)
    """

    step: Option[Tuned, Schedule] = Option(schedule, Power(1.0, -0.5))
    cover: Option[Cover, Cover] = Option(own_cover, PerContext())

    def __post_init__(self) -> None:
        super().__post_init__()
        self._notes = Notes()

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, optimal at the present prices."""
        model, limits = self.model(context), self.limits(context)
        prices, _ = self._notes.read(self.cover.cell(context), limits.limits.size)
        policy, _ = best_response(model, model.raw[1] - np.tensordot(prices, limits.costs, 1))
        return Decision(policy=policy, model=model, limits=limits, prices=prices / limits.scales)

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        super()._learn(trajectory, rewards)
        limits, cell = self.limits(trajectory.context), self.cover.open(trajectory.context)
        steps = np.arange(len(trajectory.actions)) % limits.costs.shape[1]
        spent = limits.costs[:, steps, trajectory.states[: len(steps)], trajectory.actions].sum(axis=1)
        prices, others = self._notes.read(cell, spent.size)
        rise = self.step(self.episodes_seen + 1) * (spent - limits.limits)
        self._notes.write(cell, np.maximum(prices + rise, 0.0), others)

    def _learned(self) -> dict[str, NDArray[Any]]:
        return {**super()._learned(), **self._notes.state(), **self.cover.state()}

    def _load_learned(self, state: State, episodes: int) -> None:
        notes, cover = Notes(), own_cover("cover", self.cover)
        notes.load_state(state)
        cover.load_state(state)
        super()._load_learned(state, episodes)
        self._notes, self.cover = notes, cover
