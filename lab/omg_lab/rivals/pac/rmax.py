"""Rmax (Brafman and Tennenholtz, 2002): what is not known is as good as can be.

The induced MDP has the estimated tables where a pair (s, a) is known. An unknown pair stays in s and pays 1, so that it
is worth H - h at step h, the most there is: it absorbs with maximal value. The agent plays an optimal policy of it.

Let the tables of known pairs be wrong by at most η_r in the reward and η_p in ‖P̂ - P*‖₁. Then, in every episode,

    V* - V^π <= H·(2·η_r + H·η_p) + H·Pr(π meets an unknown pair).

Proof. Let M_K have the true tables where the induced MDP M̂ has estimates. Values lie in [0, H - h], so that one step
changes a value by at most η_r + (H/2)·η_p, and |V̂^π - V_K^π| <= H·(η_r + (H/2)·η_p) for every π. Unknown pairs are
worth the most there is, so V_K* >= V*. Until π meets one, M_K is the truth: V_K^π <= V^π + H·Pr(...). Hence
V* <= V_K* <= V̂* + ... = V̂^π + ... <= V^π + 2·H·(η_r + (H/2)·η_p) + H·Pr(...). ∎

So an episode that loses more than ε, where the first term is at most ε/2, meets an unknown pair with probability above
ε/(2H), and a pair can be met so only until it is known: that bounds the number of such episodes. In a deterministic
world, where one visit tells everything, it is at most S·A in each table.
"""

from __future__ import annotations

import numpy as np

from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import BoolArray, FloatArray


def induced_mdp(space: Space, transitions: FloatArray, rewards: FloatArray, known: BoolArray) -> TabularMDP:
    """Return the MDP of tables (S, A, S) and (S, A) in which a pair that is not `known` (S, A) stays and pays 1.

    >>> space = Space(states=1, actions=2, horizon=3)
    >>> induced_mdp(space, np.ones((1, 2, 1)), np.array([[0.2, 0.4]]), np.array([[True, False]])).rewards
    array([[0.2, 1. ]])
    """
    staying = np.eye(space.states)[:, None]
    return space.mdp(
        transitions=np.where(known[:, :, None], transitions, staying), rewards=np.where(known, rewards, 1.0)
    )
