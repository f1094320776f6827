"""OLIVE (Jiang, Krishnamurthy, Agarwal, Langford and Schapire, ICML 2017): optimism-led elimination of value functions.

A hypothesis g is its optimal value function, and its misfit at step h under a policy π the average Bellman error

    E_h(π, g) = E[V_g(x_h) - r_h - V_g(x_{h+1})],   x_h reached by π, and g's own action played there,

estimated by importance weights (`elimination.py`). It is zero for the truth, under every π. The Bellman rank M is the
rank of the matrices E_h(π_f, g), f and g hypotheses; in a table it is at most the number of states, here of pairs of a
context and a state, and always at most the number of hypotheses.

The paper proves that with probability 1 - δ a policy within ε of the best is put out after Õ(M²·H³·A·log(K/δ)/ε²)
episodes, K the number of hypotheses. Proven here, for exact errors: the truth stays, and Σ_h rank E_h rounds are enough
(`lab/tests/rivals/pac/population.py`).

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
class OLIVE(Elimination):
    """Play the most optimistic value function that is left, and drop those with a Bellman error where it was wrong.

    All pairs of a reward function and transitions are hypotheses, at most 16 384; at a new context, one backward
    induction for all. Contexts must be i.i.d. The parameters are those of `Elimination`.

    >>> from omg_lab.rivals import OLIVE
    >>> from omg_lab.worlds import Decoy
    >>> OLIVE.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    most_hypotheses = 16384

    def misfits(self, hypotheses: Hypotheses, which: NDArray[np.int64], seen: Step) -> FloatArray:
        """Return V(x_h) - r - V(x_{h+1}), (N, 1)."""
        now, following = hypotheses.values[which, seen.step], hypotheses.values[which, seen.step + 1]
        return np.asarray(now[:, seen.state, None] - seen.reward - following[:, seen.next_state, None])
