import dataclasses
import inspect
import math

import numpy as np
import pytest

from omg_cmdp.theory import bounds, constants, errors
from omg_cmdp.theory.constants import Assumptions, printed_gamma, tight_gamma

SIZES = {"states": 5, "actions": 3, "horizon": 5, "episodes": 1000, "delta": 0.05}
REGRETS = {"reward_regret": 7.0, "dynamics_regret": 14.0}
ALL = SIZES | REGRETS
GIVEN = Assumptions(**ALL)

REGRET_BOUNDS = {
    "printed": bounds.as_printed,
    "printed, approximate": lambda given: bounds.as_printed(given, exact=False),
    "corrected": bounds.corrected,
    "corrected, certified": lambda given: bounds.corrected(given, certificate=1.0 / (16 * given.episodes)),
    "anytime": bounds.anytime,
}
each_bound = pytest.mark.parametrize("bound", REGRET_BOUNDS.values(), ids=REGRET_BOUNDS.keys())


def exponent(function, name, at, factor=2.0):
    """Return the slope of log f in log of one argument."""
    high = {name: type(at[name])(at[name] * factor)}
    return math.log(function(Assumptions(**(at | high))) / function(Assumptions(**at))) / math.log(factor)


@each_bound
@pytest.mark.parametrize("name", ["states", "actions", "horizon", "episodes", *REGRETS])
def test_bounds_grow_with_every_size(bound, name):
    assert bound(Assumptions(**(ALL | {name: ALL[name] * 2}))) > bound(GIVEN)


@each_bound
def test_bounds_fall_as_delta_grows(bound):
    assert bound(Assumptions(**(ALL | {"delta": 0.5}))) < bound(GIVEN)


@each_bound
def test_bounds_grow_as_the_root_of_the_episodes(bound):
    # The price of a certificate 1/(16T) vanishes as 1/√T; it is why the exponent is not exactly one half.
    assert exponent(bound, "episodes", ALL | {"episodes": 10**8}) == pytest.approx(0.5, abs=1e-4)


@each_bound
def test_bounds_grow_as_the_root_of_the_regrets(bound):
    once, twice = (bound(Assumptions(**SIZES, **dict.fromkeys(REGRETS, regret))) for regret in (1e9, 2e9))
    assert math.log2(twice / once) == pytest.approx(0.5, abs=1e-4)


def test_the_theorem_has_the_exponents_that_the_paper_states():
    # H^2.5·√(TSA·R): log terms and the third part are made small by a large R.
    large = ALL | {"reward_regret": 1e15, "dynamics_regret": 1e15, "horizon": 64, "states": 64}
    assert exponent(bounds.as_printed, "horizon", large) == pytest.approx(2.5, abs=0.01)
    assert exponent(bounds.as_printed, "states", large) == pytest.approx(0.5, abs=0.01)
    # The corrected main term, √(n·C) with n ≈ HSA and C ≈ 6.12·H⁴·R_log, has the same.
    assert exponent(bounds.corrected, "horizon", large) == pytest.approx(2.5, abs=0.02)


def test_the_corollary_for_finite_classes_pays_one_more_root_of_the_horizon():
    # E2: frozen for an episode, the oracles' regrets are (H/2)·log|F| and H·log|P|.
    def finite(horizon):
        classes = {"reward_regret": horizon / 2 * 1e9, "dynamics_regret": horizon * 1e9}
        return bounds.as_printed(Assumptions(**(SIZES | classes | {"horizon": horizon})))

    assert math.log2(finite(128) / finite(64)) == pytest.approx(3.0, abs=0.01)


def test_the_paper_gamma_is_the_best_for_the_paper_bound():
    for exact in (True, False):
        gamma = printed_gamma(GIVEN, exact=exact)
        best = bounds.as_printed(GIVEN, exact=exact)
        assert bounds.as_printed(GIVEN, exact=exact, gamma=gamma) == pytest.approx(best, rel=1e-12)
        assert all(bounds.as_printed(GIVEN, exact=exact, gamma=gamma * factor) > best for factor in (0.9, 1.1))


