"""ILTCB: a sparse distribution over policies of small variance.

Agarwal, Hsu, Kale, Langford, Li and Schapire, ICML 2014 ("Taming the Monster"). Against N policies, here the greedy
policies of a finite class, with rewards estimated by r/p on the action played. At the beginning of an epoch, after τ =
1, 2, 4, ... episodes, find weights Q >= 0, Σ Q <= 1, with

    Σ_π Q(π)·b(π) <= 2K,     V(π) = mean over past contexts of 1/Q^μ(π(c)|c) <= 2K + b(π) for every π,      (OP)

b(π) = regret(π)/(ψμ) by the estimates, K the number of actions, and Q^μ the distribution of the action of Q, mixed
with μ on every action. Then play Q^μ, what is missing to Σ Q = 1 going to the policy that looks best. So the estimate
of a policy has a variance of at most 2K, and more only if the policy looks bad.

Coordinate descent finds Q, from Q = 0: if Σ Q·(2K + b) > 2K, multiply Q by what makes it equal; then, if some π has
D(π) = V(π) - (2K + b(π)) > 0, add (V + D)/(2(1 - Kμ)·mean 1/(Q^μ)²) to Q(π), else stop. It stops after at most
4·log(1/(Kμ))/μ steps (Theorem 3 there), which is tested.

μ = min(1/(2K), c·√(log(16τ²N/δ)/(Kτ))). The paper has c = 1 and ψ = 100, and proves O(√(K·T·log(NT/δ))) against the
best of the policies for i.i.d. contexts, with no model of rewards. It asks an oracle for cost-sensitive classification
where all N policies are enumerated here. Contexts are listed: past ones are counted, so that no episode takes time that
grows. Where fewer than K actions are admissible, the Kμ are spread among those, which leaves all of the above as it is.

Source: named in the paper of this project.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import DynamicsOracle
from omg_cmdp.oracles.combined.epochs import epoch_starts
from omg_cmdp.oracles.finite.aggregating import FiniteRewards
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import BoolArray, FloatArray, positive_number, probability
from omg_lab.rivals.bandits.policies import greedy_actions, playing_chance, smoothed
from omg_lab.rivals.declared import Bandit, Option
from omg_lab.rivals.listed import Listed, listed


@final
class ILTCB(Bandit):
    """Play a sparse distribution over the greedy policies of a finite class, by epochs.

    Rewards are divided by the recorded propensity, so that estimates are unbiased however late an `Episode` comes; a
    plain `Trajectory` must come at once, as it is given the probability of the time of the update.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        A `FiniteRewards`, whose functions' greedy policies are played.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    contexts : list
        All contexts that may come.
    scale : float
        The constant c of the least probability μ, 1 by default.
    psi : float
        ψ, the price of estimated regret; 100 by default, as published.
    delta : float
        The probability δ of failure, 0.05 by default.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import ILTCB
    >>> from omg_lab.worlds import Arms
    >>> ILTCB.for_world(Arms()).policy(0).shape
    (1, 1, 10)
    """

    reward_oracle: FiniteRewards = dataclasses.field()
    _: dataclasses.KW_ONLY
    contexts: Option[Iterable[Context], Listed] = Option(listed)
    scale: Option[float, float] = Option(positive_number, 1.0)
    psi: Option[float, float] = Option(positive_number, 100.0)
    delta: Option[float, float] = Option(probability, 0.05)

    waits_for_rewards = False
    needs = FiniteRewards, DynamicsOracle
    learned = ("seen", "earned", "weights")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._actions = greedy_actions(self.reward_oracle, self.contexts, self.space.admissible)  # (N, C, S)
        self._seen = np.zeros(self._actions.shape[1:])  # how often each context and state came
        self._earned = np.zeros(len(self._actions))  # Σ r/p of each policy
        self._weights = np.zeros(len(self._actions))

    def decide(self, context: Context) -> Decision:
        """Return the probabilities of all actions in all states."""
        place, model = self.contexts.place(context), self.model(context)
        weights = self._weights.copy()
        weights[self._earned.argmax()] += max(0.0, 1.0 - weights.sum())
        shares = action_shares(weights, self._actions[:, place], self.space.actions)
        return Decision(policy=smoothed(shares, self.least, self.space.admissible)[None], model=model)

    @property
    def least(self) -> float:
        """μ in this epoch."""
        return self._least(epoch_starts(self.episodes_seen)[-1])

    def _least(self, start: int) -> float:
        """Return μ in the epoch after `start` episodes."""
        most = int(self.space.admissible.sum(axis=1).max())
        if start == 0:
            return 0.5 / most
        complexity = math.log(16.0 * start**2 * len(self._actions) / self.delta)
        return min(0.5 / most, self.scale * math.sqrt(complexity / (most * start)))

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles, estimate the reward of every policy, and solve OP if an epoch begins."""
        place, state, action = self.contexts.place(trajectory.context), trajectory.states[0], trajectory.actions[0]
        chance = playing_chance(self, trajectory)
        super()._learn(trajectory, rewards)
        self._earned = self._earned + (self._actions[:, place, state] == action) * (rewards[0] / chance)
        self._seen[place, state] += 1.0
        over = self.episodes_seen + 1
        if over == epoch_starts(over)[-1]:
            self._weights = self._solved(over)

    def _solved(self, episodes: int) -> FloatArray:
        """Return the Q with which the epoch after `episodes` begins."""
        least, came = self._least(episodes), self._seen > 0.0
        slack = (self._earned.max() - self._earned) / (episodes * self.psi * least)
        admissible = np.broadcast_to(self.space.admissible, (*came.shape, self.space.actions))[came]
        return low_variance_weights(self._actions[:, came], self._seen[came] / episodes, admissible, slack, least)[0]

    def _read(self, state: State, episodes: int) -> dict[str, FloatArray]:
        arrays = super()._read(state, episodes)
        if min(array.min() for array in arrays.values()) < 0.0 or arrays["weights"].sum() > 1.0 + 1e-9:
            raise ValueError("`state` must hold no negative number, and weights that sum to at most 1, got others")
        return arrays


def action_shares(weights: FloatArray, actions: NDArray[np.int64], count: int) -> FloatArray:
    """Return how much of the `weights` (N,) goes to each action where policies choose `actions` (N, X), (X, count)."""
    shares = np.zeros((actions.shape[1], count))
    np.add.at(shares, (np.arange(actions.shape[1]), actions), weights[:, None])
    return shares


def low_variance_weights(
    actions: NDArray[np.int64], shares: FloatArray, admissible: BoolArray, slack: FloatArray, least: float
) -> tuple[FloatArray, int]:
    """Return the weights (N,) of OP by coordinate descent, and the number of steps.

    Policies choose `actions` (N, X) in X contexts, which are the `shares` (X,) of the past, with `admissible` (X, A)
    actions; `slack` is b (N,), `least` is μ <= 1/(2K).
    """
    most = int(admissible.sum(axis=1).max())
    allowed, weights, steps = 2.0 * most + slack, np.zeros(len(actions)), 0
    while True:
        if (used := float(weights @ allowed)) > 2.0 * most:
            weights *= 2.0 * most / used
        chances = smoothed(action_shares(weights, actions, admissible.shape[1]), least, admissible)
        inverse = 1.0 / chances[np.arange(len(shares)), actions]  # (N, X)
        variances = inverse @ shares
        excess = variances - allowed
        worst = int(excess.argmax())
        if excess[worst] <= 0.0:
            return weights, steps
        weights[worst] += (variances + excess)[worst] / (2.0 * (1.0 - most * least) * (inverse[worst] ** 2 @ shares))
        steps += 1
