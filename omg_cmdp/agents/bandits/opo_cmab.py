"""OPO-CMAB: policy optimisation with counterfactual bonuses (Levy and Mansour, arXiv 2602.13700, 2026).

Exponential weights in every context, on what the least-squares fits f̂_i of all rounds so far say, and on bonuses for
what would rarely have been played there:

    π_t(a|c) ∝ exp(η_t·Σ_{i<t} [f̂_i(c, a) + b_i(c, a)]),   b_i = min(1, β_i/(2W_i)),   W_i(c, a) = 1 + Σ_{j<i} π_j(a|c)

The paper proves Õ(√(T·A·log|F|)) for i.i.d. contexts, with an offline oracle. Known to us are its abstract and the
shape of UC³RL, by the same authors: policy optimisation, optimism by counterfactual bonuses, mirror descent with the KL
divergence. η and β, that the bonus is cut at 1 and that it is 1/W, are not certain; η_t = η₀/√t and β_t = β₀·√t.

Proven here, for every context and T rounds, whatever the fits: with gains g_i = f̂_i + b_i in [0, 2] and a constant η,

    max_a Σ g_t(a) - Σ ⟨π_t, g_t⟩ <= (log A)/η + η·T/2                    (exponential weights; Hoeffding's lemma)
    Σ_t Σ_a π_t(a)/W_t(a) <= 2A·log(1 + T)                               (W grows by at most 1, and x <= 2·log(1 + x))

so that the policies follow the hopeful rewards, and hope costs at most β_T·A·log(1 + T).

All `contexts` that may come are listed, and each has its sums: one step for each of them in every round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Unpack, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.bandits.inverse_gap import require_one_step
from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.agents.exploration import Power, Schedule, Tuned
from omg_cmdp.agents.listed import Listed, Predicted
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.episode import Trajectory
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import State, numbers
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_number

RATE = Power(3.0, -0.5)
"""η_t = 3/√t: the order of the analysis; the constant is there to be tuned."""


@final
class OPOCMAB(ModelAgent):
    """Play exponential weights on the sums of all fits so far, with bonuses for what would rarely have been played.

    `contexts` lists all that may come. `eta` is a number or a function of the episode, `scale` is β₀.
    """

    settings = ("eta", "scale", "listed")

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        eta: Tuned = RATE,
        *,
        contexts: Iterable[Context],
        scale: float = 0.03,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        require_one_step(space)
        self.eta, self.scale = Schedule(eta, "eta"), positive_number("scale", scale)
        self.listed = Listed(contexts)
        self._predicted = Predicted(self.listed, reward_oracle, (space.states, space.actions))
        self._gains, self._visits = np.zeros((2, len(self.listed), space.states, space.actions))
        self._visits += 1.0

    def decide(self, context: Context) -> Decision:
        """Return the probabilities of all actions in all states."""
        return Decision(policy=self._policies()[self.listed.place(context)][None], model=self.model(context))

    def visits(self, context: Context) -> FloatArray:
        """Return W (S, A): 1 + how often each action would have been played, had `context` come in every round."""
        return np.array(self._visits[self.listed.place(context)])

    def bonus(self, context: Context) -> FloatArray:
        """Return b (S, A)."""
        return np.array(self._bonuses()[self.listed.place(context)])

    def _bonuses(self) -> FloatArray:
        return np.minimum(1.0, self.scale * math.sqrt(self.episodes_seen + 1) / (2.0 * self._visits))

    def _policies(self) -> FloatArray:
        """Return what would be played in each context, (C, S, A)."""
        exponents = np.where(self.space.admissible, self.eta(self.episodes_seen + 1) * self._gains, -np.inf)
        weights = np.exp(exponents - exponents.max(axis=2, keepdims=True))
        return np.asarray(weights / weights.sum(axis=2, keepdims=True))

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Take a step in every context, and teach both oracles."""
        self.listed.place(trajectory.context)  # refuses one that is not listed
        played, gains = self._policies(), self._predicted.tables[:, 0] + self._bonuses()
        super()._learn(trajectory, rewards)
        self._gains, self._visits = self._gains + gains, self._visits + played

    def _learn_rewards(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach the reward oracle, whose predictions change."""
        super()._learn_rewards(trajectory, rewards)
        self._predicted.refresh()

    def _learned(self) -> dict[str, NDArray[Any]]:
        """Return what both oracles learned, and the sums of all contexts."""
        return {**super()._learned(), "gains": self._gains.copy(), "visits": self._visits.copy()}

    def _load_learned(self, state: State, episodes: int) -> None:
        gains, visits = (numbers(name, state, self._gains.shape) for name in ("gains", "visits"))
        if visits.min() < 1.0 or gains.min() < 0.0:
            raise ValueError(f"`state` must hold visits >= 1 and gains >= 0, got {visits.min()} and {gains.min()}")
        super()._load_learned(state, episodes)
        self._gains, self._visits = gains, visits
        self._predicted.refresh()
