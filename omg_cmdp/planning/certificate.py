"""The certificate in plain numpy: what a plan proves, for someone who does not trust the planner."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.mdp.occupancy import occupancy_measure, reachable_states
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.thresholds import NEGLIGIBLE
from omg_cmdp.planning.regularisers import regulariser
from omg_cmdp.planning.solver.kinds import ROOT
from omg_cmdp.validation import FloatArray, float_table, one_of_shapes


def certificate(
    mdp: TabularMDP,
    policy: ArrayLike,
    values: ArrayLike,
    *,
    gamma: float | None = None,
    weights: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
) -> float:
    """Return an upper bound on γ·(L(q*) - L(q)), or with uncertainty on L(q*) - L(q), q the occupancy of `policy`.

    For any values V (H, S) with slacks z = V_h(s) - r_h(s, a) - Σ P_h(s'|s, a)·V_{h+1}(s') > 0, weak duality gives

        γ·(L(q*) - L(q)) <= Σ w·(x - 1 - ln x), x = γ·q·z/w,     or     L(q*) - L(q) <= Σ (√(z·q) - ½·√(u/z))²,

    over the reachable, admissible (h, s, a). Values without positive slacks prove nothing, nor does a policy that is
    likely in a state that counts as unreachable: the answer is then inf.

    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.5, 0.5]]), horizon=1)
    >>> certificate(mdp, [[[0.5, 0.5]]], [[0.7]], gamma=10.0)  # V = r + A/γ is optimal here
    0.0
    """
    kind, coefficients, scale = regulariser(mdp, gamma, weights, uncertainty)
    table = float_table("values", values)
    one_of_shapes("values", table, (mdp.horizon, mdp.states))
    counts = reachable_states(mdp)[:, :, None] & mdp.admissible
    occupancy = occupancy_measure(mdp, policy)
    q, z = occupancy[counts], slacks(mdp, table)[counts]
    c = np.broadcast_to(coefficients, counts.shape)[counts]
    if not ((q > 0.0) & (z > 0.0)).all() or (occupancy[~counts] > NEGLIGIBLE).any():
        return float("inf")
    if kind == ROOT:
        return float(((np.sqrt(z * q) - 0.5 * np.sqrt(c / z)) ** 2).sum())
    excess = q * z / c - 1.0
    return float(scale * (c * (excess - np.log1p(excess))).sum())


def slacks(mdp: TabularMDP, values: FloatArray) -> FloatArray:
    """Return z_h(s, a) = V_h(s) - r_h(s, a) - Σ P_h(s'|s, a)·V_{h+1}(s') for values (H, S); V_H = 0."""
    after = np.concatenate([values[1:], np.zeros((1, mdp.states))])
    expected = (mdp.kernel @ after[:, None, :, None])[..., 0]
    return np.asarray(values[:, :, None] - mdp.reward_steps - expected)
