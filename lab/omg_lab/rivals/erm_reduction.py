"""The reduction to offline regression: explore by reaching every state, fit, plan (Levy and Mansour, 2022).

"Learning efficiently function approximation for contextual MDP" asks for a policy, not for small regret. For each
(h, s, a) in turn, the steps in order, m episodes are played by the policy that gets to s at step h as often as it can,
in the fitted model of the context that came, and plays a there. Then the fits of both oracles by empirical risk
minimisation (least squares, likelihood) are planned with. Used here as explore-then-commit: after n·m episodes, n the
number of tuples, it plays the plans of its fits, and explores no more. The paper proves a polynomial sample complexity
for i.i.d. contexts, whether dynamics depend on the context or not; its powers and constants are not certain to us, so
that `samples` is an argument.

What is proven here is the case of *known* dynamics. If the rewards lie in [0, 1], their function is one of N, and
contexts are i.i.d., then with probability 1 - δ the policies π̂ satisfy, once m episodes of every tuple have been
learned and ever after (at the end of exploration if feedback comes at once, d episodes later if it comes d late),

    E_c[V*(c) - V^π̂(c)] <= √(n·D/m),    D = 2H/(1 - e^(-H/2))·log(N/δ):

`sample_size` returns the m for which this is ε; n·m = n²·D/ε² episodes in all. (With m ~ T^(2/3)/n regret is of order
T^(2/3).) Proof. Let g = f̂ - f*, and ρ_h(s) the largest probability with which a policy reaches s at h. f̂ prefers π̂, so

    V* - V^π̂ <= Σ (q* - q^π̂)·(-g) <= Σ max(q*, q^π̂)·|g| <= Σ ρ·|g| <= √n·√(Σ ρ·g²),

and E_c Σ ρ·g² <= D/m, since the episodes of (h, s, a) visit it with probability ρ_h(s): m·E_c Σ ρ·g² is at most the sum
over all episodes t of E_t G_t, G = Σ_h g², given the past. To bound it for the minimiser, let X = Σ_h [(f - r)² -
(f* - r)²] for a function f. Hoeffding's lemma, step by step, gives E exp(-X + ½G) <= 1; by Cauchy-Schwarz E exp(-½X)
<= √(E exp(-½G)) <= exp(-½κ·E G), κ = (1 - e^(-H/2))/H, because e^(-x/2) is convex on [0, H]. By Ville's inequality
Σ_t (-½X_t + ½κ·E_t G_t) <= log(N/δ) for all f and all times at once, and Σ X <= 0 for f̂. ∎

For unknown dynamics the policies reach what the *fitted* dynamics say, which are learned one step after the other.
The turns are counted by what has been learned: where m and more episodes arrive together, a tuple may have no turn.

Source: named in the paper of this project.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import best_response, optimal_policy
from omg_cmdp.mdp.space import Space
from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory.constants import most_tuples
from omg_cmdp.validation import instance_of, positive_integer, positive_number, probability
from omg_lab.rivals.declared import ModelRival, Option


@final
class ERMReduction(ModelRival):
    """Reach every state as often as possible, some times for each step and action; then trust the fits.

    What the model says cannot be reached is left out: the best policy of the model is played instead.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Offline oracles, as published; others that are saved will do.
    samples : int
        The number m of episodes for each tuple (h, s, a), 10 by default; `sample_size` states a proven one.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import ERMReduction
    >>> from omg_lab.worlds import Decoy
    >>> ERMReduction.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    _: dataclasses.KW_ONLY
    samples: Option[int, int] = Option(positive_integer, 10)

    usual_oracles = "offline"

    def __post_init__(self) -> None:
        super().__post_init__()
        held = np.tile(self.space.admissible, (self.space.horizon, 1, 1))
        held[0] &= (self.space.start > 0.0)[:, None]
        self._tuples = np.argwhere(held)

    @property
    def explored(self) -> bool:
        """Whether exploration is over."""
        return self.episodes_seen >= self.samples * len(self._tuples)

    def decide(self, context: Context) -> Decision:
        """Return the policy that visits the present (h, s, a) most, greedy after it; or the plan of the fits."""
        model = self.model(context)
        policy, _ = optimal_policy(model)
        if not self.explored:
            step, *pair = self._tuples[self.episodes_seen // self.samples]
            target = np.zeros(policy.shape)
            target[step, *pair] = 1.0
            way, values = best_response(model, target)
            if self.space.start @ values[0] > 0.0:
                policy[: step + 1] = way[: step + 1]
        return Decision(policy=policy, model=model)


def sample_size(space: Space, *, accuracy: float, functions: int, delta: float = 0.05) -> int:
    """Return m: with known dynamics and N = `functions`, the policies are `accuracy`-optimal on average over contexts.

    >>> sample_size(Space(states=1, actions=3, horizon=1), accuracy=0.3, functions=8, delta=0.1)
    743
    """
    instance_of("space", space, Space)
    wanted, horizon = positive_number("accuracy", accuracy), space.horizon
    log = math.log(positive_integer("functions", functions) / probability("delta", delta))
    errors = 2.0 * horizon / -math.expm1(-horizon / 2.0) * log
    return math.ceil(most_tuples(space) * errors / wanted**2)
