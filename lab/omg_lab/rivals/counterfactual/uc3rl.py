"""UC³RL, published as E-UC³RL: optimism by counterfactual bonuses (Levy, Cassel, Cohen and Mansour, ICML 2024).

The paper of this project cites the first version, *Counterfactual optimism* (arXiv 2211.14932, 2022), of which the
algorithm is called UC³RL. Published is *Eluder-based regret for stochastic contextual MDPs*, whose algorithm is called
E-UC³RL and whose bound has a factor more, the Eluder dimension d. What is here is the loop that both share, under the
name that the project's paper uses; the bound is the published one.

A general class knows no counts: two contexts may have nothing in common. UC³RL asks instead what it *would* have done
in every earlier round i, with the model (f̂_i, P̂_i) of that round, had the present context c come, and counts where
that would have led:

    W_h(s, a; c) = 1 + Σ_{i<t} q_h(s, a | π_i^c, P̂_i^c),   π_i^c optimal for f̂_i(c) + b,  at the W of that round
    b = min(1, β_R/(2W)) + H·min(2, β_P/(2W)),   β = β₀·√T

Values with m steps to go are clipped at m; with a `return_range` also to what it leaves, and H is the range of values.
By AM-GM, x <= β/(2W) + W·x²/(2β), the plan's value Ṽ is nearly optimistic:

    V*(c) - Ṽ(c) <= Σ d*·W·[(f* - f̂)²/(2β_R) + H·‖P* - P̂‖₁²/(2β_P)],

whose mean over c is small because the offline fit f̂ is good in-sample: W(c) is, on average over i.i.d. contexts, where
the data are. Hence the guarantee for *stochastic* contexts, Õ(H³·√(T·S·A·d·log(|F||P|/δ))), d the Eluder dimension of
the dynamics class with respect to the Hellinger distance. The first version states it without d. It fails for
adversarial contexts: W(c) grows whether or not c is ever shown, and an adversary that shows c only in the rounds when
the agent would not explore it takes .4 in every round, forever, whatever β₀ is (two arms, two contexts, two functions:
`Twins` in lab/tests/rivals/counterfactual/test_uc3rl_regret.py).

What is not certain: the constants, which are β₀ here and to be tuned, and that the occupancy of round i is taken under
P̂_i and not the latest P̂.

Source: named in the paper of this project; pseudo-code in the project's theory notes (§2).
"""

from __future__ import annotations

from typing import final

from omg_cmdp.validation import FloatArray
from omg_lab.rivals.counterfactual.agent import CounterfactualAgent


@final
class UC3RL(CounterfactualAgent):
    """Plan with a bonus for what would rarely have been visited in this context.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Offline oracles, as published, or any others.
    contexts : list
        All contexts that may come. Each has its counts, at one plan for each of them in an episode.
    scale : float or tuple of two floats
        β₀, or one for the rewards and one for the dynamics, such as (0.03, 0) if these are known; to be tuned.
    episodes : int, optional
        T in β = β₀·√T; by default β = β₀·√t in round t.
    reward_range, return_range
        As for every `Learner`.

    >>> import omg_cmdp as omg
    >>> from omg_lab.rivals import UC3RL
    >>> sizes = {"states": 2, "actions": 2, "horizon": 3}
    >>> pair = omg.oracles.CountRewards(**sizes, contexts="ab"), omg.oracles.CountDynamics(**sizes, contexts="ab")
    >>> UC3RL(omg.Space(**sizes), *pair, contexts="ab").policy("a").shape
    (3, 2, 2)
    """

    def _counted(self) -> FloatArray:
        """Return the visits of this round."""
        return self._plan(slice(None))[1]
