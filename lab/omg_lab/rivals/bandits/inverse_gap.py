"""Contextual bandits: rivals for a horizon of one step, and what OMG-CMDP! becomes there.

With gap(a) = max f̂ - f̂(a) over the A actions that are admissible in a state, b the best of them,

    SquareCB   p(a) = 1/(A + γ·gap(a)), the rest to b            Foster and Rakhlin, ICML 2020
    FALCON     SquareCB by epochs, with an offline oracle        Simchi-Levi and Xu, Math. Oper. Res. 2022
    FastCB     SquareCB with γ/(1 - f̂(b)) in the place of γ      Foster and Krishnamurthy, NeurIPS 2021

From one start state, OMG-CMDP! with the same γ has the normalised form (Abe and Long 1999), p(a) = 1/(λ + γ·gap(a)),
Σ p = 1, λ in [1, A]; from start probabilities ρ it has γ·ρ(s) in state s, because a state counts as much as it is
visited. For every truth f*, in every episode and state,

    OMG-CMDP!  max f* - ⟨p, f*⟩ <= (A - 1)/γ + (γ/4)·Σ p·(f* - f̂)²
    SquareCB   max f* - ⟨p, f*⟩ <= (A·(1 + p(b)) - 2)/γ + (γ/4)·Σ p·(f* - f̂)²

and both are attained, if f* may be any number: SquareCB can lose twice as much. (In the two steps ⟨d - p, f* - f̂⟩ <=
(1/γ)·Σ(d - p)²/p + (γ/4)·Σ p·(f* - f̂)² and Σ p·gap = (A - λ)/γ, or (A·p(b) - 1)/γ, only the first is an inequality.) So
with an online oracle both have O(√(A·T·R)) under adversarial contexts, γ of order √(A·T/R), R the oracle's regret.
FALCON has O(√(A·T·log(N·T/δ))) for i.i.d. contexts with γ_m = (1/30)·√(A·τ/log(N·τ/δ)), τ the episodes before the epoch
(the 1/30 is not certain): its p solves the program of ILTCB for the regrets of the fit, Σ p·gap <= (A - 1)/γ and
E_c 1/p(π(c)|c) <= A + γ·E_c gap(π(c)) for every policy π, as 1/p is A + γ·gap, and at most A at b. FastCB has
O(√(L*·A·R) + A·R), L* the loss of the best policy, if the oracle's regret R is in log loss (`LogLossRewards`) and γ =
max(√(A·L*/(3R)), 10·A) (the constants are not certain). It follows from an inequality that is tested, not proven, here,
its numbers from notes: with losses l = 1 - f*, l̂ = 1 - f̂ and γ >= 2A,

    ⟨p, l⟩ - min l <= (5A/γ)·⟨p, l⟩ + 7γ·Σ p·(l - l̂)²/(l + l̂).

`gamma` is a number or a function of the episode; 30·√t, if nothing is given.

Source: named in the paper of this project; pseudo-code in the project's theory notes (§7).
"""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.agents.exploration.schedules import ROOT, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.combined.epochs import EpochRewards, epoch_starts
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.declared import Bandit, Option, schedule

SMALLEST_LOSS = 1e-6
"""FastCB divides by the estimated loss of the best action, or by this if that is smaller."""


class _InverseGap(Bandit):
    """A bandit that plays by the gaps of its model, and by γ; the oracle of dynamics is there for the ledger."""

    gamma: Option[Tuned, Schedule] = Option(schedule, ROOT)

    def decide(self, context: Context) -> Decision:
        """Return the probabilities of all actions in all states."""
        gamma, model = self.gamma(self._time()), self.model(context)
        return Decision(
            policy=self._probabilities(model, gamma).reshape(1, *model.admissible.shape), model=model, gamma=gamma
        )

    def _time(self) -> int:
        """Return the episode for which γ is asked."""
        return self.episodes_seen + 1

    def _probabilities(self, model: TabularMDP, gamma: float) -> FloatArray:
        """Return p(a) = 1/(A + γ·gap(a)) in every state, the rest to the best action."""
        return square_cb(gamma * action_gaps(model))


@final
class SquareCB(_InverseGap):
    """Play inverse gap weighting in its simplest form.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        An online oracle.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    gamma : float, Power or function
        γ, a number or a function of the episode; 30·√t by default, to be tuned.
    reward_range, return_range
        As for every `Learner`.

    >>> import numpy as np
    >>> import omg_cmdp as omg
    >>> from omg_lab.rivals import SquareCB
    >>> rewards = omg.oracles.FiniteRewards(lambda context: np.array([[[0.2, 0.8]], [[0.6, 0.4]]]), horizon=1)
    >>> dynamics = omg.oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=1)
    >>> SquareCB(omg.Space(states=1, actions=2, horizon=1), rewards, dynamics, 10.0).policy("anyone").round(2)
    array([[[0.27, 0.73]]])
    """


@final
class FALCON(_InverseGap):
    """SquareCB with a model and a γ that change only after episodes 1, 2, 4, 8, ...

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        An offline oracle, or another one that can be saved; its prediction at the beginning of an epoch is used.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    gamma : float, Power or function
        γ, a number or a function of the number of episodes before the epoch (1 in the first); 30·√τ by default.
    reward_range, return_range
        As for every `Learner`.

    >>> import numpy as np
    >>> import omg_cmdp as omg
    >>> from omg_lab.rivals import FALCON
    >>> rewards = omg.oracles.OfflineFiniteRewards(lambda context: np.array([[[0.2, 0.8]], [[0.6, 0.4]]]), horizon=1)
    >>> dynamics = omg.oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=1)
    >>> FALCON(omg.Space(states=1, actions=2, horizon=1), rewards, dynamics, 10.0).policy("anyone").round(2)
    array([[[0.12, 0.88]]])
    """

    usual_oracles = "offline"

    def __post_init__(self) -> None:
        self.reward_oracle = EpochRewards(self.reward_oracle)
        super().__post_init__()

    def _time(self) -> int:
        return max(1, epoch_starts(self.episodes_seen)[-1])


@final
class FastCB(_InverseGap):
    """SquareCB that explores less, the smaller the loss 1 - f̂ of the best action: for worlds where one can do well.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        An oracle with small regret in log loss, for which the guarantee is: `LogLossRewards`.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    gamma : float, Power or function
        γ, a number or a function of the episode; 30·√t by default, to be tuned.
    reward_range, return_range
        As for every `Learner`.

    >>> import numpy as np
    >>> import omg_cmdp as omg
    >>> from omg_lab.rivals import FastCB
    >>> rewards = omg.oracles.LogLossRewards(lambda context: np.array([[[0.2, 0.8]], [[0.6, 0.4]]]), horizon=1)
    >>> dynamics = omg.oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=1)
    >>> FastCB(omg.Space(states=1, actions=2, horizon=1), rewards, dynamics, 10.0).policy("anyone").round(2)
    array([[[0.14, 0.86]]])
    """

    usual_oracles = "log_loss"

    def _probabilities(self, model: TabularMDP, gamma: float) -> FloatArray:
        """Return SquareCB's probabilities with γ divided by the least loss."""
        least = 1.0 - np.where(model.admissible, model.reward_steps[0], 0.0).max(axis=1, keepdims=True)
        return square_cb(gamma / np.maximum(least, SMALLEST_LOSS) * action_gaps(model))


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
