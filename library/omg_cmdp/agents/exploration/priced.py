"""Rewards after charges: what a decision is worth when what it costs is paid for at the prices of the budgets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.agents.exploration.base import Situation
from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.budgets import best_within
from omg_cmdp.validation import FloatArray


class Priced(NamedTuple):
    """The model's rewards f̂ - λ·c, at the prices λ of its best policy within the budgets."""

    rewards: FloatArray
    """(K, S, A), K = 1 or H; those of the model, to the bit, where no budget binds."""
    charges: FloatArray | None
    """λ·c, (K, S, A); None if nothing is charged."""
    bounds: ValueBounds
    """Between which numbers the sum of what is left lies, from each step on."""


def charge(situation: Situation) -> Priced:
    """Return the rewards after charges; without budgets, or if none binds, nothing is charged.

    Where a total budget has prices already, these are charged.
    """
    model, limits, charges = situation.model, situation.limits, situation.charges
    rewards = model.raw[1]
    if limits is not None and charges is None:
        charges = limits.charges(best_within(model, limits).prices / limits.scales)
    if charges is None or not charges.any():
        return Priced(rewards, None, situation.bounds)
    steps = np.broadcast_to(charges, (model.horizon, *charges.shape[1:]))[:, model.admissible]
    least, most = (np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in (steps.min(axis=1), steps.max(axis=1)))
    bounds = ValueBounds(situation.bounds.lows - most, situation.bounds.highs - least)
    return Priced(np.ascontiguousarray(rewards - charges), charges, bounds)
