"""The uncertainty-weighted rule: explore where the oracles are unsure. For comparison with the gain-weighted one."""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.agents.exploration.base import ExplorationRule, Situation
from omg_cmdp.mdp.bellman import value_ranges
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import positive_number


@final
class UncertaintyWeighted(ExplorationRule):
    """m = ½·√(q̂·u) + floor/√(n·t), q̂ the plan: explore where the oracles are unsure, wanted or not (docs/theory.md).

    u_h = (κ/H)·(u_f + range_h²·u_P) is the expected squared error of f̂ + P̂·V_{h+1}, up to κ/H. range_h is by how much
    V_{h+1} can differ in the model; errors of H steps add in squares where bonuses √u add, hence 1/H.

    Parameters
    ----------
    kappa : float, default 0.15
        κ, how much of the uncertainty is paid for; chosen on worlds that no table of the guide shows.
    floor : float, default 1e-4
        The least weight, times √(n·t).

    Examples
    --------
    >>> str(UncertaintyWeighted(kappa=1.0))
    'UncertaintyWeighted(kappa=1.0, floor=0.0001)'
    """

    def __init__(self, *, kappa: float = 0.15, floor: float = 1e-4) -> None:
        self.kappa = positive_number("kappa", kappa)
        self.floor = positive_number("floor", floor)

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with the weights of this episode."""
        model, shape = situation.model, (-1, *situation.model.admissible.shape)
        rewards, dynamics = (
            np.ascontiguousarray(oracle.uncertainty(situation.known.to(oracle)), dtype=np.float64).reshape(shape)
            for oracle in (situation.reward_oracle, situation.dynamics_oracle)
        )
        ranges = value_ranges(model, bounds=situation.bounds)[:, None, None]
        unsure = self.kappa / model.horizon * (rewards + ranges**2 * dynamics)
        return situation.plan_roots(unsure, situation.least_weight(self.floor))
