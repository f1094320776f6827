"""Contextual bandits: rivals for a horizon of one step, and what OMG-CMDP! becomes there.

With gap(a) = max f̂ - f̂(a) over the A actions that are admissible in a state, b the best of them,

    NormalisedIGW   p(a) = 1/(λ + γ·gap(a)), Σ p = 1, λ in [1, A]     Abe and Long 1999; Foster and Rakhlin 2020
    SquareCB        p(a) = 1/(A + γ·gap(a)), the rest to b            Foster and Rakhlin, ICML 2020
    FALCON          SquareCB by epochs, with an offline oracle        Simchi-Levi and Xu, Math. Oper. Res. 2022
    FastCB          SquareCB with γ/(1 - f̂(b)) in the place of γ      Foster and Krishnamurthy, NeurIPS 2021

From one start state, NormalisedIGW is OMG-CMDP! with the same γ; from start probabilities ρ, OMG has γ·ρ(s) in state s,
because a state counts for it as much as it is visited. For every truth f*, in every episode and state,

    NormalisedIGW   max f* - ⟨p, f*⟩ <= (A - 1)/γ + (γ/4)·Σ p·(f* - f̂)²
    SquareCB        max f* - ⟨p, f*⟩ <= (A·(1 + p(b)) - 2)/γ + (γ/4)·Σ p·(f* - f̂)²

and both are attained, if f* may be any number: SquareCB can lose twice as much. (In the two steps ⟨d - p, f* - f̂⟩ <=
(1/γ)·Σ(d - p)²/p + (γ/4)·Σ p·(f* - f̂)² and Σ p·gap = (A - λ)/γ, or (A·p(b) - 1)/γ, only the first is an inequality.) So
with an online oracle both have O(√(A·T·R)) under adversarial contexts, γ of order √(A·T/R), R the oracle's regret.
FALCON has O(√(A·T·log(N·T/δ))) for i.i.d. contexts with γ_m = (1/30)·√(A·τ/log(N·τ/δ)), τ the episodes before the epoch
(the 1/30 is not certain). FastCB has O(√(L*·A·R) + A·R), L* the loss of the best policy, if the oracle's regret R is in
log loss (`LogLossRewards`) and γ = max(√(A·L*/(3R)), 10·A) (the constants are not certain).

`gamma` is a number or a function of the episode; 30·√t, if nothing is given.
"""

from __future__ import annotations

import abc
from typing import final

import numpy as np

from omg_cmdp.agents.rivals.pc_igw import inverse_gap_weights
from omg_cmdp.agents.schedule import ROOT, GammaAgent, Tuning
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.epochs import EpochRewards, epoch_starts
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray

SMALLEST_LOSS = 1e-6
"""FastCB divides by the estimated loss of the best action, or by this."""


class Bandit(GammaAgent):
    """An agent for episodes of one step. The dynamics do not matter; their oracle is there for the ledger."""

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        gamma: Tuning = ROOT,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, gamma, reward_range=reward_range)
        if space.horizon != 1:
            raise ValueError(f"`space` must have horizon 1 for a bandit, got {space.horizon}")

    @final
    def decide(self, context: Context) -> Decision:
        """Return the probabilities of all actions in all states."""
        gamma = self.gamma(self._time())
        model = self.model(context)
        return Decision(policy=self._probabilities(model, gamma)[None], model=model, gamma=gamma)

    @abc.abstractmethod
    def _probabilities(self, model: TabularMDP, gamma: float) -> FloatArray:
        """Return (S, A)."""

    def _time(self) -> int:
        """Return the t of γ_t."""
        return self.episodes_seen + 1


@final
class NormalisedIGW(Bandit):
    """Play inverse gap weighting as it is normalised best: the minimax strategy of the per-round inequality."""

    def _probabilities(self, model: TabularMDP, gamma: float) -> FloatArray:
        probabilities = np.zeros((model.states, model.actions))
        for row, gaps in zip(probabilities, action_gaps(model), strict=True):
            admissible = np.isfinite(gaps)
            row[admissible], _ = inverse_gap_weights(gamma * gaps[admissible])
        return probabilities


class SquareCB(Bandit):
    """Play inverse gap weighting as it is computed most simply."""

    def _probabilities(self, model: TabularMDP, gamma: float) -> FloatArray:
        return square_cb(gamma * action_gaps(model))


@final
class FALCON(SquareCB):
    """SquareCB by a model, and with a γ, that change only after episodes 1, 2, 4, 8, ...

    `reward_oracle` is an offline oracle, or another one that can be saved; only what it says at the beginning of an
    epoch is heard. `gamma`, if a function, is asked for the number of episodes before the epoch (1 in the first).
    """

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        gamma: Tuning = ROOT,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, gamma, reward_range=reward_range)
        self.reward_oracle = EpochRewards(reward_oracle)

    def _time(self) -> int:
        return max(1, epoch_starts(self.episodes_seen)[-1])


@final
class FastCB(Bandit):
    """SquareCB that explores the less, the smaller the loss 1 - f̂ of the best action: for worlds where one can do well.

    Its guarantee is for a reward oracle with small regret in log loss: `LogLossRewards`.
    """

    def _probabilities(self, model: TabularMDP, gamma: float) -> FloatArray:
        gaps = action_gaps(model)
        least = 1.0 - np.where(model.admissible, model.reward_steps[0], 0.0).max(axis=1, keepdims=True)
        return square_cb(gamma / np.maximum(least, SMALLEST_LOSS) * gaps)


def action_gaps(model: TabularMDP) -> FloatArray:
    """Return max f̂(s, ·) - f̂(s, a), (S, A); inf for actions that are not admissible."""
    rewards = np.where(model.admissible, model.reward_steps[0], -np.inf)
    return np.asarray(rewards.max(axis=1, keepdims=True) - rewards)


def square_cb(gaps: FloatArray) -> FloatArray:
    """Return p = 1/(A + gap), the rest to the best action, for gaps (S, A) times γ of which A in a row are finite.

    >>> square_cb(np.array([[0.0, 1.0], [2.0, 0.0], [0.0, np.inf]])).round(3)
    array([[0.667, 0.333],
           [0.25 , 0.75 ],
           [1.   , 0.   ]])
    """
    probabilities = np.asarray(1.0 / (np.isfinite(gaps).sum(axis=1, keepdims=True) + gaps))
    best = np.arange(len(gaps)), gaps.argmin(axis=1)
    probabilities[best] = 0.0
    probabilities[best] = 1.0 - probabilities.sum(axis=1)
    return probabilities
