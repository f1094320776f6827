"""Witness rank (Sun, Jiang, Krishnamurthy, Agarwal and Langford, COLT 2019): optimism-led elimination of models.

A model g is dropped if some discriminator u in a class U witnesses that it is not the truth where the leader π goes:

    W_h(π, g) = max_u |E[E_g u(r, x') - u(r_h, x_{h+1})]|,   x_h reached by π, and g's own action played there.

Here U has one discriminator for each hypothesis m, u = r + V_m(x'). Since V_g is among them, W_h(π, g) >= |E_h(π, g)|,
the Bellman error of OLIVE, and by the same data: what OLIVE drops, this agent drops. That is the paper's Bellman
domination, with its κ = 1. (The test by Bernstein's inequality looks at K means, and is more careful; with a
`threshold` the order is exact.) W_h is zero for the truth.

The witness rank is the least rank of matrices between κ·E_h and W_h, so that it is at most the Bellman rank; in
factored MDPs the paper shows it to be exponentially smaller, for discriminators that are not made of values. The paper
proves Õ(H³·w²·A·log(K·|U|/δ)/(κε)²) episodes, w the witness rank. Proven here, for exact misfits: the truth stays, and
Σ_h rank E_h rounds are enough (`population.py`).

Source: named in the paper of this project.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.validation import FloatArray
from omg_lab.rivals.hypotheses import Hypotheses
from omg_lab.rivals.pac.elimination import Elimination, Step


@final
class WitnessRank(Elimination):
    """Play the most optimistic model that is left, and drop those that a discriminator tells from what was seen.

    All pairs of a reward function and transitions are hypotheses, K <= 1024, and so are the discriminators: K² numbers
    are kept. Contexts must be i.i.d. The parameters are those of `Elimination`.

    >>> from omg_lab.rivals import WitnessRank
    >>> from omg_lab.worlds import Decoy
    >>> WitnessRank.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    most_hypotheses = 1024

    def misfits(self, hypotheses: Hypotheses, which: NDArray[np.int64], seen: Step) -> FloatArray:
        """Return E_g[r + V_m(x')] - r - V_m(x'), for these models g, whose action it is, and every m, (N, K)."""
        rewards, rows = hypotheses.pair(seen.step, seen.state, seen.action)
        values = hypotheses.values[:, seen.step + 1]
        surprises = rows @ values.T - values[:, seen.next_state]  # of each table of transitions, (M, K)
        reward, table = np.divmod(which, len(rows))
        found = surprises[table] + (rewards[reward] - seen.reward)[:, None]
        # E_g[r + V_g(x')] is V_g(x_h), unless a `return_range` has clipped that: then it is what the leader promised.
        promised = hypotheses.values[which, seen.step, seen.state]
        found[np.arange(len(which)), which] = promised - seen.reward - values[which, seen.next_state]
        return np.asarray(found)
