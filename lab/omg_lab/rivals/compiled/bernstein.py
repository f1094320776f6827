"""The compiled loop of bonuses by variance: backward induction, where a bonus depends on the values that follow."""

import math

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def optimistic_response(transitions, base, roots, admissible, lows, highs, policy, values):
    """Fill a policy (H, S, A), one-hot, and its values (H + 1, S), V_h clipped to [lows[h], highs[h]]; it maximises

    Q_h(s, a) = base(s, a) + P·V_{h+1} + roots(s, a)·√Var_P(V_{h+1}),    transitions (S, A, S); base and roots (S, A).
    """
    horizon, states, actions = policy.shape
    policy[:] = 0.0
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            best, found = -np.inf, -1
            for a in range(actions):
                if admissible[s, a]:
                    mean = variance = 0.0
                    for j in range(states):
                        mean += transitions[s, a, j] * values[h + 1, j]
                    for j in range(states):
                        variance += transitions[s, a, j] * (values[h + 1, j] - mean) ** 2
                    worth = base[s, a] + mean + roots[s, a] * math.sqrt(variance)
                    if worth > best or found < 0:
                        best, found = worth, a
            policy[h, s, found] = 1.0
            values[h, s] = min(max(best, lows[h]), highs[h])
