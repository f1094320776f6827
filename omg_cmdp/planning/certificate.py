"""The certificate in plain numpy: what a plan proves, for someone who does not trust the planner."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.mdp.occupancy import occupancy_measure, reachable_states
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.thresholds import NEGLIGIBLE
from omg_cmdp.planning.regularisers import regulariser
from omg_cmdp.validation import FloatArray, float_table, instance_of, one_of_shapes


def certificate(
    mdp: TabularMDP,
    policy: ArrayLike,
    values: ArrayLike,
    *,
    gamma: float | None = None,
    weights: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
    floor: float = 0.0,
) -> float:
    """Return an upper bound on γ·(L(q*) - L(q)), or with uncertainty on L(q*) - L(q), q the occupancy of `policy`.

    For any values V (H, S) with slacks z = V_h(s) - r_h(s, a) - Σ P_h(s'|s, a)·V_{h+1}(s') > 0, weak duality gives

        γ·(L(q*) - L(q)) <= Σ w·(x - 1 - ln x), x = γ·q·z/w,     or     L(q*) - L(q) <= Σ (√(z·q) - ½·√(u/z))²,

    over the reachable, admissible (h, s, a); with uncertainty and a floor m, and x = q·z/(½·√(u·q) + m),

        L(q*) - L(q) <= Σ ½·√(u·q)·(x - 1)²/x + m·(x - 1 - ln x),

    which also bounds the gap of the barrier with weights ½·√(u·q) + m. Values without positive slacks prove nothing,
    nor does a policy that is likely in a state that counts as unreachable: the answer is then inf.

    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.5, 0.5]]), horizon=1)
    >>> certificate(mdp, [[[0.5, 0.5]]], [[0.7]], gamma=10.0)  # V = r + A/γ is optimal here
    0.0
    """
    instance_of("mdp", mdp, TabularMDP)
    roots, barrier, scale = regulariser(mdp, gamma, weights, uncertainty, floor)
    table = float_table("values", values)
    one_of_shapes("values", table, (mdp.horizon, mdp.states))
    counts = reachable_states(mdp)[:, :, None] & mdp.admissible
    occupancy = occupancy_measure(mdp, policy)
    q, z = occupancy[counts], slacks(mdp, table)[counts]
    u, m = (np.broadcast_to(each, counts.shape)[counts] for each in (roots, barrier))
    if not ((q > 0.0) & (z > 0.0)).all() or (occupancy[~counts] > NEGLIGIBLE).any():
        return float("inf")
    if not barrier.any():
        return float(((np.sqrt(z * q) - 0.5 * np.sqrt(u / z)) ** 2).sum())
    root = 0.5 * np.sqrt(u * q)
    excess = q * z / (root + m) - 1.0
    return float(scale * (root * excess**2 / (1.0 + excess) + m * (excess - np.log1p(excess))).sum())


def slacks(mdp: TabularMDP, values: FloatArray) -> FloatArray:
    """Return z_h(s, a) = V_h(s) - r_h(s, a) - Σ P_h(s'|s, a)·V_{h+1}(s') for values (H, S); V_H = 0."""
    after = np.concatenate([values[1:], np.zeros((1, mdp.states))])
    expected = (mdp.kernel @ after[:, None, :, None])[..., 0]
    return np.asarray(values[:, :, None] - mdp.reward_steps - expected)
