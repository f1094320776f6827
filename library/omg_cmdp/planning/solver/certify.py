"""The compiled certificate, from the tables and the returned pair. `certificate.py` is the same in plain numpy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import float64
from numba.extending import intrinsic

from omg_cmdp.jit import in_plain_python, inner, leaf
from omg_cmdp.mdp.thresholds import NEGLIGIBLE
from omg_cmdp.planning.rounding import OF_TERM, TINY
from omg_cmdp.planning.rounding import difference as plain_difference
from omg_cmdp.planning.rounding import of_occupancy as occupancy_error
from omg_cmdp.planning.rounding import of_slack as slack_error
from omg_cmdp.planning.rounding import of_sum as sum_error
from omg_cmdp.planning.solver.terms import gap_term

# The same formulas as in the plain certificate, compiled.
difference, of_slack = leaf(plain_difference), leaf(slack_error)
of_occupancy, of_sum = leaf(occupancy_error), leaf(sum_error)


@intrinsic
def _fused(context, a, b, c):
    """Return a·b + c, rounded once."""
    return float64(float64, float64, float64), lambda context, builder, signature, given: builder.fma(*given)


def _plain_fused(a, b, c):
    return float(Fraction(a) * Fraction(b) + Fraction(c)) if np.isfinite(a * b + c) else a * b + c


fused = _plain_fused if in_plain_python() else _fused


@inner
def certified(transitions, rewards, start, admissible, reached, roots, barrier, policy, values):
    """Return the occupancy measure (H, S, A) of `policy` and the duality gap that it and `values` prove.

    Nothing but the pair and the set of reachable states (H, S) comes from the solver: occupancy and slacks are computed
    here from the tables, with a bound on what rounding does to them (see `rounding`). Without positive
    slacks, or if the policy is likely in a state that counts as unreachable, nothing is proven, and the gap is inf.
    """
    horizon, states, actions = policy.shape
    occupancy = np.zeros((horizon, states, actions))
    marginal, after = start.copy(), np.empty(states)
    from_slack, from_step = of_slack(states), of_occupancy(states, actions)
    gap = error = 0.0
    for h in range(horizon):
        k = h % transitions.shape[0]
        drift = 0.0
        for s in range(states):
            after[s] = 0.0
            if reached[h, s]:
                total = 0.0
                for a in range(actions):
                    total += policy[h, s, a]
                drift = max(drift, abs(total - 1.0))
        error += from_step + drift
        for s in range(states):
            if not reached[h, s]:
                if marginal[s] <= NEGLIGIBLE:
                    continue
                # The program left this state out as too rare under the uniform policy, but here it is likely.
                gap = np.inf
            for a in range(actions):
                if admissible[s, a]:
                    q = marginal[s] * policy[h, s, a]
                    slack, lost = difference(values[h, s], rewards[h % rewards.shape[0], s, a])
                    if h + 1 < horizon:
                        for j in range(states):
                            p = transitions[k, s, a, j]
                            if p > 0.0:
                                after[j] += q * p
                                product = p * values[h + 1, j]
                                slack, more = difference(slack, product)
                                lost += more - fused(p, values[h + 1, j], -product)
                    slack += lost
                    occupancy[h, s, a] = q
                    if reached[h, s] and q > 0.0 and slack > 0.0:
                        u, m = roots[h % roots.shape[0], s, a], barrier[h % barrier.shape[0], s, a]
                        lost = (from_slack * values[h, s] + TINY) / slack
                        gap += gap_term(u, m, q, slack, 2.0 * error + lost + OF_TERM)
                    else:
                        gap = np.inf
        marginal, after = after, marginal
    return occupancy, of_sum(occupancy.size) * gap
