"""OLIVE (Jiang, Krishnamurthy, Agarwal, Langford and Schapire, ICML 2017): optimism-led elimination of value functions.

A hypothesis g is its optimal value function, and its misfit at step h under a policy π the average Bellman error

    E_h(π, g) = E[V_g(x_h) - r_h - V_g(x_{h+1})],   x_h reached by π, and g's own action played there,

estimated by importance weights (`elimination.py`). It is zero for the truth, under every π. The Bellman rank M is the
rank of the matrices E_h(π_f, g), f and g hypotheses; in a table it is at most the number of states, here of pairs of a
context and a state, and always at most the number of hypotheses.

The paper proves that with probability 1 - δ a policy within ε of the best is put out after Õ(M²·H³·A·log(K/δ)/ε²)
episodes, K the number of hypotheses. Proven here, for exact errors: the truth stays, and Σ_h rank E_h rounds are enough
(`population.py`).
"""

from __future__ import annotations

import math
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, positive_integer, positive_number, probability
from omg_lab.rivals.pac.elimination import Elimination, Step
from omg_lab.rivals.pac.hypotheses import Hypotheses


@final
class OLIVE(Elimination):
    """Play the most optimistic value function that is left, and drop those with a Bellman error where it was wrong.

    All pairs of a reward function and a kernel are hypotheses, at most 16 384; at a new context, one backward
    induction for all. Contexts must be i.i.d.
    """

    most_hypotheses = 16384

    def misfits(self, hypotheses: Hypotheses, which: NDArray[np.int64], seen: Step) -> FloatArray:
        """Return V(x_h) - r - V(x_{h+1}), (N, 1)."""
        now, following = hypotheses.values[which, seen.step], hypotheses.values[which, seen.step + 1]
        return np.asarray(now[:, seen.state, None] - seen.reward - following[:, seen.next_state, None])


class SampleSizes(NamedTuple):
    """The numbers of a theorem."""

    starts: int
    evaluations: int
    rollouts: int
    threshold: float
    rounds: int
    """At most so many, with probability 1 - δ."""


def published_sizes(
    space: Space, *, hypotheses: int, rank: int, epsilon: float, delta: float = 0.05, norm: float | None = None
) -> SampleSizes:
    """Return what the theorem asks for, by notes: the numbers 32, 288, 4608 and 12 are not certain.

    With ε in units of the range of returns, M the Bellman rank, ζ the product of the norms in its factorisation (2√M
    if None), R = H·M·log(6·H·√M·ζ/ε)/log(5/3) rounds: 32·log(6K/δ)/ε² episodes for the starts, 288·H²·log(12·H·R/δ)/ε²
    for an evaluation, 4608·H²·M·A·log(12·K·R/δ)/ε² for an elimination, φ = ε/(12·H·√M).

    >>> sizes = published_sizes(Space(states=5, actions=3, horizon=5), hypotheses=32, rank=5, epsilon=0.5)
    >>> f"{sizes.rollouts:.0e}"
    '3e+09'
    """
    count, horizon = positive_integer("hypotheses", hypotheses), space.horizon
    size, failure = positive_integer("rank", rank), probability("delta", delta)
    share = positive_number("epsilon", epsilon) / horizon  # the paper's returns lie in [0, 1]
    root = math.sqrt(size)
    reach = 2.0 * root if norm is None else positive_number("norm", norm)
    rounds = math.ceil(horizon * size * math.log(6.0 * horizon * root * reach / share) / math.log(5.0 / 3.0))
    return SampleSizes(
        starts=math.ceil(32.0 * math.log(6.0 * count / failure) / share**2),
        evaluations=math.ceil(288.0 * horizon**2 * math.log(12.0 * horizon * rounds / failure) / share**2),
        rollouts=math.ceil(
            4608.0 * horizon**2 * size * space.actions * math.log(12.0 * count * rounds / failure) / share**2
        ),
        threshold=epsilon / (12.0 * horizon * root),
        rounds=rounds,
    )
