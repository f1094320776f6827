"""A budget for all episodes of a run: what is left of it, and the price that makes it last.

With B for T episodes, a unit of cost has the price λ_t in episode t, and

    λ_{t+1} = min(max(λ_t + η·(cost_t - B/T), 0), R/(B/T)),     η = R/(B/T)/(G·√T),

cost_t being what the episode cost, G the most that one can cost, and R the range of returns. Where a policy costs
nothing it is B/T below the mean budget, and prices above R/(B/T) would say no more. An episode is planned only if what
is left suffices for the dearest course of it, and for all later ones at the least that this one can cost; else the
policy of least cost is played.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.mdp.budgets import Budgets, best_mixture, least_costs
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.persistence import Learned
from omg_cmdp.validation import FloatArray, float_table


class Purse(Learned):
    """What is left of a total budget, and at which prices it is spent. An agent keeps it.

    It is charged when the agent learns of an episode: while several are under way, it does not know of them yet.
    """

    learned = ("left", "prices")

    def __init__(self, total: ArrayLike, episodes: int | None, span: float) -> None:
        self.total = float_table("total_budget", total).reshape(-1)
        """B (J,)."""
        if episodes is None:
            raise ValueError("`total_budget` is for a number of `episodes`; say how many there will be")
        if not (self.total > 0.0).all():
            raise ValueError(f"`total_budget` must be positive, got {self.total.tolist()}")
        self.left = self.total.copy()
        """What is left, (J,)."""
        self.prices = np.zeros(self.total.size)
        """λ (J,), in rewards scaled to [0, 1] for a unit of cost."""
        self._episodes, self._share = episodes, self.total / episodes
        self._dearest = span / self._share

    def suffices(self, model: TabularMDP, limits: Budgets, episode: int) -> bool:
        """Return whether an episode can be planned, whatever it will cost."""
        rest = max(self._episodes - episode, 0)
        needed = most_costly(limits, model.horizon) + rest * np.maximum(least_costs(model, limits), 0.0)
        return bool((needed <= self.left).all())

    def charge(self, paid: FloatArray, limits: Budgets, horizon: int) -> None:
        """Take what an episode cost, (J,), and set new prices."""
        self.left = self.left - paid
        rate = self._dearest / (np.maximum(most_costly(limits, horizon), 1e-300) * math.sqrt(self._episodes))
        self.prices = np.clip(self.prices + rate * (paid - self._share), 0.0, self._dearest)


def most_costly(limits: Budgets, horizon: int) -> FloatArray:
    """Return what the dearest course of an episode costs, (J,)."""
    steps = limits.costs.max(axis=(2, 3))
    return np.asarray(np.broadcast_to(steps, (len(steps), horizon)).sum(axis=1) * limits.scales)


def least_costly(model: TabularMDP, limits: Budgets) -> FloatArray:
    """Return the policy (H, S, A) of least cost; of several kinds, that whose largest is least."""
    return best_mixture(model, limits._replace(limits=np.zeros_like(limits.limits))).policy
