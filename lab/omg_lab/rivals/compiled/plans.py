"""The compiled loops of agents that plan in many models at once: optimal policies, and what policies are worth."""

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.mdp.compiled import best_response, flow


@compiled
def plan_round(transitions, rewards, start, admissible, lows, highs, policies, occupancies):
    """Fill an optimal policy of each of C models and its occupancy measure, both (C, H, S, A).

    Tables (C, K, S, A, ...), any rewards; step h uses entry h mod K. Values V_h are clipped to [lows[h], highs[h]];
    ties go to the lowest action.
    """
    contexts, horizon, states, _ = policies.shape
    values = np.empty((horizon + 1, states))
    for c in range(contexts):
        best_response(transitions[c], rewards[c], admissible, lows, highs, policies[c], values)
        flow(transitions[c], rewards[c], start, policies[c], occupancies[c])


@compiled
def cross_values(transitions, rewards, start, policies, values):
    """Fill the value of each of M policies (M, H, S, A) in each of K models, (M, K)."""
    occupancy = np.empty(policies.shape[1:])
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            values[i, k] = flow(transitions[k], rewards[k], start, policies[i], occupancy)
