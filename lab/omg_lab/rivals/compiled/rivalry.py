"""The compiled loops of information-directed sampling: drawn models, their optimal policies, and what each is worth."""

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.mdp.compiled import best_response, flow


@compiled
def plan_each(transitions, rewards, admissible, lows, highs, policies):
    """Fill an optimal policy of each of K models, (K, H, S, A); tables (K, steps, S, A, ...)."""
    count, horizon, states, _ = policies.shape
    values = np.empty((horizon + 1, states))
    for k in range(count):
        best_response(transitions[k], rewards[k], admissible, lows, highs, policies[k], values)


@compiled
def cross_values(transitions, rewards, start, policies, values):
    """Fill the value of each of M policies (M, H, S, A) in each of K models, (M, K)."""
    occupancy = np.empty(policies.shape[1:])
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            values[i, k] = flow(transitions[k], rewards[k], start, policies[i], occupancy)
