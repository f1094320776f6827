"""The regret bounds as numbers: what the paper prints, and what holds with the constants of docs/theory.md.

Every bound is a sum of three parts. Exploration: what the barrier costs in the model, n·T/γ. Estimation: γ times the
errors of the oracles. And the error of the value of the policies that were played.

    >>> sizes = {"states": 5, "actions": 3, "horizon": 5, "episodes": 5000}
    >>> given = Assumptions(**sizes, delta=0.05, reward_regret=6.9, dynamics_regret=13.9)
    >>> " > ".join(f"{bound(given):.1e}" for bound in (as_printed, anytime, corrected))
    '3.8e+06 > 8.7e+05 > 5.8e+05'
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from omg_cmdp.theory.constants import APPROXIMATE, EXACT, Assumptions, tight_gamma
from omg_cmdp.theory.errors import iterates_bound
from omg_cmdp.validation import at_least_zero, float_table, instance_of, positive_integer, positive_number


def as_printed(given: Assumptions, *, gamma: float | None = None, exact: bool = True) -> float:
    """Return the paper's bound on the regret of T episodes, at its own γ or at the one given.

        γ·c·H⁴·(2R_sq + R_log + 18H·log(2H/δ)) + HSAT/γ + √(TH·Ē_sq) + 2·√(TH·Ē_hel)  [+ ½·√(TH), if not exact]

    c = 31 for exact plans; 62 for plans with γ·ε = 1/(16T), whose term 2T·√(εγH) is the one in brackets. At the
    paper's γ the first two terms are 2·H^2.5·√(c·TSA·(...)). The last term lacks a factor H (E4); the theorem holds
    nevertheless, because its main term is far from tight.
    """
    instance_of("given", given, Assumptions)
    instance_of("exact", exact, bool)
    pairs, horizon, episodes = given.states * given.actions, given.horizon, given.episodes
    constant = EXACT if exact else APPROXIMATE
    if gamma is None:
        tuned = math.sqrt(constant * episodes * pairs * given.printed_errors)
        main = 2.0 * math.pow(horizon, 2.5) * tuned
    else:
        gamma = positive_number("gamma", gamma)
        main = gamma * constant * horizon**4 * given.printed_errors + horizon * pairs * episodes / gamma
    steps = episodes * horizon
    rest = math.sqrt(steps * given.reward_error) + 2.0 * math.sqrt(steps * given.dynamics_error)
    return main + rest + (0.0 if exact else 0.5 * math.sqrt(steps))


def corrected(given: Assumptions, *, gamma: float | Sequence[float] | None = None, certificate: float = 0.0) -> float:
    """Return a bound on the regret of T episodes that holds with probability 1 - δ, at the γ or the γ_t given.

        (1+τ)·Σ_t n/γ_t + max γ_t·C/(1-τ) + √(TH·Ē_sq) + H·√(TH·Ē_hel),   C = 1.36·Ē_sq + (4.42H² + 6.12H⁴)·Ē_hel

    Without `gamma` it is √(nT/C), and the first two terms are 2·√(nTC) for exact plans. τ = c + √(c² + 2c) for plans
    whose `certificate` γ·ε is c: about 0.35/√T at the paper's 1/(16T), where the paper pays a factor of √2.
    """
    instance_of("given", given, Assumptions)
    gammas = float_table("gamma", tight_gamma(given) if gamma is None else gamma)
    if gammas.shape not in ((), (given.episodes,)):
        raise ValueError(f"`gamma` must be a number or have one entry per episode, got shape {gammas.shape}")
    if not (gammas > 0.0).all():  # nor if one is no number
        raise ValueError(f"`gamma` must be positive, got {gammas.min()}")
    stretch = iterates_bound(certificate)
    if stretch >= 1.0:
        return math.inf
    exploration = (1.0 + stretch) * given.n * given.episodes * float((1.0 / gammas).mean())
    return exploration + float(gammas.max()) * given.estimation / (1.0 - stretch) + given.value_error


def anytime(given: Assumptions) -> float:
    """Return 3·√(nCT) + √(TH·Ē_sq) + H·√(TH·Ē_hel), the bound for γ_t = √(nt/C_t) with C_t/t not increasing."""
    instance_of("given", given, Assumptions)
    return 3.0 * math.sqrt(given.n * given.estimation * given.episodes) + given.value_error


def known_dynamics_round(*, tuples: int, horizon: int, gamma: float, squared_error: float) -> float:
    """Return (n-H)/γ + (γ/4)·Σ q̂·(f* - f̂)²: the regret of one episode is no larger if the dynamics are known.

    `squared_error` is the sum. Attained for H = 1 (docs/theory.md, Theorem A).

    >>> known_dynamics_round(tuples=3, horizon=1, gamma=10.0, squared_error=0.04)
    0.30000000000000004
    """
    gamma, error = positive_number("gamma", gamma), at_least_zero("squared_error", squared_error)
    return _choices(tuples, horizon) / gamma + 0.25 * gamma * error


def known_dynamics(*, tuples: int, horizon: int, episodes: int, reward_error: float) -> float:
    """Return √((n-H)·T·E_sq): the regret of T episodes at γ = √(4(n-H)T/E_sq), if the dynamics are known.

    >>> known_dynamics(tuples=5, horizon=1, episodes=100, reward_error=4.0)
    40.0
    """
    episodes, error = positive_integer("episodes", episodes, most=math.inf), at_least_zero("reward_error", reward_error)
    return math.sqrt(_choices(tuples, horizon) * episodes * error)


BUDGET = 3.0
"""What the default rule may risk, in units of √((n-H)·t·Ē): twice the 3/2 that the barrier is granted by its theorem.

