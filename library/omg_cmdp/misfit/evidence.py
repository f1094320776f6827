"""The evidence against a class of functions: score statistics along directions, as e-values that hold at every time.

For examples i of one pair, with residuals e_i = y_i - f̂_i of an oracle, weights 1/σ² of their noise, and a direction w
from which the tangents of the class were taken out,

    u = Σ w_i·e_i/σ²,   v = Σ w_i²/σ²,   E = ∫ exp(δu - ½δ²v) dN(δ; 0, τ²) = exp(½·u²/(v + τ⁻²)) / √(1 + vτ²).

If the class holds the truth, E is a martingale of mean 1 as examples arrive, for a linear class and normal noise: what
the oracle has not learned yet is a tangent, and has no part in u. So E exceeds 1/α at any time with probability at most
α (Ville). For other noise and for curved classes this holds by the normal approximation, which is why a pair takes part
only when it has enough examples. Transitions have one statistic for each next state, with logits in the place of δ.

E-values are combined by means, and over pairs that share no examples by products: Π (1 - π + π·E) supposes that a share
π of all pairs is wrong, and the mean over several π needs no guess of it.
"""

from __future__ import annotations

import math

import numpy as np

from omg_cmdp.validation import FloatArray, IntArray

REWARD_PRECISION, LOGIT_PRECISION = 1.0 / 0.15**2, 1.0
"""τ⁻²: what a class may miss, in rewards of range 1, and in logits."""
LEAST_NOISE = 0.02**2
"""σ² is at least this: smaller errors of a prediction are not worth reporting."""
PRIOR_NOISE = 4.0
"""Examples of variance ¼, the largest, that are added to those of a pair."""
FEWEST = 10
"""A pair takes part once it has this many examples more than parameters."""
FEWEST_EVENTS = 5.0
"""A next state takes part once this many arrivals are expected in it, and as many elsewhere."""
SHARES = (0.5, 0.1, 0.02)
"""The shares π of pairs that may be wrong."""


def log_e(score: FloatArray, information: FloatArray, precision: float) -> FloatArray:
    """Return log E for scores u, information v and precision τ⁻².

    >>> log_e(np.array([0.0, 10.0]), np.array([0.0, 10.0]), 1.0).round(2)
    array([0.  , 3.35])
    """
    return np.asarray(0.5 * score**2 / (information + precision) - 0.5 * np.log1p(information / precision))


def log_mean(logs: FloatArray, axis: int = 0) -> FloatArray:
    """Return log(mean(exp(logs))).

    >>> float(log_mean(np.log([1.0, 3.0])).round(6)) == round(math.log(2.0), 6)
    True
    """
    most = logs.max(axis=axis, keepdims=True)
    return np.asarray(np.log(np.exp(logs - most).mean(axis=axis)) + most.squeeze(axis))


def over_groups(logs: FloatArray) -> FloatArray:
    """Return the log e-values (K,) of log e-values (G, K) of groups without common examples."""
    tables = [np.logaddexp(math.log1p(-share), math.log(share) + logs).sum(axis=0) for share in SHARES]
    return log_mean(np.array(tables))


def without_tangents(directions: FloatArray, tangents: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the residuals (n, K) of `directions` from a regression on `tangents` (n, d) with `weights` (n,)."""
    if not tangents.shape[1]:
        return directions
    roots = np.sqrt(weights)[:, None]
    fit = np.linalg.lstsq(roots * tangents, roots * directions)[0]
    return np.asarray(directions - tangents @ fit)


def reward_scores(
    directions: FloatArray, tangents: FloatArray, residuals: FloatArray, slack: float
) -> tuple[FloatArray, FloatArray]:
    """Return u and v (K,) of one group of n examples: directions (n, K), tangents (n, d), residuals (n,)."""
    left = without_tangents(np.column_stack([residuals, directions]), tangents, np.ones(len(residuals)))
    errors, moved = left[:, 0], left[:, 1:]
    freedom = len(errors) - tangents.shape[1]
    noise = max((0.25 * PRIOR_NOISE + float(errors @ errors)) / (PRIOR_NOISE + freedom), LEAST_NOISE)
    return _beyond_slack(moved.T @ errors, moved, slack) / noise, (moved**2).sum(axis=0) / noise


def transition_scores(
    directions: FloatArray, tangents: FloatArray, predictions: FloatArray, arrivals: IntArray, slack: float
) -> list[tuple[FloatArray, FloatArray]]:
    """Return u and v (K,) of each next state that is neither rare nor sure: predictions (n, S), arrivals (n,)."""
    spreads = predictions * (1.0 - predictions)
    found = []
    for state in np.flatnonzero(spreads.sum(axis=0) >= FEWEST_EVENTS).tolist():
        weights = spreads[:, state]
        moved = without_tangents(directions, tangents, weights)
        scores = moved.T @ ((arrivals == state) - predictions[:, state])
        found.append((_beyond_slack(scores, moved, slack), (moved**2).T @ weights))
    return found


def _beyond_slack(scores: FloatArray, moved: FloatArray, slack: float) -> FloatArray:
    """Return what is left of scores when predictions may be off by `slack`."""
    return np.asarray(np.sign(scores) * np.maximum(np.abs(scores) - slack * np.abs(moved).sum(axis=0), 0.0))
