"""What rounding can add to a certificate: the constants of a bound that makes it hold in exact arithmetic.

With ε = 2⁻⁵³, and S states, A actions:

- *Slacks* z = V - r - Σ p·V' cancel: at γ = 1e12 nothing would be left of them in plain doubles. They are sums as if
  with twice the digits (Ogita, Rump and Oishi 2005): what every product and every sum loses to rounding is a double
  itself, and is added up beside. The error is then at most ε·z + (S + 4)²·ε²·(V + r + Σ p·V'), and where all slacks
  are positive the last bracket is at most 2V; where they need not be it is computed. 1e-300 is for underflow.
- *Occupancies* are sums of products of positive numbers, with a relative error of at most (h + 1)·(S·A + A + 6)·ε at
  step h, and as much again as the policy's rows fail to sum to 1: the proof is for the policy with rows that do.
- *A term* is a function of x = q·z/t, t = ½√(u·q) + m, that is flat at x = 1. If q and z are known up to δ_q and δ_z, x
  is up to δ = 2·δ_q + δ_z + 16ε, the last for the few operations of the term itself. For x' within x·(1 ± δ),

      x' - 1 - ln x' <= x - 1 - ln x + |x - 1|·δ + δ²   (δ <= ½),      |x' - 1| <= |x - 1| + x·δ.

- The *sum* of n terms, and what follows it, multiply by at most 1 + (n + 16)·2ε.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = TypeVar("Numbers", float, NDArray[np.float64])

EPSILON = 2.0**-53
TINY = 1e-300
OF_TERM = 16.0 * EPSILON
KNOWN_WITHIN = 0.5
"""If x is not known up to this relative error, nothing is proven."""


def difference(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """Return a - b, rounded, and what rounding took from it (Knuth); of numbers or arrays."""
    rounded = a - b
    part = rounded - a
    return rounded, (a - (rounded - part)) - (b + part)


def of_slack(states: int) -> float:
    """Return the error of a slack relative to the value that it begins with."""
    return 3.0 * ((states + 4) * EPSILON) ** 2


def of_occupancy(states: int, actions: int) -> float:
    """Return the relative error that an occupancy gains with every step."""
    return (states * actions + actions + 6) * EPSILON


def of_slacks(horizon: int, states: int, actions: int) -> float:
    """Return the error of b - ⟨q, c⟩ with an occupancy of twice the digits, relative to |b| + H·max |c|."""
    return 16.0 * (horizon * (states * actions + actions + 10) * EPSILON) ** 2


def of_sum(terms: int) -> float:
    """Return the factor by which a sum of positive terms may be too small."""
    return 1.0 + 2.0 * EPSILON * (terms + 16)
