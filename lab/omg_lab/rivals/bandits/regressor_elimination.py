"""Regressor Elimination: play the policies of all plausible functions, evenly enough to tell them apart.

Agarwal, Dudík, Kale, Langford and Schapire, AISTATS 2012 ("Contextual bandit learning with predictable rewards"). Of N
functions F_t are left; π_f is the greedy policy of f, and A_t(c) = {π_f(c): f in F_t}. Find weights P on F_t with

    V(f) = E_c 1/P'(π_f(c)|c) <= E_c |A_t(c)| for every f in F_t,    P' = (1 - Kμ)·P + Kμ/|A_t(c)| on A_t(c),    (1)

P(a|c) the weight of the f with π_f(c) = a, and K the largest |A_t|. Play P', and drop the f whose loss Σ (f - r)² is
more than β above the least of those left, for ever. RegCB has the same functions, and no P: it needs assumptions.

The paper proves O(√(K·T·log(N·T/δ))) for i.i.d. contexts, that no algorithm does better in the worst case, and that for
every set of policies there are rewards at which its regret is constant in T. From notes, not certain, are its β, of
order 18·log(N·t/δ), and μ = min(1/(2K), 1/√T). It knows the distribution of contexts: here those of the list, equally
likely. (1) is solved to a factor ρ = 1.1, when the set or μ changes: at most N + log₂ T times.

Proven here. *Solving (1).* Begin with equal weights, and k times multiply each by V(f) and normalise; return the mean
of the k weights that were used. Then V(f) <= N^(1/k)·E|A|. For Σ P·V = (E|A| - Kμ·E[mean of 1/P' on A])/(1 - Kμ) is at
most E|A|, since a mean of 1/P' is at least |A|. A weight is at most 1, so that the logarithms of V(f)/ΣP·V sum to at
most log N; and log V is convex in the weights, being that of a sum of inverses of linear functions.

*Regret.* While f* is left, every f that is left after t rounds has

    t·(E f*(π*) - E f*(π_f)) <= 2·√(ρ·K·t·Σ_{s<=t} e_s(f)),    e_s(f) = E_c Σ_a P'_s(a)·(f - f*)²,

because it is at most E|f - f*| at π* and at π_f, each of which is at most √(V_s·e_s(f)) by Cauchy and Schwarz, in every
round s. With β >= ½·log(N/δ) f* stays (`plausible.py`), and by the proof in `erm_reduction.py`, for H = 1, Σ e_s(f) <=
(2·log(N/δ) + β)/(1 - e^(-1/2)) =: D for all of them, each with probability 1 - δ. So the expected regret of T rounds is
at most 1 + 4·√(ρ·K·D·T) and Kμ a round, of order √(K·T·log(N/δ)); it is zero for ever once one function is left.

Source: named in the paper of this project.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.exploration.schedules import Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import DynamicsOracle
from omg_cmdp.oracles.combined.epochs import epoch_starts
from omg_cmdp.oracles.finite.aggregating import FiniteRewards
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import BoolArray, FloatArray
from omg_lab.rivals.bandits.iltcb import action_shares
from omg_lab.rivals.bandits.plausible import RADIUS
from omg_lab.rivals.bandits.policies import greedy_actions, smoothed
from omg_lab.rivals.declared import Bandit, Option, schedule
from omg_lab.rivals.listed import Listed, listed

FACTOR = 1.1
"""ρ: by how much (1) may be missed."""


@final
class RegressorElimination(Bandit):
    """Play the greedy policies of all functions that are left, so that the variance of each is small.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        A `FiniteRewards`, whose functions' greedy policies are played.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    radius : float, Power or function of the episode
        β, the loss by which a function may be behind the best and stay plausible; 3 by default.
    contexts : list
        All contexts that may come.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import RegressorElimination
    >>> from omg_lab.worlds import Arms
    >>> RegressorElimination.for_world(Arms()).policy(0).shape
    (1, 1, 10)
    """

    reward_oracle: FiniteRewards = dataclasses.field()
    radius: Option[Tuned, Schedule] = Option(schedule, RADIUS)
    _: dataclasses.KW_ONLY
    contexts: Option[Iterable[Context], Listed] = Option(listed)

    needs = FiniteRewards, DynamicsOracle
    learned = ("left",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._actions = greedy_actions(self.reward_oracle, self.contexts, self.space.admissible)  # (N, C, S)
        self._left = np.ones(len(self._actions))
        self._solved: tuple[Any, FloatArray] | None = None  # what the policies were found for, and they

    @property
    def left(self) -> BoolArray:
        """Which functions are left, (N,)."""
        return self._left > 0.0

    def decide(self, context: Context) -> Decision:
        """Return the probabilities of all actions in all states."""
        place = self.contexts.place(context)
        return Decision(policy=self._policies()[place][None].copy(), model=self.model(context))

    def _policies(self) -> FloatArray:
        """Return P' in each context and state, (C, S, A)."""
        epoch = epoch_starts(self.episodes_seen)[-1]
        key = (epoch, self._left.tobytes())
        if self._solved is None or self._solved[0] != key:
            count, shape = len(self.contexts), (len(self.contexts), self.space.states, self.space.actions)
            actions = self._actions[self.left].reshape(-1, count * self.space.states)
            disputed = action_shares(np.ones(len(actions)), actions, self.space.actions) > 0.0
            least = min(0.5 / disputed.sum(axis=1).max(), 1.0 / math.sqrt(max(1, epoch)))
            weights = even_weights(actions, np.tile(self.space.start / count, count), disputed, least)
            chances = smoothed(action_shares(weights, actions, self.space.actions), least, disputed)
            self._solved = key, chances.reshape(shape)
        return self._solved[1]

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        self.contexts.place(trajectory.context)  # refuses one that is not listed
        super()._learn(trajectory, rewards)
        self._drop()

    def _learn_rewards(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        super()._learn_rewards(trajectory, rewards)
        self._drop()

    def _drop(self) -> None:
        """Drop functions."""
        losses = self.reward_oracle.forecasters.class_losses
        if len(losses):
            self._left = self._left * (losses <= losses[self.left].min() + self.radius(self.episodes_seen + 1))

    def _read(self, state: State, episodes: int) -> dict[str, FloatArray]:
        arrays = super()._read(state, episodes)
        left = arrays["left"]
        if not (np.isin(left, (0.0, 1.0)).all() and left.any()):
            raise ValueError(f"`state` must hold 1 for each function that is left and 0 for others, got {left}")
        return arrays


def even_weights(actions: NDArray[np.int64], shares: FloatArray, disputed: BoolArray, least: float) -> FloatArray:
    """Return the weights (N,) of policies that choose `actions` (N, X) in X contexts, with (1) to a factor `FACTOR`.

    `shares` (X,) says how likely contexts are, `disputed` (X, A) which actions are chosen there; `least` is μ.
    """
    count, steps = len(actions), max(1, math.ceil(math.log(len(actions)) / math.log(FACTOR)))
    weights, total = np.full(count, 1.0 / count), np.zeros(count)
    for _ in range(steps):
        total += weights
        chances = smoothed(action_shares(weights, actions, disputed.shape[1]), least, disputed)
        variances = (1.0 / chances[np.arange(len(shares)), actions]) @ shares
        weights = weights * variances / (weights @ variances)
    return total / steps
