"""The compiled loops of LOLIPOP: trusted transitions, and a cover of policies for one step.

Tables are those of `inverse_gap`: kernels (K, S, A, S), step h uses entry h mod K; policies are actions (H, S).
"""

import numpy as np

from omg_cmdp.agents.kernels.inverse_gap import best_way, find_losses, follow, hashed, position
from omg_cmdp.jit import compiled


@compiled
def trust(kernel, start, admissible, threshold, trusted):
    """Fill `trusted` with P where ρ·P >= `threshold`, and else 0, for steps 0..K-1.

    ρ_k(s) is the largest probability with which a policy gets to s at step k along trusted transitions alone.
    """
    steps, states, actions, _ = kernel.shape
    no_losses, any_way = np.zeros((steps, states, actions)), np.zeros((steps, states), np.int64)
    for s in range(states):
        any_way[:, s] = np.argmax(admissible[s])
    way = any_way.copy()
    for k in range(steps):
        for s in range(states):
            reach = best_way(trusted, start, admissible, no_losses, any_way, 0.0, 1.0, k, s, way)[0]
            for a in range(actions):
                for j in range(states):
                    chance = kernel[k, s, a, j]
                    trusted[k, s, a, j] = chance if admissible[s, a] and reach * chance >= threshold else 0.0


@compiled
def layer_cover(trusted, kernel, rewards, start, admissible, gamma, h, horizon):
    """Return policies (K, H, S, A), one-hot, the optimal one first, and their gaps V* - V^π in a model.

    For each (s, a) that trusted transitions reach at step h there is one that maximises d/(S·A + γ·lost): d is its
    probability of (s, a) at h along them, and lost the gap that it pays on the way, as far as they go. The way to s
    does not depend on a, as for PC-IGW. After step h it is greedy.
    """
    states, actions = rewards.shape[1:]
    losses, greedy = np.zeros((horizon, states, actions)), np.empty((horizon, states), np.int64)
    find_losses(kernel, rewards, admissible, losses, greedy)
    most = states * actions + 1
    found, gaps, keys = np.empty((most, horizon, states), np.int64), np.zeros(most), np.empty(most, np.int64)
    found[0], keys[0], count = greedy, hashed(greedy), 1
    way, base = greedy.copy(), float(states * actions)
    for s in range(states):
        mass = best_way(trusted, start, admissible, losses, greedy, gamma, base, h, s, way)[0]
        for a in range(actions):
            if mass > 0.0 and admissible[s, a]:
                way[h, s] = a
                key = hashed(way)
                if position(way, key, found[:count], keys) == count:
                    found[count], keys[count] = way, key
                    gaps[count] = max(follow(kernel, start, losses, way, h + 1, s)[1], 0.0)
                    count += 1
        way[: h + 1] = greedy[: h + 1]
    policies = np.zeros((count, horizon, states, actions))
    for i in range(count):
        for k in range(horizon):
            for s in range(states):
                policies[i, k, s, found[i, k, s]] = 1.0
    return policies, gaps[:count].copy()
