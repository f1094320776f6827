"""Online cover: ILTCB's practical form, a few policies that differ where it matters.

Agarwal, Hsu, Kale, Langford, Li and Schapire, ICML 2014. n policies vote, and every action has at least ε_t = min(1/K,
1/√(K·t)) of the probability. After an episode each action gets a doubly robust reward r̂(a) = f̂(a) + 1{a played}·(r -
f̂)/p; policy i is the one that is best in total by

    r̂(a) + ψ·ε_t/q_i(a),    q_i the distribution of the votes of the policies before i, mixed with ε_t as above,

the first one by r̂ alone. So the first policy is the leader, and each other one is drawn to actions that those before
it neglect. This is the form of Bietti, Agarwal and Langford (JMLR 2021, "A contextual bandit bake-off") and of Vowpal
Wabbit's `--cover n`, whose normalisation of q_i differs a little. Nothing is proven for it, there or here. An action
that all neglect keeps the bonus ψ for good, so that a policy within ψ of the best may vote forever: ψ is to be small.

Policies are the greedy ones of a finite class, all enumerated: an episode costs O(n·N).

Source: named in the paper of this project, as the practical form of ILTCB.
"""

from __future__ import annotations

import math
from typing import Any, Unpack, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import DynamicsOracle
from omg_cmdp.oracles.finite.aggregating import FiniteRewards
from omg_cmdp.persistence import State, numbers
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_integer, positive_number
from omg_lab.rivals.bandits.inverse_gap import require_one_step
from omg_lab.rivals.bandits.policies import finite_rewards, greedy_actions, playing_chance, smoothed


@final
class OnlineCover(ModelAgent):
    """Let a few policies of a finite class vote, each drawn to what those before it neglect.

    Rewards are divided by the recorded propensity, so that r̂ is unbiased however late an `Episode` comes; a
    plain `Trajectory` must come at once, as it is given the probability of the time of the update.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        A `FiniteRewards`, whose functions' greedy policies are played.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    size : int
        The number n of policies, 4 by default.
    psi : float
        ψ, the price of neglect; 0.01 by default, and to be small.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import OnlineCover
    >>> from omg_lab.worlds import Arms
    >>> OnlineCover.for_world(Arms()).policy(0).shape
    (1, 1, 10)
    """

    settings = ("size", "psi")
    waits_for_rewards = False

    def __init__(
        self,
        space: Space,
        reward_oracle: FiniteRewards,
        dynamics_oracle: DynamicsOracle,
        *,
        size: int = 4,
        psi: float = 0.01,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        require_one_step(space)
        self._class = finite_rewards(reward_oracle)
        self.size, self.psi = positive_integer("size", size), positive_number("psi", psi)
        self._scores = np.zeros((self.size, 0))  # (n, N) from the first episode on

    def decide(self, context: Context) -> Decision:
        """Return the probabilities of all actions in all states."""
        model, votes = self.model(context), self.votes(context)
        return Decision(policy=smoothed(votes.mean(axis=0), self.least, self.space.admissible)[None], model=model)

    def votes(self, context: Context) -> FloatArray:
        """Return the action of each of the n policies, one-hot: (n, S, A)."""
        actions = greedy_actions(self._class, context, self.space.admissible)
        chosen = self._scores.argmax(axis=1) if self._scores.size else np.zeros(self.size, dtype=np.int64)
        return np.asarray(np.eye(self.space.actions)[actions[chosen]])

    @property
    def least(self) -> float:
        """ε in the next episode."""
        most = int(self.space.admissible.sum(axis=1).max())
        return min(1.0 / most, 1.0 / math.sqrt(most * (self.episodes_seen + 1)))

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles, and add what the episode says of each policy to its n scores."""
        context, state, action = trajectory.context, trajectory.states[0], trajectory.actions[0]
        chance, votes = playing_chance(self, trajectory), self.votes(context)[:, state]
        guesses = np.array(self.model(context).reward_steps[0, state])
        guesses[action] += (rewards[0] - guesses[action]) / chance
        before = votes.cumsum(axis=0)[:-1] / np.arange(1, self.size)[:, None]  # of all policies but the first
        allowed = self.space.admissible[state]
        chances = np.where(allowed, smoothed(before, self.least, allowed), 1.0)
        bonuses = np.vstack([np.zeros(votes.shape[1]), self.psi * self.least / chances])
        chosen = greedy_actions(self._class, context, self.space.admissible)[:, state]
        super()._learn(trajectory, rewards)
        gained = (guesses + bonuses)[:, chosen]
        self._scores = self._scores + gained if self._scores.size else gained

    def _learned(self) -> dict[str, NDArray[Any]]:
        """Return what both oracles learned, and the scores of all policies."""
        return {**super()._learned(), "scores": self._scores.copy()}

    def _load_learned(self, state: State, episodes: int) -> None:
        scores = numbers("scores", state, (self.size, len(numbers("reward/class_losses", state, (None,)))))
        super()._load_learned(state, episodes)
        self._scores = scores
