"""What a reward oracle holds plausible: the functions whose loss is at most a radius β above the least.

*Finite classes*: {f: Σ (f - r)² <= min + β}. If the truth f* is one of N functions and rewards lie in [0, 1], then with
probability 1 - δ it is plausible after any number of episodes, whatever chose contexts and actions, if β >= ½·log(N/δ).

Proof. With g = f - f* and ε = r - f*, L(f*) - L(f) = Σ (2εg - g²). ε has mean 0 and range 1, so that E exp(4εg) <=
exp(2g²) (Hoeffding) and exp(2(L(f*) - L(f))) is a supermartingale. By Ville's inequality it is below N/δ for all f and
all times at once. ∎ Under log loss (`LogLossRewards`) exp(L(f*) - L(f)) is one, and β >= log(N/δ).

*All other oracles*: |f - f̂| <= √(4βu), u the oracle's uncertainty. For counts and linear regression this is the same
set, cut to one pair, if the noise has variance ¼, the largest there is: then u = ¼·zᵀA⁻¹z, and L(f) - L(f̂) <= β means
|f - f̂| <= √(β·zᵀA⁻¹z). The set of a pair does not know of the others. Nothing is proven for it here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import RewardOracle
from omg_cmdp.oracles.finite.aggregating import Finite
from omg_cmdp.oracles.frame import Frame
from omg_cmdp.validation import BoolArray, FloatArray

RADIUS = 3.0
"""½·log(N/δ) for N = 20 functions and δ = .05."""


class Plausible(NamedTuple):
    """What is plausible of one context, (S, A) each. Actions that are not admissible have -inf for both bounds."""

    lows: FloatArray
    """The least plausible reward of each action."""
    highs: FloatArray
    """The largest."""
    best: BoolArray
    """Whether a plausible function has it as its best action."""

    @property
    def survivors(self) -> BoolArray:
        """Whether an action may be as good as every other one is at least."""
        return np.asarray(self.highs >= self.lows.max(axis=1, keepdims=True))


def plausible(oracle: RewardOracle, context: Context, radius: float, admissible: BoolArray) -> Plausible:
    """Return what is plausible for an oracle of one step."""
    if isinstance(oracle, Frame) and isinstance(oracle.forecasters, Finite):
        forecasters = oracle.forecasters
        functions = forecasters.prepare(context)
        losses = forecasters.losses_of(functions)
        tables = functions.tables[losses <= losses.min() + radius].reshape(-1, *admissible.shape)
        tables = np.where(admissible, tables, -np.inf)
        best = (tables == tables.max(axis=2, keepdims=True)).any(axis=0)
        return Plausible(tables.min(axis=0), tables.max(axis=0), best)
    mean, width = oracle.predict(context), np.sqrt(4.0 * radius * oracle.uncertainty(context))
    bounds = (np.clip(bound, 0.0, 1.0).reshape(admissible.shape) for bound in (mean - width, mean + width))
    lows, highs = (np.where(admissible, bound, -np.inf) for bound in bounds)
    return Plausible(lows, highs, highs >= lows.max(axis=1, keepdims=True))
