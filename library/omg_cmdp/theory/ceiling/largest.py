"""The largest loss of a policy over all plausible models: exactly where they can be listed, else a bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.space import Space
from omg_cmdp.theory.ceiling.sets import PlausibleRewards, PlausibleRows, PlausibleTransitions
from omg_cmdp.validation import BoolArray, FloatArray

compiled = Lazy("omg_cmdp.theory.ceiling.compiled")

MOST_PAIRS = 4096
"""Up to this many pairs of reward and transition functions, each is tried; above, they are bounded."""


class Loss(NamedTuple):
    """What a policy loses at most, and how much of the decision is settled."""

    most: float
    """The largest V* - V^π over the plausible models, or a bound on it."""
    settled: float
    """The share of the reachable (h, s) in which one action is optimal in all plausible models."""
    plausible: BoolArray
    """Which actions are optimal in some plausible model, (H, S, A)."""


def largest_loss(
    space: Space,
    rewards: PlausibleRewards,
    transitions: PlausibleTransitions,
    policies: FloatArray,
    probabilities: FloatArray,
    bounds: ValueBounds,
) -> Loss:
    """Return what the mixture of `policies` (J, H, S, A) loses at most, over all pairs of plausible functions."""
    means, tables, rows = rewards.tables, transitions.tables, transitions.rows
    if means is not None and tables is not None and len(means) * len(tables) <= MOST_PAIRS:
        agreed = np.repeat(space.admissible[None], space.horizon, axis=0)
        listed = np.ascontiguousarray(means), np.ascontiguousarray(tables)
        possible = np.zeros_like(agreed)
        told = np.ascontiguousarray(policies), probabilities
        most = compiled.largest_gap(*listed, *space.raw, *told, agreed, possible)
        return Loss(most, _share(np.asarray(agreed.any(axis=2)), space, rows), possible)
    found = [_bounded(space, rewards, rows, policy, bounds) for policy in policies]
    # The models that are worst for each policy may differ, so that the mean of the bounds is a bound.
    _, sure, possible = found[0]
    return Loss(float(np.dot(probabilities, [each[0] for each in found])), _share(sure, space, rows), possible)


def _bounded(
    space: Space, rewards: PlausibleRewards, rows: PlausibleRows, policy: FloatArray, bounds: ValueBounds
) -> tuple[float, BoolArray, BoolArray]:
    """Return a bound on V* - V^π over all plausible rows, where one action is surely optimal, (H, S), and which
    actions may be, (H, S, A).

    For every model and policy π', by the performance difference lemma,

        V^π'_h - V^π_h = Σ_a π'(a)·[Q^π(a) - V^π] + Σ_a π'(a)·P(a)·(V^π'_{h+1} - V^π_{h+1}),
        Q^π(a) - V^π = (1 - π(a))·Q^π(a) - Σ_{b≠a} π(b)·Q^π(b).

    So backward induction on the largest right side, row by row, is a bound. It is 0 where π surely plays the best
    action, however uncertain the values are; it is cut at the optimistic optimum minus the pessimistic value of π.
    """
    low, high, shape = rewards.low, rewards.high, space.states
    best_high, best_low = np.zeros(shape), np.zeros(shape)
    own_high, own_low, lost = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    forbidden = ~space.admissible
    sure = np.empty((space.horizon, space.states), dtype=np.bool_)
    possible = np.empty((space.horizon, *space.admissible.shape), dtype=np.bool_)
    for h in reversed(range(space.horizon)):
        after = rows.highest(h, np.stack([best_high, own_high, lost, -best_low, -own_low]))
        most, least = high[h % len(high)], low[h % len(low)]
        # The best policy, optimistically and pessimistically.
        top, floor = most + after[0], least - after[3]
        top[forbidden], floor[forbidden] = -np.inf, -np.inf
        sure[h] = _surely_best(top, floor)
        possible[h] = top >= floor.max(axis=1, keepdims=True)
        # The policy played, and what another could gain on it.
        chance, up, down = policy[h], most + after[1], least - after[4]
        pessimistic = (chance * down).sum(axis=1)
        gain = (1.0 - chance) * up - (pessimistic[:, None] - chance * down) + after[2]
        gain[forbidden] = -np.inf
        least_value, most_value = bounds.lows[h], bounds.highs[h]
        best_high = np.clip(top.max(axis=1), least_value, most_value)
        best_low = np.clip(floor.max(axis=1), least_value, most_value)
        own_high = np.clip((chance * up).sum(axis=1), least_value, most_value)
        own_low = np.clip(pessimistic, least_value, most_value)
        lost = np.minimum(np.maximum(gain.max(axis=1), 0.0), best_high - own_low)
    return float(space.start @ lost), sure, possible


def _surely_best(top: FloatArray, floor: FloatArray) -> BoolArray:
    """Return in which states the least value of an action is at least the largest value of all others, (S,)."""
    surest = floor.argmax(axis=1)
    states = np.arange(len(top))
    others = top.copy()
    others[states, surest] = -np.inf
    return np.asarray(floor[states, surest] >= others.max(axis=1))


def _share(decided: BoolArray, space: Space, rows: PlausibleRows) -> float:
    """Return the share of the reachable (h, s) that are `decided` (H, S)."""
    if decided.all():
        return 1.0
    reached = np.zeros(decided.shape, dtype=np.bool_)
    reached[0] = space.start > 0.0
    for h in range(space.horizon - 1):
        steps = rows.possible(h) & space.admissible[:, :, None]
        reached[h + 1] = steps[reached[h]].any(axis=(0, 1))
    return float(decided[reached].mean())