Plausible sets are wide where there is much to learn. With 3/2, linear rewards of 30 features used up the budget before
T = 500, and the barrier then cost several times what the rule loses by itself.
"""


def accounted(*, tuples: int, horizon: int, episodes: int, error: float) -> float:
    """Return 9/2·√((n-H)·T·Ē) + 2·√T: the regret of T episodes of the default rule, if the dynamics are known.

    Ē = `errors.reward_error`, of a class whose regret does not grow with T; 5 for 9/2 if it does
    (docs/theory.md, Theorem G).

    >>> accounted(tuples=5, horizon=1, episodes=100, error=4.0)
    200.0
    """
    granted = known_dynamics(tuples=tuples, horizon=horizon, episodes=episodes, reward_error=error)
    return (BUDGET + 1.5) * granted + 2.0 * math.sqrt(episodes)


def _choices(tuples: int, horizon: int) -> int:
    """Return n - H, which is not negative: every step has a tuple."""
    choices = positive_integer("tuples", tuples) - positive_integer("horizon", horizon)
    if choices < 0:
        raise ValueError(f"`tuples` must be at least the horizon {horizon}, got {tuples}")
    return choices


def with_floor(*, tuples: int, episodes: int, floor: float, estimation: float) -> float:
    """Return 2·floor·√(nT) + (√(nT)/floor)·C: what a barrier with m >= floor/√(nt) adds to the cost of its weights.

    The first term pays for the floor itself, the second bounds Σ_t ¼·Σ q̂·err²/m by the oracles' errors, C =
    `estimation`, whatever the gains or uncertainties say. floor = √(C/2) makes it smallest: 2·√(2nTC).

    >>> with_floor(tuples=4, episodes=25, floor=1.0, estimation=4.0)
    60.0
    """
    floor, estimation = positive_number("floor", floor), at_least_zero("estimation", estimation)
    tuples, episodes = positive_integer("tuples", tuples), positive_integer("episodes", episodes, most=math.inf)
    return math.sqrt(tuples * episodes) * (2.0 * floor + estimation / floor)