def test_the_tight_gamma_is_the_best_for_the_corrected_bound():
    gamma, best = tight_gamma(GIVEN), bounds.corrected(GIVEN)
    assert bounds.corrected(GIVEN, gamma=gamma) == pytest.approx(best, rel=1e-12)
    assert all(bounds.corrected(GIVEN, gamma=gamma * factor) > best for factor in (0.9, 1.1))


@pytest.mark.parametrize("approximate", [False, True])
def test_corrected_bounds_are_below_the_printed_ones(rng, approximate):
    for _ in range(300):
        episodes = int(10 ** rng.uniform(0, 8))
        given = Assumptions(
            **{name: int(rng.integers(1, 40)) for name in ("states", "actions", "horizon")},
            episodes=episodes,
            delta=rng.uniform(0.001, 0.999),
            **{name: 10 ** rng.uniform(-3, 6) for name in REGRETS},
        )
        certificate = 1.0 / (16.0 * episodes) if approximate else 0.0
        assert bounds.corrected(given, certificate=certificate) < bounds.as_printed(given, exact=not approximate)


def test_a_sequence_of_gammas_costs_what_its_parts_cost():
    steady = bounds.corrected(GIVEN, gamma=3.0)
    assert bounds.corrected(GIVEN, gamma=[3.0] * SIZES["episodes"]) == pytest.approx(steady, rel=1e-12)
    growing = np.linspace(1.0, 3.0, SIZES["episodes"])
    assert bounds.corrected(GIVEN, gamma=growing) > steady  # the same largest γ, more exploration


def test_anytime_gammas_cost_three_halves():
    gammas = tight_gamma(GIVEN) * np.sqrt(np.arange(1, SIZES["episodes"] + 1) / SIZES["episodes"])
    summed, claimed = bounds.corrected(GIVEN, gamma=gammas), bounds.anytime(GIVEN)
    assert summed <= claimed <= summed * 1.02
    assert claimed < 1.5 * bounds.corrected(GIVEN)
    assert bounds.anytime(dataclasses.replace(GIVEN, tuples=GIVEN.n)) == claimed
    assert bounds.anytime(dataclasses.replace(GIVEN, tuples=GIVEN.n - 1)) < claimed


def test_a_certificate_costs_less_than_the_paper_pays():
    exact, tolerance = bounds.corrected(GIVEN), 1.0 / (16.0 * SIZES["episodes"])
    certified = bounds.corrected(GIVEN, certificate=tolerance)
    assert exact < certified < exact * (1.0 + 0.4 / math.sqrt(SIZES["episodes"]))
    assert bounds.corrected(GIVEN, certificate=10.0) == math.inf


def test_known_dynamics_at_the_best_gamma():
    n, horizon, episodes, error = 20, 4, 50, 3.0
    gamma = math.sqrt(4 * (n - horizon) * episodes / error)
    summed = episodes * bounds.known_dynamics_round(
        tuples=n, horizon=horizon, gamma=gamma, squared_error=error / episodes
    )
    best = bounds.known_dynamics(tuples=n, horizon=horizon, episodes=episodes, reward_error=error)
    assert summed == pytest.approx(best, rel=1e-12)


def weighted_round(m, q, squares):
    """Return Σ m·(1 + q̂) + ¼·Σ q̂·err²/m, the right side of Theorem A."""
    return float((m * (1.0 + q) + 0.25 * q * squares / m).sum())


def test_plain_weights_give_the_bound_for_one_gamma(rng):
    q = rng.dirichlet(np.ones(6), size=3)
    squares = rng.random((3, 6))
    plain = weighted_round(np.full((3, 6), 0.1), q, squares)
    error = float((q * squares).sum())
    # n/γ + H/γ: without the -2d of the sharper form, which needs the optimal policy.
    assert plain == pytest.approx((18 + 3) / 10.0 + 2.5 * error, rel=1e-12)


