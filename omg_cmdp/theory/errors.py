"""What the oracles' regrets say about the errors of the model, and these errors about the regret of the agent."""

from __future__ import annotations

import math

from omg_cmdp.validation import probability


def reward_error(*, horizon: int, delta: float, reward_regret: float) -> float:
    """Return 2·R_sq + 16H·log(2/δ), which E_sq = Σ_t Σ q·(f̂ - f*)² exceeds with probability at most δ/2.

    Levy et al. (2023), the concentration of the square-loss regret as the appendix proves it; the main text lacks the
    factor 2 (docs/theory.md, E3).

    >>> round(reward_error(horizon=5, delta=0.05, reward_regret=10.0), 1)
    315.1
    """
    return 2.0 * checked_regret("reward_regret", reward_regret) + 16.0 * horizon * math.log(
        2.0 / probability("delta", delta)
    )


def dynamics_error(*, horizon: int, delta: float, dynamics_regret: float) -> float:
    """Return R_log + 2H·log(2H/δ), which E_hel = Σ_t Σ q·D²(P̂, P*) exceeds with probability at most δ/2.

    Levy et al. (2023), the concentration of the log-loss regret.

    >>> round(dynamics_error(horizon=5, delta=0.05, dynamics_regret=10.0), 1)
    63.0
    """
    return checked_regret("dynamics_regret", dynamics_regret) + 2.0 * horizon * math.log(
        2.0 * horizon / probability("delta", delta)
    )


def estimation(*, horizon: int, reward_error: float, dynamics_error: float) -> float:
    """Return C = 1.36·E_sq + (4.42H² + 6.12H⁴)·E_hel, so that Σ_t ¼·Σ q̂·err² <= C (docs/theory.md, E10).

    >>> estimation(horizon=1, reward_error=1.0, dynamics_error=0.0)
    1.36
    """
    return 1.36 * reward_error + (4.42 * horizon**2 + 6.12 * horizon**4) * dynamics_error


def value_error(*, horizon: int, episodes: int, reward_error: float, dynamics_error: float) -> float:
    """Return √(TH·E_sq) + H·√(TH·E_hel), which Σ_t V̂^π - V^π does not exceed (docs/theory.md, E4).

    >>> value_error(horizon=4, episodes=25, reward_error=1.0, dynamics_error=1.0)
    50.0
    """
    steps = episodes * horizon
    return math.sqrt(steps * reward_error) + horizon * math.sqrt(steps * dynamics_error)


def iterates_bound(certificate: float) -> float:
    """Return c + √(c² + 2c): |q/q̃ - 1| is no larger anywhere, q̃ the exact plan, q one with γ·ε <= c.

    From c >= r - 1 - log r; as a bound on the norm √Σ(q/q̃ - 1)² it holds too (docs/theory.md, E5).

    >>> iterates_bound(0.0), iterates_bound(0.5)
    (0.0, 1.618033988749895)
    """
    if not certificate >= 0.0:
        raise ValueError(f"`certificate` must be at least 0, got {certificate!r}")
    return certificate + math.sqrt(certificate * certificate + 2.0 * certificate)


def checked_regret(name: str, value: float) -> float:
    """Return `value`, at least 0."""
    if not value >= 0.0:
        raise ValueError(f"`{name}` must be at least 0, got {value!r}")
    return value
