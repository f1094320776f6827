"""RM-UCDD: optimism where every state is reached anyway (Levy and Mansour, AAAI 2023), the forerunner of UC³RL.

It assumes that every policy reaches every state at every step but the first, in every context, with probability p_min
or more, and asks in a context c how often its policies *would have chosen* a in s at step h:

    N_h(s, a; c) = 1 + Σ_{i<t} π_i^c(a|h, s),    b = min(1, β_R/(2·p_min·N)) + H·min(2, β_P/(2·p_min·N)),   β = β₀·√T

π_i^c is optimal for f̂_i(c) + b in P̂_i(c), at the N of that round; both models are least-squares fits, the dynamics of
indicators of the next state (`OfflineLeastSquaresDynamics`). The 1 is for the first A rounds,
in which one action is played everywhere.

Reachability makes choices as good as visits: q_h(s, a|π, P*) >= p_min·π(a|h, s), and so p_min·N is at most the sum of
the true occupancies q of all policies of the rounds so far, those of the warm-up among them. By AM-GM and d* <= 1,

    V*(c) - Ṽ(c) <= Σ d*·p_min·N·[(f* - f̂)²/(2β_R) + H·‖P* - P̂‖₁²/(2β_P)]
                 <= Σ_{i<t} Σ q(π_i^c, P*)·[(f* - f̂)²/(2β_R) + H·‖P* - P̂‖₁²/(2β_P)]:

*optimism in expectation*, because the mean over c of the right side is what the fits would lose, in expectation, on the
data that they were made of, and no more than the class is large: 2·log(|F|/δ) in-sample for the rewards, 4S·log(|P|/δ)
for the dynamics (`oracles.finite.offline`). At the first step only start states are reached, and only they count in d*.

The paper proves Õ((H + 1/p_min)·H·S^(3/2)·√(A·T·log(max(|F|, |P|)/δ))) for i.i.d. contexts. What is not certain: the
constants, which are β₀ here, and the exact place of p_min. Contexts are listed, as for UC³RL.

Source: named in the paper of this project; pseudo-code in the project's theory notes (§3).
"""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.counterfactual.agent import CounterfactualAgent
from omg_lab.rivals.listed import opening_actions


@final
class RMUCDD(CounterfactualAgent):
    """Plan with a bonus for what would rarely have been chosen in this context; all states must be easy to reach.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Offline oracles, as published, or any others.
    contexts : list
        All contexts that may come. Each has its counts, at one plan for each of them in an episode.
    scale : float or tuple of two floats
        β₀, or one for the rewards and one for the dynamics, such as (0.03, 0) if these are known; to be tuned. The
        published 1/p_min is a part of it.
    episodes : int, optional
        T in β = β₀·√T; by default β = β₀·√t in round t.
    reward_range, return_range
        As for every `Learner`.

    >>> import omg_cmdp as omg
    >>> from omg_lab.rivals import RMUCDD
    >>> sizes = {"states": 2, "actions": 2, "horizon": 3}
    >>> pair = omg.oracles.CountRewards(**sizes, contexts="ab"), omg.oracles.CountDynamics(**sizes, contexts="ab")
    >>> RMUCDD(omg.Space(**sizes), *pair, contexts="ab").policy("a").shape
    (3, 2, 2)
    """

    usual_oracles = "least_squares"

    def __post_init__(self) -> None:
        self._warm_up = int(self.space.admissible.sum(axis=1).max())
        super().__post_init__()

    def decide(self, context: Context) -> Decision:
        """Return one action everywhere in the first A rounds, and then a plan."""
        if self.episodes_seen < self._warm_up:
            opening = np.tile(opening_actions(self.space, self.episodes_seen), (self.space.horizon, 1, 1))
            return Decision(policy=opening, model=self.model(context))
        return super().decide(context)

    def _counted(self) -> FloatArray:
        """Return the choices of this round, none in the first ones."""
        policies, _ = self._plan(slice(None))
        return policies * (self.episodes_seen >= self._warm_up)
