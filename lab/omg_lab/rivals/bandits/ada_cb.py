"""AdaCB: explore only where plausible functions disagree (Foster, Rakhlin, Simchi-Levi and Xu, COLT 2021).

In epoch m, which begins after τ = 1, 2, 4, ... episodes, F_m are the functions that are plausible by all data before
(`plausible.py`), f̂_m is the fit, and A_m(c) = {argmax f(c, ·): f in F_m} are the candidates. Where there is one
candidate, it is played. Elsewhere, with n candidates and b the best of them by f̂_m,

    p(a) = 1/(n + λ_m·γ_m·(f̂_m(b) - f̂_m(a))) for the candidates but b,  the rest to b.

With D_m the share of contexts with disagreement, an epoch costs D_m·A/(λγ) for exploration and λγ·err for what it does
not know: the best λ is √D_m, so that a small region is explored more. D_m is not known; here it is the share among the
episodes of the epoch before, by F_{m-1}. (The paper estimates λ_m from the contexts of both epochs, in a form that is
not certain to us, and has a second option by the width of F_m. Its γ_m and β_m are of the order of FALCON's and
RegCB's; the constants are not certain.)

The paper proves, for i.i.d. contexts and realizable finite classes, regret of order θ·A·log|F|/Δ up to logarithms, for
a gap Δ of the best action and a disagreement coefficient θ of F, and √(A·T·log|F|) at worst. Proven here: if f* is
plausible, its best action is a candidate, so that, as for SquareCB and by the same proof, with γ = λ_m·γ_m

    max f* - ⟨p, f*⟩ <= (n·(1 + p(b)) - 2)/γ + (γ/4)·Σ p·(f* - f̂)²;

and where there is one candidate, regret is zero.

Source: named in the paper of this project.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from omg_cmdp.agents.exploration.schedules import ROOT, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.combined.epochs import EpochRewards, epoch_starts
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import BoolArray, FloatArray
from omg_lab.rivals.bandits.inverse_gap import square_cb
from omg_lab.rivals.bandits.plausible import RADIUS, plausible
from omg_lab.rivals.declared import Bandit, Option, schedule


@final
class AdaCB(Bandit):
    """Play inverse gap weighting among the best actions of the plausible functions, by epochs.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        An offline oracle, or another one that can be saved.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    gamma : float, Power or function
        γ, a number or a function of the number of episodes before the epoch (1 in the first); 30·√τ by default.
    radius : float, Power or function of the same
        β, the loss by which a function may be behind the best and stay plausible; 3 by default.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import AdaCB
    >>> from omg_lab.worlds import Arms
    >>> AdaCB.for_world(Arms()).policy(0).shape
    (1, 1, 10)
    """

    gamma: Option[Tuned, Schedule] = Option(schedule, ROOT)
    radius: Option[Tuned, Schedule] = Option(schedule, RADIUS)

    usual_oracles = "offline"
    learned = ("disagreement",)

    def __post_init__(self) -> None:
        self.reward_oracle = epochs = EpochRewards(self.reward_oracle)
        super().__post_init__()
        _, self._speaker = epochs.forecasters.oracles  # what predicts in this epoch
        self._disagreement = np.array([1.0, 0.0])  # D, and the episodes of this epoch in which functions disagreed

    @property
    def disagreement(self) -> float:
        """D: the share of the last epoch's episodes in which plausible functions disagreed."""
        return float(self._disagreement[0])

    def decide(self, context: Context) -> Decision:
        """Return the probabilities of all actions in all states."""
        model, gamma = self.model(context), math.sqrt(self.disagreement) * self.gamma(self._before())
        policy = square_cb_among(self.candidates(context), model.reward_steps[0], gamma)
        return Decision(policy=policy[None], model=model, gamma=gamma)

    def candidates(self, context: Context) -> BoolArray:
        """Return (S, A): which actions are the best of a plausible function."""
        radius = self.radius(self._before())
        return plausible(self._speaker, context, radius, self.space.admissible).best

    def _before(self) -> int:
        """Return the number of episodes before the epoch, 1 in the first."""
        return max(1, epoch_starts(self.episodes_seen)[-1])

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles, and count disagreement."""
        self.model(trajectory.context)  # refuses a bad context
        disagrees = int(self.candidates(trajectory.context)[trajectory.states[0]].sum() > 1)
        super()._learn(trajectory, rewards)
        share, count = self._disagreement + np.array([0.0, disagrees])
        over = self.episodes_seen + 1
        *_, before, start = 0, *epoch_starts(over)
        if over == start:
            share, count = max(1.0, count) / (start - before), 0.0
        self._disagreement = np.array([share, count])

    def _read(self, state: State, episodes: int) -> dict[str, FloatArray]:
        arrays = super()._read(state, episodes)
        share, count = arrays["disagreement"]
        if not (0.0 < share <= 1.0 and 0.0 <= count <= episodes and count == int(count)):
            raise ValueError(f"`state` must hold a share and a number of episodes, got {share} and {count}")
        return arrays


def square_cb_among(candidates: BoolArray, rewards: FloatArray, gamma: float) -> FloatArray:
    """Return SquareCB's probabilities (S, A) among `candidates` (S, A), at least one in each state.

    >>> square_cb_among(np.array([[True, True, False]]), np.array([[0.5, 0.5, 0.9]]), 10.0)
    array([[0.5, 0.5, 0. ]])
    """
    among = np.where(candidates, rewards, -np.inf)
    return square_cb(gamma * (among.max(axis=1, keepdims=True) - among))
