"""The compiled loops of counterfactual rounds: plans, or better policies, for many contexts in one call."""

import math

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.mdp.compiled import best_response, flow


@compiled
def plan_round(kernels, rewards, start, admissible, lows, highs, policies, occupancies):
    """Fill an optimal policy of each of C models and its occupancy measure, both (C, H, S, A).

    Transitions (C, K, S, A, S), step h uses entry h mod K; rewards (C, H, S, A), any numbers. Values V_h are
    clipped to [lows[h], highs[h]]; ties go to the lowest action.
    """
    contexts, horizon, states, _ = rewards.shape
    values = np.empty((horizon + 1, states))
    for c in range(contexts):
        best_response(kernels[c], rewards[c], admissible, lows, highs, policies[c], values)
        flow(kernels[c], rewards[c], start, policies[c], occupancies[c])


@compiled
def improve_round(kernels, rewards, start, admissible, lows, highs, step, logits, policies, occupancies):
    """Let each of C policies ∝ exp(logits) become ∝ exp(logits + step·Q), with Q its action values in its model.

    Fill the new `logits`, the largest of each row 0, the new policies and their occupancy measures, all (C, H, S, A).
    Q_h = r + P·V_{h+1} is clipped to [lows[h], highs[h]], and V_h = ⟨π_h, Q_h⟩.
    """
    contexts, horizon, states, actions = rewards.shape
    values, earlier = np.empty(states), np.empty(states)
    for c in range(contexts):
        soft_policy(logits[c], admissible, policies[c])
        values[:] = 0.0
        for h in range(horizon - 1, -1, -1):
            k = h % kernels.shape[1]
            for s in range(states):
                earlier[s] = 0.0
                for a in range(actions):
                    if admissible[s, a]:
                        gain = rewards[c, h, s, a]
                        for j in range(states):
                            gain += kernels[c, k, s, a, j] * values[j]
                        gain = min(max(gain, lows[h]), highs[h])
                        earlier[s] += policies[c, h, s, a] * gain
                        logits[c, h, s, a] += step * gain
            values, earlier = earlier, values
        soft_policy(logits[c], admissible, policies[c])
        flow(kernels[c], rewards[c], start, policies[c], occupancies[c])


@compiled
def soft_policy(logits, admissible, policy):
    """Fill π ∝ exp(logits) over admissible actions, and subtract the largest of each row from the logits."""
    horizon, states, actions = logits.shape
    for h in range(horizon):
        for s in range(states):
            largest, total = -np.inf, 0.0
            for a in range(actions):
                if admissible[s, a]:
                    largest = max(largest, logits[h, s, a])
            for a in range(actions):
                policy[h, s, a] = 0.0
                if admissible[s, a]:
                    logits[h, s, a] -= largest
                    policy[h, s, a] = math.exp(logits[h, s, a])
                    total += policy[h, s, a]
            for a in range(actions):
                policy[h, s, a] /= total
