"""OptPrimalDual-CMDP (Efroni, Mannor and Pirotta, 2020): a step in the policy and a step in the prices an episode.

For each cell of contexts, with Q^f and Q^c_j the values of the present policy for f̂ + β and c_j - β·|c_j| in P̂, β as
for UCBVI, clipped to what steps can earn and cost:

    π_h(a|s) ∝ π_h(a|s)·exp(η_t·(Q^f_h - Σ_j λ_j·Q^c_j,h)),     λ_j <- max(0, λ_j + η'_t·(V^c_j - b_j))

Regret and violation are of order √T for a single MDP, and violations of some episodes may make up for others: weaker
than what the linear program has.

Source: the paper's abstract, and how its steps are usually written; no constant is confirmed. Both steps are arguments.
"""

from __future__ import annotations

import dataclasses
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.exploration.schedules import Power, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.budgets.limited import Limited, Notes
from omg_lab.rivals.declared import Option, schedule
from omg_lab.rivals.ucbvi import Hoeffding


@final
class OptPrimalDual(Limited, Hoeffding):
    """Optimistic mirror ascent in the policy, and dual ascent in the prices.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    cover : Cover
        Which contexts share a cell: `Blind()`, `PerContext()` or `PerBall(radius)`.
    scale, delta : float
        The constant of the bonus, to be tuned, and the probability with which it may fail; as for `OptCMDP`.
    policy_step, price_step : float, Power or function of the episode
        η and η', to be tuned; 1 and 1/√t by default.
    costs, budgets
        As for `OMG`; required.
    known_rewards, known_transitions : function, optional
        From a context to the true tables, (S, A) and (S, A, S), where they are known; by default both are learned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import OptPrimalDual
    >>> from omg_lab.worlds import Reminders
    >>> OptPrimalDual.for_world(Reminders()).policy(0)[0, 0].round(3)
    array([0.333, 0.333, 0.333])
    """

    _: dataclasses.KW_ONLY
    policy_step: Option[Tuned, Schedule] = Option(schedule, 1.0)
    price_step: Option[Tuned, Schedule] = Option(schedule, Power(1.0, -0.5))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._shape = self.space.horizon, self.space.states, self.space.actions
        self._notes = Notes(int(np.prod(self._shape)))

    def decide(self, context: Context) -> Decision:
        """Return the present policy of the cell, uniform at first."""
        limits, model = self.limits(context), self.model(context)
        prices, logits = self._notes.read(self.cover.cell(context), limits.limits.size)
        return Decision(policy=self._policy(logits), model=model, limits=limits, prices=prices / limits.scales)

    def _policy(self, logits: FloatArray) -> FloatArray:
        table = np.where(self.space.admissible, logits.reshape(self._shape), -np.inf)
        powers = np.exp(table - table.max(axis=2, keepdims=True))
        return np.asarray(powers / powers.sum(axis=2, keepdims=True))

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        super()._learn(trajectory, rewards)
        limits, cell = self.limits(trajectory.context), self.cover.cell(trajectory.context)
        prices, logits = self._notes.read(cell, limits.limits.size)
        tally = self.tally(trajectory.context)
        model, policy = self._model(tally, trajectory.context), self._policy(logits)
        bonus = self.bonus(tally.counts.sum(axis=2))
        gains, _ = _evaluate(model, policy, model.reward_steps + bonus, 0.0, 1.0)
        for j, costs in enumerate(limits.costs):
            largest = float(np.abs(costs).max())
            priced, spent = _evaluate(model, policy, costs - bonus * largest, min(0.0, float(costs.min())), largest)
            gains = gains - prices[j] * priced
            prices[j] = max(0.0, prices[j] + self.price_step(self.episodes_seen + 1) * (spent - limits.limits[j]))
        self._notes.write(cell, prices, logits + self.policy_step(self.episodes_seen + 1) * gains.ravel())

    def _learned(self) -> dict[str, NDArray[Any]]:
        return {**super()._learned(), **self._notes.state()}

    def _load_learned(self, state: State, episodes: int) -> None:
        notes = Notes(int(np.prod(self._shape)))
        notes.load_state(state)
        super()._load_learned(state, episodes)
        self._notes = notes


def _evaluate(
    model: TabularMDP, policy: FloatArray, earned: FloatArray, low: float, high: float
) -> tuple[FloatArray, float]:
    """Return Q (H, S, A) of `policy` for `earned` (K, S, A) and its value; steps are worth between `low` and `high`."""
    horizon, value = model.horizon, np.zeros(model.states)
    values = np.zeros(policy.shape)
    for h in reversed(range(horizon)):
        following = np.where(model.admissible, earned[h % len(earned)] + model.transitions @ value, 0.0)
        values[h] = np.clip(following, (horizon - h) * low, (horizon - h) * high)
        value = (policy[h] * values[h]).sum(axis=1)
    return values, float(model.start @ value)
