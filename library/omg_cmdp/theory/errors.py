"""What the oracles' regrets say about the errors of the model, and these errors about the regret of the agent."""

from __future__ import annotations

import math

from omg_cmdp.validation import at_least_zero, number, positive_integer, probability


def reward_error(*, horizon: int, delta: float, reward_regret: float) -> float:
    """Return a number that E_sq = Σ_t Σ q·(f̂ - f*)² exceeds at some T with probability at most δ/2.

        2H/(1 - e^-y)·(c·R_sq + log(2/δ)),     y = 2(c - c²)·H,     c = 1/(2·max(H, 2))

    It is 1.69·R_sq + 16.9·log(2/δ) for H = 5, in the place of 2·R_sq + 80·log(2/δ) in Levy et al. (2023), and below
    that for every H (docs/theory.md, E3). c depends on H alone, so that R_sq may be measured.

    >>> round(reward_error(horizon=5, delta=0.05, reward_regret=10.0), 1)
    79.0
    """
    horizon = positive_integer("horizon", horizon)
    share = 0.5 / max(horizon, 2)
    seen = -math.expm1(-2.0 * (share - share * share) * horizon)
    deviation = math.log(2.0 / probability("delta", delta))
    return 2.0 * horizon / seen * (share * number("reward_regret", reward_regret) + deviation)


def dynamics_error(*, horizon: int, delta: float, dynamics_regret: float) -> float:
    """Return R_log + 2H·log(2H/δ), which E_hel = Σ_t Σ q·D²(P̂, P*) exceeds with probability at most δ/2.

    Levy et al. (2023), the concentration of the log-loss regret.

    >>> round(dynamics_error(horizon=5, delta=0.05, dynamics_regret=10.0), 1)
    63.0
    """
    twice = 2.0 * positive_integer("horizon", horizon)
    return number("dynamics_regret", dynamics_regret) + twice * math.log(twice / probability("delta", delta))


def estimation(*, horizon: int, reward_error: float, dynamics_error: float) -> float:
    """Return C = 1.36·E_sq + (4.42H² + 6.12H⁴)·E_hel, so that Σ_t ¼·Σ q̂·err² <= C (docs/theory.md, E10).

    >>> estimation(horizon=1, reward_error=1.0, dynamics_error=0.0)
    1.36
    """
    horizon = positive_integer("horizon", horizon)
    squares, divergences = at_least_zero("reward_error", reward_error), at_least_zero("dynamics_error", dynamics_error)
    return 1.36 * squares + (4.42 * horizon**2 + 6.12 * horizon**4) * divergences


def value_error(*, horizon: int, episodes: int, reward_error: float, dynamics_error: float) -> float:
    """Return √(TH·E_sq) + H·√(TH·E_hel), which Σ_t V̂^π - V^π does not exceed (docs/theory.md, E4).

    >>> value_error(horizon=4, episodes=25, reward_error=1.0, dynamics_error=1.0)
    50.0
    """
    steps = positive_integer("episodes", episodes, most=math.inf) * positive_integer("horizon", horizon)
    squares, divergences = at_least_zero("reward_error", reward_error), at_least_zero("dynamics_error", dynamics_error)
    return math.sqrt(steps * squares) + horizon * math.sqrt(steps * divergences)


def iterates_bound(certificate: float) -> float:
    """Return c + √(c² + 2c): |q/q̃ - 1| is no larger anywhere, q̃ the exact plan, q one with γ·ε <= c.

    From c >= r - 1 - log r; as a bound on the norm √Σ(q/q̃ - 1)² it holds too (docs/theory.md, E5).

    >>> iterates_bound(0.0), iterates_bound(0.5)
    (0.0, 1.618033988749895)
    """
    certificate = at_least_zero("certificate", certificate)
    return certificate + math.sqrt(certificate * certificate + 2.0 * certificate)
