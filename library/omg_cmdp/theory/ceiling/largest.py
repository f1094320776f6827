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
MOST_STATES = 12
"""Up to this many states, the bound compares all pairs of them in one model; above, that takes too long."""


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
        listed = [np.array(each, order="C") for each in (means, tables)]  # if read-only, they are compiled for anew
        possible = np.zeros_like(agreed)
        told = np.ascontiguousarray(policies), probabilities
        most = compiled.largest_gap(*listed, *space.raw, *told, agreed, possible)
        return Loss(most, _share(np.asarray(agreed.any(axis=2)), space, rows), possible)
    known = None if tables is None or len(tables) > 1 else np.array(tables[0], order="C")
    found = [_bounded(space, rewards, rows, known, policy, bounds) for policy in policies]
    # The models that are worst for each policy may differ, so that the mean of the bounds is a bound.
    _, sure, possible = found[0]
    return Loss(float(np.dot(probabilities, [each[0] for each in found])), _share(sure, space, rows), possible)


def _bounded(
    space: Space,
    rewards: PlausibleRewards,
    rows: PlausibleRows,
    known: FloatArray | None,
    policy: FloatArray,
    bounds: ValueBounds,
) -> tuple[float, BoolArray, BoolArray]:
    """Return a bound on V* - V^π over all plausible rows, where one action is surely optimal, (H, S), and which
    actions may be, (H, S, A).

    Backward induction bounds V*(x) - V^π(y) for all pairs of states, with both values in the same model:

        V*(x) - V^π(y) = max_a Σ_b π(b|y)·[r(x, a) - r(y, b) + Σ_k Σ_l P(k|x, a)·P(l|y, b)·(V*'(k) - V^π'(l))],

    and the bracket is Σ_k P(k|x, a)·(V*'(k) - V^π'(k)) if (x, a) = (y, b), which is one row and not two. What a policy
    may gain by doing the same as π is therefore 0, however uncertain values are. `known` rows have a compiled loop.
    """
    low, high, states = rewards.low, rewards.high, np.arange(space.states)
    sure = np.empty((space.horizon, space.states), dtype=np.bool_)
    possible = np.zeros((space.horizon, *space.admissible.shape), dtype=np.bool_)
    if known is not None and space.states <= MOST_STATES:
        told = known, space.admissible, np.ascontiguousarray(policy), *bounds
        lost = compiled.bound_known(np.ascontiguousarray(low), np.ascontiguousarray(high), *told, sure, possible)
        return float(space.start @ lost), sure, possible
    best_high, best_low, own_low = np.zeros((3, space.states))
    apart = np.zeros((space.states, space.states))
    for h in reversed(range(space.horizon)):
        chance, most, least = policy[h], high[h % len(high)], low[h % len(low)]
        after = rows.highest(h, np.stack([best_high, -best_low, -own_low, apart[states, states]]))
        top, floor, down = most + after[0], least - after[1], least - after[2]
        own = (chance * down).sum(axis=1)
        if len(states) <= MOST_STATES:
            gain = _gains(h, rows, chance, apart, most, least)
        else:
            gain = top - own[:, None, None]
            gain[states, states] -= chance * (top - down - after[3])
        for bound in (top, floor, gain):
            bound[..., ~space.admissible] = -np.inf
        surest, ahead = floor.argmax(axis=1), floor.max(axis=1, keepdims=True)
        possible[h] = (top >= ahead) & (gain[states, states] >= -compiled.TIE)
        rivals = possible[h] & (top > ahead)
        rivals[states, surest] = False
        sure[h] = ~rivals.any(axis=1) | (possible[h].sum(axis=1) == 1)
        best_high, best_low, own_low = np.clip(
            [top.max(axis=1), floor.max(axis=1), own], bounds.lows[h], bounds.highs[h]
        )
        apart = np.minimum(gain.max(axis=2).T, best_high[:, None] - own_low)
        apart[states, states] = np.maximum(apart[states, states], 0.0)
    return float(space.start @ apart[states, states]), sure, possible


def _gains(
    step: int, rows: PlausibleRows, chance: FloatArray, apart: FloatArray, most: FloatArray, least: FloatArray
) -> FloatArray:
    """Return bounds (y, x, a) on Q*(x, a) - V^π(y), given bounds `apart` (k, l) on V*(k) - V^π(l) a step later."""
    states = np.arange(len(chance))
    inner = rows.highest(step, apart) * chance  # (k, y, b)
    own = np.broadcast_to(inner.sum(axis=2).T[:, None, None], (len(states), *chance.shape, len(states))).copy()
    own[states, states] += chance[..., None] * apart[states, states] - np.moveaxis(inner, 0, 2)
    gains: FloatArray = rows.highest(step, own) + most - (chance * least).sum(axis=1)[:, None, None]
    gains[states, states] -= chance * (most - least)
    return gains


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
