"""Epoch-Greedy: explore once, then follow what exploration has taught for a while (Langford and Zhang, NIPS 2007).

Epoch l has one episode of uniform play, and then s_l of greedy play, by a model that learns from the uniform episodes
only: their examples are as if drawn independently, whatever was learned. s_l is the inverse of the error that is left
after l of them; for N policies s_l = ⌊c·√l⌋, c of order 1/√(A·log N). In T episodes there are m uniform ones,

    m <= 1 + (3T/(2c))^(2/3),   because T >= Σ_{l<m} (1 + s_l) >= c·Σ_{l<m} √l >= (2c/3)·(m - 1)^(3/2),

and for i.i.d. contexts the regret is of that order too. With a gap between the best policy and the others s_l may grow
exponentially, for regret of order log T; that schedule is not here. Under an adversary nothing is proven: if it knows
when the agent explores, it shows what matters in the other episodes.

Source: named in the paper of this project.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.occupancy import uniform_policy
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_number
from omg_lab.rivals.declared import Bandit, Option


@final
class EpochGreedy(Bandit):
    """Play at random once, then greedily for c·√l episodes, and so on; l counts the random ones.

    The oracles learn from the random episodes only: those whose recorded propensity is that of the uniform policy.
    Where it tells nothing (a plain `Trajectory`, or a single action), an episode is random if one is due, so that it
    must come at once. All rewards must be known.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        An offline oracle, as published, or any other.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    scale : float
        The constant c, 1 by default, to be tuned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import EpochGreedy
    >>> from omg_lab.worlds import Arms
    >>> EpochGreedy.for_world(Arms()).policy(0).shape
    (1, 1, 10)
    """

    _: dataclasses.KW_ONLY
    scale: Option[float, float] = Option(positive_number, 1.0)

    usual_oracles = "offline"
    waits_for_rewards = False
    learned = ("epoch",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._epoch = np.zeros(2)  # how many random episodes there were, and after how many the next one comes

    @property
    def explores(self) -> bool:
        """Whether the next episode is a random one."""
        return bool(self.episodes_seen >= self._epoch[1])

    @property
    def explored(self) -> int:
        """Number of random episodes."""
        return int(self._epoch[0])

    def decide(self, context: Context) -> Decision:
        """Return the uniform policy, or the best one of the model."""
        model = self.model(context)
        policy = uniform_policy(self.space) if self.explores else optimal_policy(model)[0]
        return Decision(policy=policy, model=model)

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles a random episode; of any other, only look at its context."""
        if not self._was_random(trajectory):
            self.model(trajectory.context)  # refuses a bad one
            return
        super()._learn(trajectory, rewards)
        random = self.explored + 1
        following = self.episodes_seen + 1 + math.floor(min(self.scale * math.sqrt(random), 2.0**53))
        self._epoch = np.array([random, following], dtype=np.float64)

    def _was_random(self, trajectory: Trajectory) -> bool:
        count = self.space.admissible[trajectory.states[0]].sum()
        if count == 1 or not isinstance(trajectory, Episode) or trajectory.propensities is None:
            return self.explores
        return math.isclose(trajectory.propensities[0], 1.0 / count)

    def _read(self, state: State, episodes: int) -> dict[str, FloatArray]:
        arrays = super()._read(state, episodes)
        explored, following = arrays["epoch"]
        if not (0.0 <= explored <= episodes and explored == int(explored) and following == int(following) >= 0.0):
            raise ValueError(f"`state` must hold two numbers of episodes, got {explored} and {following}")
        return arrays
