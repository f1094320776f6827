"""SquareCB among the actions that may be the best: inverse gaps, and RegCB's elimination.

With n survivors, those a with high(a) >= max low (`plausible.py`), and b the best of them by f̂,

    p(a) = 1/(n + γ·(f̂(b) - f̂(a))) for the survivors but b,  the rest to b,  0 for all others.

If the best action of the truth f* survives, then, as for SquareCB with n in the place of A, and by the same proof,

    max f* - ⟨p, f*⟩ <= (n·(1 + p(b)) - 2)/γ + (γ/4)·Σ p·(f* - f̂)².

Each p(a) but p(b) is at most 1/n, so that p(b) >= 1/n: p is a distribution, whatever the numbers. This needs n to be
the number of survivors. Vowpal Wabbit's `--squarecb --elim` (9.11.9) counts only those that are better than all before
them, and returns [-2, 1, 1, 1] for four actions that it knows nothing of.

Source: the code of Vowpal Wabbit, of which it mends the count of survivors.
"""

from __future__ import annotations

from typing import Unpack, final

import numpy as np

from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.agents.exploration.schedules import ROOT, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import BoolArray, FloatArray, in_range, positive_number
from omg_lab.rivals.bandits.inverse_gap import require_one_step, square_cb
from omg_lab.rivals.bandits.plausible import RADIUS, plausible


@final
class EliminatingSquareCB(ModelAgent):
    """Play inverse gap weighting among the actions that may be the best.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        An online oracle.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    gamma : float, Power or function of the episode
        γ; 30·√t by default, to be tuned.
    radius : float, Power or function of the episode
        β, the loss by which a function may be behind the best and stay plausible; 3 by default.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import EliminatingSquareCB
    >>> from omg_lab.worlds import Arms
    >>> EliminatingSquareCB.for_world(Arms()).policy(0).shape
    (1, 1, 10)
    """

    settings = ("gamma", "radius")

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        gamma: Tuned = ROOT,
        radius: Tuned = RADIUS,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        require_one_step(space)
        self.gamma, self.radius = Schedule(gamma), Schedule(radius, "radius")

    def decide(self, context: Context) -> Decision:
        """Return the probabilities of all actions in all states."""
        episode, model = self.episodes_seen + 1, self.model(context)
        gamma = self.gamma(episode)
        seen = plausible(self.reward_oracle, context, self.radius(episode), self.space.admissible)
        policy = square_cb_among(seen.survivors, model.reward_steps[0], gamma)
        return Decision(policy=policy[None], model=model, gamma=gamma)


def square_cb_among(candidates: BoolArray, rewards: FloatArray, gamma: float) -> FloatArray:
    """Return SquareCB's probabilities (S, A) among `candidates` (S, A), at least one in each state.

    >>> square_cb_among(np.array([[True, True, False]]), np.array([[0.5, 0.5, 0.9]]), 10.0)
    array([[0.5, 0.5, 0. ]])
    """
    gamma = positive_number("gamma", gamma)
    in_range("rewards", rewards, 0.0, 1.0)
    if not candidates.any(axis=1).all():
        raise ValueError("`candidates` must have an action in every state, got a state with none")
    among = np.where(candidates, rewards, -np.inf)
    return square_cb(gamma * (among.max(axis=1, keepdims=True) - among))