def test_weights_by_uncertainty_nearly_minimise_the_weighted_bound(rng):
    # Smallest at m = ½·√(q̂u/(1 + q̂)), where it is Σ √(q̂u·(1 + q̂)); at ½·√(q̂u) it is 6.1 % more at most.
    q, u = rng.dirichlet(np.ones(10)), rng.random(10)
    best = np.sqrt(q * u * (1.0 + q)).sum()
    chosen = weighted_round(0.5 * np.sqrt(q * u), q, u)
    assert weighted_round(0.5 * np.sqrt(q * u / (1.0 + q)), q, u) == pytest.approx(best, rel=1e-12)
    assert best <= chosen <= 1.061 * best
    assert chosen <= 1.5 * np.sqrt(q * u).sum() <= 1.5 * math.sqrt(10 * (q * u).sum())


def test_the_best_floor_is_the_root_of_half_the_errors():
    given = {"tuples": 30, "episodes": 100, "estimation": 8.0}
    best = bounds.with_floor(**given, floor=2.0)
    assert best == pytest.approx(2.0 * math.sqrt(2.0 * 30 * 100 * 8.0), rel=1e-12)
    assert all(bounds.with_floor(**given, floor=2.0 * factor) > best for factor in (0.9, 1.1))


def test_the_floor_pays_for_itself():
    # Σ_t n·floor/√(nt) = floor·√n·Σ 1/√t <= 2·floor·√(nT).
    n, episodes, floor = 12, 400, 0.3
    paid = sum(floor / math.sqrt(n * t) * n for t in range(1, episodes + 1))
    limit = bounds.with_floor(tuples=n, episodes=episodes, floor=floor, estimation=0.0)
    assert 0.95 * limit < paid <= limit


def test_iterates_bound_inverts_the_certificate():
    for c in (1e-9, 1e-3, 0.1, 1.0, 10.0):
        t = errors.iterates_bound(c)
        assert t - math.log1p(t) >= c  # no r - 1 <= t is cut off
        assert t <= 2.0 * math.sqrt(c) or c > 0.25


@pytest.mark.parametrize(
    ("function", "changes", "message"),
    [
        (bounds.as_printed, {"delta": 1.0}, r"`delta` must lie in \(0, 1\), got 1.0"),
        (bounds.corrected, {"reward_regret": -1.0}, "`reward_regret` must be a number of at least 0, got -1.0"),
        (bounds.corrected, {"dynamics_regret": math.nan}, "`dynamics_regret` must be a number of at least 0, got nan"),
        (bounds.corrected, {"gamma": [1.0, 2.0]}, "`gamma` must be a number or have one entry per episode"),
        (bounds.corrected, {"gamma": 0.0}, "`gamma` must be positive, got 0.0"),
        (bounds.as_printed, {"gamma": -1.0}, "`gamma` must be a positive, finite number, got -1.0"),
        (bounds.corrected, {"certificate": -1.0}, "`certificate` must be a number of at least 0, got -1.0"),
    ],
)
def test_errors_name_argument_rule_and_value(function, changes, message):
    assumed = {name: changes.get(name, value) for name, value in ALL.items()}
    more = {name: value for name, value in changes.items() if name not in ALL}
    with pytest.raises(ValueError, match=message):
        function(Assumptions(**assumed), **more)


@pytest.mark.parametrize("module", [bounds, constants, errors])
def test_every_function_has_an_example(module):
    ours = [f for _, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == module.__name__]
    examples = "".join(line for f in (module, *ours) for line in f.__doc__.splitlines() if ">>>" in line)
    assert [f.__name__ for f in ours if f.__name__ not in examples and f.__name__[0] != "_"] == []
