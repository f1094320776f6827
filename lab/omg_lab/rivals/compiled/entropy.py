"""The compiled loops of Boltzmann exploration and occupancy entropy.

All gains and values are times γ. Kernel (K, S, A, S) and rewards (K, S, A): step h uses entry h mod K.
"""

import math

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.mdp.compiled import flow
from omg_lab.rivals.compiled.inverse_gap import expected

LEAST_LOG = math.log(1e-300)
"""Smaller probabilities count as this: below it, floats lose digits."""
LIMIT = 100
"""The most iterations per step of the horizon; about ten are needed."""


@compiled
def soft_plan(transitions, rewards, admissible, gamma, policy):
    """Fill π_h(a|s) ∝ exp(Q_h(s, a)), Q_h = γ·r + P·V_{h+1}, V_h = log Σ_a exp(Q_h), over admissible actions."""
    horizon, states, actions = policy.shape
    values, earlier, scores = np.zeros(states), np.empty(states), np.empty(actions)
    for h in range(horizon - 1, -1, -1):
        r = h % rewards.shape[0]
        for s in range(states):
            for a in range(actions):
                scores[a] = -np.inf
                if admissible[s, a]:
                    scores[a] = gamma * rewards[r, s, a] + expected(transitions, h % transitions.shape[0], s, a, values)
            earlier[s] = normalise(scores)
            for a in range(actions):
                policy[h, s, a] = math.exp(scores[a])
        values, earlier = earlier, values


@compiled
def entropy_plan(transitions, rewards, start, admissible, gamma, tolerance, policy):
    """Fill the policy of the occupancy q that maximises γ·⟨q, r⟩ - Σ q·log q; return certificate and iterations.

    One iteration replaces π by the maximiser of the linear part of the objective at q minus Σ_h (H - h)·E KL(π_h‖π): a
    soft backward induction at temperature H - h, with gains γ·r - log q - 1. Its values V are a dual solution; with
    x = gains + P·V_{h+1} - V_h, the gap between primal and dual is Σ q·(exp(x) - 1 - x), and the objective at π is that
    close to the maximum.
    """
    horizon, states, actions = policy.shape
    logs, occupancy = np.empty(policy.shape), np.empty(policy.shape)
    values, earlier = np.empty(states), np.empty(states)
    gains, scores = np.empty(actions), np.empty(actions)
    for h in range(horizon):
        for s in range(states):
            for a in range(actions):
                logs[h, s, a] = 0.0 if admissible[s, a] else -np.inf
            normalise(logs[h, s])
    gap, iterations = np.inf, 0
    while True:
        policy[:] = np.exp(logs)
        flow(transitions, rewards, start, policy, occupancy)
        gap = 0.0
        values[:] = 0.0
        for h in range(horizon - 1, -1, -1):
            temperature, r = float(horizon - h), h % rewards.shape[0]
            for s in range(states):
                mass = occupancy[h, s].sum()
                log_mass = max(math.log(mass), LEAST_LOG) if mass > 0.0 else LEAST_LOG
                for a in range(actions):
                    scores[a] = -np.inf
                    if admissible[s, a]:
                        gains[a] = gamma * rewards[r, s, a] - log_mass - logs[h, s, a] - 1.0
                        gains[a] += expected(transitions, h % transitions.shape[0], s, a, values)
                        scores[a] = logs[h, s, a] + gains[a] / temperature
                earlier[s] = temperature * normalise(scores)
                for a in range(actions):
                    if admissible[s, a]:
                        excess, q = gains[a] - earlier[s], occupancy[h, s, a]
                        gap += math.exp(min(log_mass + logs[h, s, a] + excess, 700.0)) - q - q * excess
                        logs[h, s, a] = scores[a]
            values, earlier = earlier, values
        iterations += 1
        if gap <= tolerance or iterations == LIMIT * horizon:
            return max(gap, 0.0), iterations


@compiled
def normalise(scores):
    """Subtract log Σ exp(scores) from `scores`, and return it."""
    highest, total = scores.max(), 0.0
    for i in range(len(scores)):
        scores[i] -= highest
        total += math.exp(scores[i])
    shift = math.log(total)
    for i in range(len(scores)):
        scores[i] -= shift
    return highest + shift
