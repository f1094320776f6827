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
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, positive_integer, positive_number, probability
from omg_lab.rivals.pac.elimination import Elimination, Step
from omg_lab.rivals.pac.hypotheses import Hypotheses
from omg_lab.rivals.pac.olive import SampleSizes


@final
class WitnessRank(Elimination):
    """Play the most optimistic model that is left, and drop those that a discriminator tells from what was seen.

    All pairs of a reward function and a kernel are hypotheses, K <= 1024, and so are the discriminators: K² numbers are
    kept. Contexts must be i.i.d.
    """

    most_hypotheses = 1024

    def misfits(self, hypotheses: Hypotheses, which: NDArray[np.int64], seen: Step) -> FloatArray:
        """Return E_g[r + V_m(x')] - r - V_m(x'), for these models g, whose action it is, and every m, (N, K)."""
        rewards, rows = hypotheses.pair(seen.step, seen.state, seen.action)
        values = hypotheses.values[:, seen.step + 1]
        surprises = rows @ values.T - values[:, seen.next_state]  # of each kernel, (M, K)
        reward, kernel = np.divmod(which, len(rows))
        found = surprises[kernel] + (rewards[reward] - seen.reward)[:, None]
        # E_g[r + V_g(x')] is V_g(x_h), unless a `return_range` has clipped that: then it is what the leader promised.
        promised = hypotheses.values[which, seen.step, seen.state]
        found[np.arange(len(which)), which] = promised - seen.reward - values[which, seen.next_state]
        return np.asarray(found)


def published_sizes(
    space: Space,
    *,
    hypotheses: int,
    rank: int,
    epsilon: float,
    delta: float = 0.05,
    norm: float | None = None,
    constant: float = 1.0,
) -> SampleSizes:
    """Return what the theorem asks for, by notes, which have orders only: `constant` stands for what they leave out.

    With ε in units of the range of returns, w the witness rank, κ = 1 and U as large as the class: φ = ε/(48·H·√w),
    R = H·w·log(norm/(2φ))/log(5/3) rounds, H²·log(H·R/δ)/ε² episodes for the starts and for an evaluation,
    H²·w·A·log(R·K²/δ)/ε² for an elimination. `norm` is 2√w if None.

    >>> sizes = published_sizes(Space(states=5, actions=3, horizon=5), hypotheses=32, rank=5, epsilon=0.5)
    >>> f"{sizes.rollouts:.0e}"
    '6e+05'
    """
    count, horizon = positive_integer("hypotheses", hypotheses), space.horizon
    size, failure = positive_integer("rank", rank), probability("delta", delta)
    share, factor = positive_number("epsilon", epsilon) / horizon, positive_number("constant", constant)
    root = math.sqrt(size)
    reach = 2.0 * root if norm is None else positive_number("norm", norm)
    threshold = share / (48.0 * horizon * root)
    rounds = math.ceil(horizon * size * math.log(reach / (2.0 * threshold)) / math.log(5.0 / 3.0))
    evaluations = math.ceil(factor * horizon**2 * math.log(horizon * rounds / failure) / share**2)
    logarithm = math.log(rounds * count**2 / failure)
    return SampleSizes(
        starts=evaluations,
        evaluations=evaluations,
        rollouts=math.ceil(factor * horizon**2 * size * space.actions * logarithm / share**2),
        threshold=horizon * threshold,
        rounds=rounds,
    )
