"""The two regularisers of the planning program, each by its complementarity condition and its exact duality gap.

Both programs are  max ⟨q, r⟩ + Σ φ(q)  over occupancy measures q; z = V_h(s) - r - P·V_{h+1} > 0 are the slacks of a
dual V:

- LOG, coefficient m:   φ(q) = m·log q,    optimal where q·z = m.
- ROOT, coefficient u:  φ(q) = √(u·q),     optimal where q·z² = u/4, that is q·z = ½·√(u·q).

With t the product q·z that is wanted, Newton's equation for one tuple is, for both,

    dq + D·dz = power·(t/z - q),   D = power·q/z,   power = 1 (LOG) or 2 (ROOT),

and where the path asks for a larger product than the regulariser does, the plain condition q·z = t (power 1) holds.
Everything else in the planner is the same for both.
"""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import leaf
from omg_cmdp.planning.solver.kinds import LOG


@leaf
def wanted_product(kind, coefficient, q):
    """Return the product q·z at which the tuple is optimal."""
    if kind == LOG:
        return coefficient
    return 0.5 * np.sqrt(coefficient * q)


@leaf
def gap_bound(kind, wanted, product):
    """Return an upper bound of `gap_term` without logarithms, from the product q·z and the wanted one.

    LOG: (x - 1)²·m/(2·min(1, x)), tight near x = 1.    ROOT: the term itself, (q·z - ½√(u·q))²/(q·z).
    """
    distance = product - wanted
    if kind == LOG:
        return distance * distance / (2.0 * min(wanted, product))
    return distance * distance / product


@leaf
def gap_term(kind, coefficient, q, z):
    """Return the tuple's share of the duality gap: ≥ 0, and 0 exactly at complementarity; NaN unless q and z are > 0.

    LOG: m·(x - 1 - ln x), x = q·z/m.    ROOT: (√(z·q) - ½·√(u/z))².
    """
    if kind == LOG:
        excess = q * z / coefficient - 1.0
        return coefficient * (excess - np.log1p(excess))
    root = np.sqrt(z * q) - 0.5 * np.sqrt(coefficient / z)
    return root * root
