"""The compiled loop of counterfactual rounds: plans for many contexts in one call."""

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.mdp.compiled import best_response, flow


@compiled
def plan_round(transitions, rewards, start, admissible, lows, highs, policies, occupancies):
    """Fill an optimal policy of each of C models and its occupancy measure, both (C, H, S, A).

    `transitions` (C, K, S, A, S), step h uses entry h mod K; rewards (C, H, S, A), any numbers. Values V_h are
    clipped to [lows[h], highs[h]]; ties go to the lowest action.
    """
    contexts, horizon, states, _ = rewards.shape
    values = np.empty((horizon + 1, states))
    for c in range(contexts):
        best_response(transitions[c], rewards[c], admissible, lows, highs, policies[c], values)
        flow(transitions[c], rewards[c], start, policies[c], occupancies[c])
