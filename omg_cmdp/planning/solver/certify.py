"""The compiled certificate, from the tables and the returned pair. `certificate.py` is the same in plain numpy."""

from __future__ import annotations

import numpy as np
from numba import float64, uint8

from omg_cmdp.jit import compiled_for, table
from omg_cmdp.mdp.thresholds import NEGLIGIBLE
from omg_cmdp.planning.solver.terms import gap_term


@compiled_for(
    table(float64, 4),  # kernel
    table(float64, 3),  # rewards
    table(float64, 1),  # start
    table(uint8, 2),  # admissible
    table(uint8, 2),  # reached
    table(float64, 3),  # roots
    table(float64, 3),  # barrier
    table(float64, 3),  # policy
    table(float64, 2),  # values
)
def certify(kernel, rewards, start, admissible, reached, roots, barrier, policy, values):
    """Return the occupancy measure (H, S, A) of `policy` and the duality gap that it and `values` prove.

    Nothing but the pair and the set of reachable states (H, S) comes from the solver: occupancy and slacks are computed
    here from the tables. Without positive slacks, or if the policy is likely in a state that counts as unreachable,
    nothing is proven, and the gap is inf.
    """
    horizon, states, actions = policy.shape
    occupancy = np.zeros((horizon, states, actions))
    marginal, after = start.copy(), np.empty(states)
    gap = 0.0
    for h in range(horizon):
        k = h % kernel.shape[0]
        for j in range(states):
            after[j] = 0.0
        for s in range(states):
            if not reached[h, s]:
                if marginal[s] <= NEGLIGIBLE:
                    continue
                # The program left this state out as too rare under the uniform policy, but here it is likely.
                gap = np.inf
            for a in range(actions):
                if admissible[s, a]:
                    q = marginal[s] * policy[h, s, a]
                    expected = 0.0
                    if h + 1 < horizon:
                        for j in range(states):
                            after[j] += q * kernel[k, s, a, j]
                            expected += kernel[k, s, a, j] * values[h + 1, j]
                    slack = values[h, s] - rewards[h % rewards.shape[0], s, a] - expected
                    occupancy[h, s, a] = q
                    if reached[h, s] and q > 0.0 and slack > 0.0:
                        u, m = roots[h % roots.shape[0], s, a], barrier[h % barrier.shape[0], s, a]
                        gap += gap_term(u, m, q, slack)
                    else:
                        gap = np.inf
        marginal, after = after, marginal
    return occupancy, gap
