"""The compiled loop of UC³RL: PLAN and OCC for many contexts in one call. It calls nothing outside this file."""

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def plan_round(kernels, rewards, start, admissible, policies, occupancies):
    """Fill an optimal policy of each of C models and its occupancy measure, both (C, H, S, A).

    Transitions (C, K, S, A, S), step h uses entry h mod K; rewards (C, H, S, A), any numbers. Values with m steps to go
    are clipped at m; ties go to the lowest action.
    """
    contexts, horizon, states, actions = rewards.shape
    steps = kernels.shape[1]
    values, marginals = np.zeros((horizon + 1, states)), np.zeros((horizon + 1, states))
    chosen = np.empty((horizon, states), dtype=np.int64)
    policies[:] = 0.0
    occupancies[:] = 0.0
    for c in range(contexts):
        for h in range(horizon - 1, -1, -1):
            for s in range(states):
                best, found = -np.inf, -1
                for a in range(actions):
                    if admissible[s, a]:
                        gain = rewards[c, h, s, a]
                        for j in range(states):
                            gain += kernels[c, h % steps, s, a, j] * values[h + 1, j]
                        if gain > best or found < 0:
                            best, found = gain, a
                chosen[h, s] = found
                policies[c, h, s, found] = 1.0
                values[h, s] = min(best, float(horizon - h))
        marginals[:] = 0.0
        marginals[0] = start
        for h in range(horizon):
            for s in range(states):
                a, mass = chosen[h, s], marginals[h, s]
                occupancies[c, h, s, a] = mass
                for j in range(states):
                    marginals[h + 1, j] += mass * kernels[c, h % steps, s, a, j]
