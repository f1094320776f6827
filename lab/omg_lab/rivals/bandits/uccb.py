"""UCCB: optimism about policies, by counterfactual counts (Xu and Zeevi, arXiv 2007.07876, 2020).

Each of the first A rounds plays one action. From then on, with f̂_t the least-squares fit before round t,

    ã_i(c) = argmax_a f̂_i(c, a) + β_i/N_i(c, a),     N_i(c, a) = #{j < i: ã_j(c) = a},     play ã_t(c_t):

N counts how often a *would* have been played, had c come in every round. β_t = β₀·√t; the paper has
√(17·t·log(2|F|t³/δ)/A) (the constants are not certain), and proves O(√(A·T·log(|F|T/δ))) for i.i.d. contexts, for which
N(c, ·) is on average where the data are. UC³RL carries the idea to MDPs. Like that one, it fails under an adversary:
with two arms, two contexts and two functions it loses .4 in every round, whatever β₀ is (tested).

Proven here: for every context, after T rounds Σ_t 1/N_t(c, ã_t(c)) <= A·(1 + log T), as each action contributes 1 + 1/2
+ 1/3 + ...; so the bonuses that were believed sum to at most β_T·A·(1 + log T).

The paper computes ã_1(c), ..., ã_t(c) when c comes, which takes time of order t. Here all `contexts` that may come are
listed and each has its counts: one argmax for each of them in every round.

Source: named in the paper of this project.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_number
from omg_lab.rivals.declared import Bandit, Option
from omg_lab.rivals.listed import Counterfactual, opening_actions


@final
class UCCB(Counterfactual, Bandit):
    """Play the best action with a bonus for what would rarely have been played in this context.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        An offline oracle, as published, or any other.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    contexts : list
        All contexts that may come.
    scale : float
        β₀, 0.03 by default, to be tuned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import UCCB
    >>> from omg_lab.worlds import Arms
    >>> UCCB.for_world(Arms()).policy(0).shape
    (1, 1, 10)
    """

    _: dataclasses.KW_ONLY
    scale: Option[float, float] = Option(positive_number, 0.03)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._warm_up = int(self.space.admissible.sum(axis=1).max())
        self._counts = np.ones((len(self.contexts), *self.space.admissible.shape))

    def decide(self, context: Context) -> Decision:
        """Return one action in each state."""
        return Decision(policy=self._policies()[self.contexts.place(context)][None], model=self.model(context))

    def counts(self, context: Context) -> FloatArray:
        """Return N (S, A): how often each action would have been played, 1 in the first A rounds."""
        return np.array(self._counts[self.contexts.place(context)])

    def _policies(self) -> FloatArray:
        """Return what would be played in each context, (C, S, A)."""
        admissible, actions = self.space.admissible, self.space.actions
        if self.episodes_seen < self._warm_up:
            return np.tile(opening_actions(self.space, self.episodes_seen), (len(self.contexts), 1, 1))
        bonuses = self.scale * math.sqrt(self.episodes_seen + 1) / self._counts
        rewards = self._predicted(self.reward_oracle, slice(None), *admissible.shape)
        hopes = np.where(admissible, rewards[:, 0] + bonuses, -np.inf)
        return np.asarray(np.eye(actions)[hopes.argmax(axis=2)])

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles, and count a round for every context."""
        self.contexts.place(trajectory.context)  # refuses one that is not listed
        played = self._policies()
        super()._learn(trajectory, rewards)
        if self.episodes_seen >= self._warm_up:
            self._counts += played
