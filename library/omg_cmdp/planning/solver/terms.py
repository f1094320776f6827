"""The regulariser of the planning program, by its complementarity condition and its duality gap.

The program is  max ⟨q, r⟩ + Σ φ(q)  over occupancy measures q; z = V_h(s) - r - P·V_{h+1} > 0 are the slacks of a
dual V. For one tuple, with coefficients u, m >= 0,

    φ(q) = √(u·q) + m·log q,    optimal where q·z = ½·√(u·q) + m.

u = 0 is the log barrier, m = 0 the root; the sum is a root with a floor. Its solution is also that of the barrier with
the weights ½·√(u·q) + m that it ends with. With t the product q·z that is wanted, Newton's equation for one tuple is

    dq + D·dz = power·(t/z - q),   D = power·q/z,   power = 1/(1 - ½·½√(u·q)/(q·z)),

between 1 (barrier) and, at the optimum, 2 (root).
"""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import leaf
from omg_cmdp.planning.rounding import KNOWN_WITHIN


@leaf
def root_part(u, q):
    """Return ½·√(u·q), what the root asks of the product q·z."""
    return 0.5 * np.sqrt(u * q) if u > 0.0 else 0.0


@leaf
def gap_bound(root, m, product):
    """Return an upper bound of `gap_term` without logarithms, from ½·√(u·q), m and the product q·z.

    With t = ½√(u·q) + m and d = q·z - t it is ½√(u·q)·d²/(t·q·z) + m·d²/(2t·min(t, q·z)), tight near d = 0.
    """
    wanted = root + m
    distance = product - wanted
    if m == 0.0:  # also where u is 0, and with it t
        return distance * distance / product
    share = 0.5 * m / min(wanted, product)
    if root > 0.0:
        share += root / product
    return distance * distance * share / wanted


@leaf
def gap_term(u, m, q, z, error):
    """Return the tuple's share of the duality gap: ≥ 0, and 0 exactly at complementarity; inf if nothing is proven.

    ½·√(u·q)·(x - 1)²/x + m·(x - 1 - ln x), x = q·z/t, t = ½·√(u·q) + m; without a barrier (√(z·q) - ½·√(u/z))².
    The two terms are the exact gaps of the root and of the barrier, each with its part of the slack, z·½√(u·q)/t and
    z·m/t: together they bound the gap of the sum. Because x - 1 - ln x <= (x - 1)²/x they also bound the gap of the
    barrier with weights t. They are bounds for all x within the relative `error`, too; `rounding` has the proof.
    """
    if not error <= KNOWN_WITHIN:
        return np.inf
    product, root = q * z, root_part(u, q)
    if m == 0.0:
        distance = abs(product - root) + error * (product + root)
        return distance * (distance / (product * (1.0 - error)))
    x = product / (root + m)
    excess = x - 1.0
    distance = abs(excess) + error * x
    logarithm = np.log1p(excess) if x >= 0.5 else np.log(x)  # below ½, x - 1 is rounded
    total = m * (excess - logarithm + error * (abs(excess) + error))
    if root > 0.0:
        total += root * distance * (distance / (x * (1.0 - error)))
    return total
