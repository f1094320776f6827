"""RiverSwim beside the measures of hardness that Colosseum stores for it: another program's dynamic programs.

Source: `colosseum/benchmark/cached_hardness_measures/RiverSwimEpisodic` of Colosseum (Conserva and Rauber, 2022, MIT
licence), commit 981b344. It computes in single precision. Its diameters are those of an iteration that ends when an
episode more changes less than 0.001 (or 0.01, if the end counts no more), and so are ours here. Its value norms have
values of an iteration in place that ends so too: they agree with exact ones to three digits.
"""

import numpy as np
import pytest

from omg_cmdp import TabularMDP
from omg_cmdp.mdp.bellman import best_response

STORED = [  # size = horizon, p_lazy, p_rand, sum of reciprocal gaps, value norm, diameter
    (5, 0.0, 0.0, 233.363, 0.72060776, 5.0),
    (8, 0.0, 0.0, 603.9562, 0.7893686, 8.0),
    (11, 0.0, 0.0, 1153.0266, 0.82067394, 11.0),
    (14, 0.0, 0.0, 1880.9672, 0.8385782, 14.0),
    (10, 0.0001, 0.0, 950.08527, 0.8123654, 10.009004592895508),
    (10, 0.0858, 0.0, 958.00226, 0.8196235, 22.418729782104492),
    (10, 0.1715, 0.0, 971.9864, 0.7982998, 54.36714172363281),
    (10, 0.4286, 0.0, 1004.896, 0.6656738, 1539.9072265625),
    (10, 0.6, 0.0, 1022.6245, 0.5570391, 38139.28125),
    (10, 0.0, 0.0001, 950.0847, 0.8123483, 10.004501342773438),
    (10, 0.0, 0.0858, 956.24713, 0.82091737, 14.838109016418457),
    (10, 0.0, 0.1715, 963.7648, 0.819477, 22.407703399658203),
    (10, 0.0, 0.4286, 997.03546, 0.7824826, 87.62973022460938),
    (10, 0.0, 0.6, 1019.0182, 0.7414824, 247.78607177734375),
]
DISCOUNT, LONG = 0.99, 3000


def river_swim(size, lazy, random):
    """Return transitions (S, 2, S) and rewards (S, 2): the left end pays 0.2/S, the right end 0.9."""
    transitions, low = np.zeros((size, 2, size)), 0.2 / size
    for s in range(size):
        for a in range(2):
            transitions[s, a, s] += lazy
            for moved, to in enumerate((max(s - 1, 0), min(s + 1, size - 1))):
                transitions[s, a, to] += (1 - lazy) * ((1 - random) * (moved == a) + random / 2)
    rewards = np.full((size, 2), low / 10)
    rewards[0, 0], rewards[-1, 1] = low, 0.9
    return transitions, rewards


def reachable(transitions):
    """Return which states can be reached in which step, (H, S), from the left end."""
    found = np.eye(len(transitions), dtype=bool)
    for h in range(1, len(found)):
        found[h] = transitions[found[h - 1]].sum(axis=(0, 1)) > 0
    return found


def optimal_values(transitions, rewards, horizon):
    """Return V (H + 1, S)."""
    mdp = TabularMDP(transitions=transitions, rewards=np.zeros_like(rewards), horizon=horizon)
    return best_response(mdp, rewards[None])[1]


def without_end(transitions):
    """Return transitions of the pairs (h, s) that can be reached, flat; after the last step the first comes again."""
    pairs = np.argwhere(reachable(transitions))
    flat = np.zeros((len(pairs), 2, len(pairs)))
    for i, (h, s) in enumerate(pairs):
        for j, (g, to) in enumerate(pairs):
            if g == h + 1:
                flat[i, :, j] = transitions[s, :, to]
        if h == len(transitions) - 1:
            flat[i, :, 0] = 1.0
    return flat, pairs


@pytest.mark.parametrize(("size", "lazy", "random", "stored"), [(*row[:3], row[3]) for row in STORED])
def test_gaps(size, lazy, random, stored):
    """Σ 1/(V_h(s) - Q_h(s, a) + 0.1) over all that can be reached."""
    transitions, rewards = river_swim(size, lazy, random)
    values = optimal_values(transitions, rewards, size)
    gaps = values[:-1, :, None] - rewards - np.einsum("saj,hj->hsa", transitions, values[1:])
    assert (1.0 / (gaps + 0.1))[reachable(transitions)].sum() == pytest.approx(stored, rel=1e-6)


@pytest.mark.parametrize(("size", "lazy", "random", "stored"), [(*row[:3], row[4]) for row in STORED])
def test_value_norm(size, lazy, random, stored):
    """The largest root of Σ P(j|i, a)·(V(j) - Σ P(·|j, a)·V)², discounted: each step, all is lost with 0.01."""
    transitions, rewards = river_swim(size, lazy, random)
    flat, pairs = without_end(transitions)
    lost = np.zeros((len(flat) + 1, 2, len(flat) + 1))
    lost[:-1, :, :-1], lost[:-1, :, -1], lost[-1, :, -1] = DISCOUNT * flat, 1 - DISCOUNT, 1.0
    values = optimal_values(lost, np.vstack([rewards[pairs[:, 1]], np.zeros((1, 2))]), LONG)[0, :-1]
    after = flat @ values  # (i, a)
    norm = np.sqrt(np.einsum("iaj,ja->ia", flat, (values[:, None] - after) ** 2).max())
    assert norm == pytest.approx(stored, rel=1e-3)


@pytest.mark.parametrize(("size", "lazy", "random", "stored"), [(*row[:3], row[5]) for row in STORED if row[5] < 100])
def test_diameter(size, lazy, random, stored):
    """The most steps from any state, in the step from where they are fewest, to any other, over all episodes."""
    transitions, _ = river_swim(size, lazy, random)
    flat, pairs = without_end(transitions)
    worst = -np.inf
    for end in reversed(range(size)):
        there = pairs[:, 1] == end
        absorbing, costs = flat.copy(), np.full((len(flat), 2), -1.0)
        absorbing[there] = np.eye(len(flat))[there][:, None]
        costs[there] = 0.0
        steps = -optimal_values(absorbing, costs, LONG)  # with LONG, LONG - 1, … to go
        before, episodes, changed, found = 0.0, 0, np.inf, np.inf
        while changed >= 0.001 and not (changed < 0.01 and found - 1.0 < worst):
            episodes += 1
            now = steps[LONG - episodes * size + pairs[:, 0], np.arange(len(pairs))]
            found = max(
                1.0 + steps[LONG - (episodes - 1) * size, 0], *(now[pairs[:, 1] == s].min() for s in range(size))
            )
            before, changed = now, np.abs(now - before).max()
        worst = max(worst, found)
    assert worst == pytest.approx(stored, rel=1e-5)
