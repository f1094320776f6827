"""Measured regret never exceeds the proven bound, however outcomes are chosen; the textbook's rate, frozen, does."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from library.tests.oracles.catalogue import DIMENSION, RATED, STATES, UNRATED
from omg_cmdp.checks import OUTCOMES, VISITS, challenge
from omg_cmdp.oracles import AggregateDynamics, FiniteDynamics, FiniteRewards, KnownDynamics, StepwiseDynamics

# horizon -> episodes: roughly, the longer the one, the fewer of the other.
LENGTHS = {1: 300, 2: 200, 5: 120, 10: 80, 50: 30}

# The others are for `make test-all`.
QUICK = (5,)


def lengths(*horizons):
    """Return the parameters of tests for some horizons."""
    return pytest.mark.parametrize(
        "horizon", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in horizons]
    )


each_length = lengths(*LENGTHS)
each_outcome = pytest.mark.parametrize("outcomes", OUTCOMES)


def challenged(oracle, contexts, horizon, outcomes, visits, rng, episodes=None):
    """Return the record of a challenge."""
    options = {"episodes": episodes or LENGTHS[horizon], "horizon": horizon, "generator": rng}
    return challenge(oracle, contexts, outcomes=outcomes, visits=visits, **options)


def check(oracle, record, best_loss):
    bound = oracle.regret_bound(len(record.contexts), oracle.horizon)
    assert math.isfinite(bound)
    assert math.isclose(oracle.loss, record.loss, rel_tol=1e-9, abs_tol=1e-6)
    assert record.loss - best_loss <= bound + 1e-6


def has_closed_form(oracle, contexts):
    """Return whether something is proven, and the best loss is known; some learn the size of their class by asking."""
    oracle.predict(contexts[0])
    return oracle.regret_bound(1, oracle.horizon) < math.inf and not math.isnan(oracle.best_loss())


CLOSED_FORM = [name for name, (contexts, build) in RATED.items() if has_closed_form(build(2, "proven"), contexts)]
UNRATED_CLOSED_FORM = [name for name, (contexts, build) in UNRATED.items() if has_closed_form(build(2), contexts)]


@each_outcome
@each_length
@pytest.mark.parametrize("rate", ["guarded", "proven"])
@pytest.mark.parametrize("name", CLOSED_FORM)
def test_regret_is_within_the_bound(name, rate, horizon, outcomes, rng):
    contexts, build = RATED[name]
    for visits in VISITS:
        for shown in (contexts, contexts[:1]):  # in turn, and one that is repeated
            oracle = build(horizon, rate)
            record = challenged(oracle, shown, horizon, outcomes, visits, rng)
            check(oracle, record, oracle.best_loss())


@each_outcome
@each_length
@pytest.mark.parametrize("name", UNRATED_CLOSED_FORM)
def test_regret_without_a_choice_of_rates_is_within_the_bound(name, horizon, outcomes, rng):
    contexts, build = UNRATED[name]
    oracle = build(horizon)
    record = challenged(oracle, contexts, horizon, outcomes, "all pairs", rng)
    check(oracle, record, oracle.best_loss())


@each_outcome
@lengths(1, 5, 50)
@pytest.mark.parametrize("rate", ["guarded", "proven"])
@pytest.mark.parametrize("name", ["basis", "softmax", "sparse softmax"])
def test_regret_against_a_comparator_found_by_optimisation(name, rate, horizon, outcomes, rng):
    """Classes whose best function has no closed form: any function of the class is a comparator, a good one is best."""
    contexts, build = RATED[name]
    oracle = build(horizon, rate)
    record = challenged(oracle, contexts, horizon, outcomes, "one pair", rng)
    best = best_basis if name == "basis" else best_softmax
    check(oracle, record, best(oracle, record))


def best_basis(oracle, record):
    """EM for the base tables at the one pair visited."""
    features = np.repeat(record.contexts, oracle.horizon, axis=0)
    outcomes = np.concatenate(record.outcomes)
    bases = np.full((DIMENSION, STATES), 1.0 / STATES)
    for _ in range(500):
        joint = features.T * bases[:, outcomes]
        shares = joint / np.maximum(joint.sum(axis=0), 1e-300)
        counts = np.stack([shares[:, outcomes == s].sum(axis=1) for s in range(STATES)], axis=1) + 1e-12
        bases = counts / counts.sum(axis=1, keepdims=True)
    return -np.log((features.T * bases[:, outcomes]).sum(axis=0)).sum()


def best_softmax(oracle, record):
    """The best weights in the ball at the one pair visited, by a penalty that is exact inside the ball."""
    rows = [oracle.forecasters.prepare(context) for context in record.contexts]
    features, outcomes = np.repeat(rows, oracle.horizon, axis=0), np.concatenate(record.outcomes)
    possible = oracle.forecasters.successors[: oracle.forecasters.starts[1]]
    labels = np.searchsorted(possible, outcomes)

    def loss(flat):
        weights = flat.reshape(len(possible), -1)
        norm = np.linalg.norm(weights)
        weights = weights * min(1.0, oracle.forecasters.weight_norm / max(norm, 1e-12))
        logits = features @ weights.T
        top = logits.max(axis=1, keepdims=True)
        return (np.log(np.exp(logits - top).sum(axis=1)) + top[:, 0] - logits[np.arange(len(labels)), labels]).sum()

    start = np.zeros(len(possible) * features.shape[1]) + 1e-3
    return min(minimize(loss, start, method="L-BFGS-B").fun, loss(0 * start))


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize(
    "build",
    [
        lambda tables, h: FiniteDynamics(lambda _: tables, horizon=h),
        lambda tables, h: FiniteDynamics(lambda _: tables, horizon=h, rate="proven"),
        lambda tables, h: AggregateDynamics([KnownDynamics(each, horizon=h) for each in tables], horizon=h),
        lambda tables, h: StepwiseDynamics([FiniteDynamics(lambda _: tables, horizon=1) for _ in range(h)]),
    ],
    ids=["guarded", "proven", "aggregate", "stepwise"],
)
def test_two_certain_tables_that_are_right_in_turn(build, horizon):
    """Each excludes what the other says, and in every third episode what happens is excluded by both.

    With losses cut off, -log max(P, ε), the regret is T·H·log(2)/2: 208 for H = 3, T = 200, without the third.
    """
    tables = np.stack([np.broadcast_to(row, (3, 1, 3)) for row in np.eye(3)[:2]])
    for turns in ([0, 1], [0, 1, 2]):
        oracle = build(tables, horizon)
        for t in range(200):
            oracle.predict(0)
            oracle.update(0, [0] * horizon, [0] * horizon, [turns[t % len(turns)]] * horizon)
            regret = oracle.loss - oracle.best_loss()
            assert regret <= oracle.regret_bound(t + 1, horizon) + 1e-12 * oracle.loss
        assert (oracle.predict(0)[..., 2] == 0.0).all()  # what all exclude stays excluded
        assert all(np.isfinite(array).all() for array in oracle.state().values() if array.dtype.kind == "f")


@pytest.mark.parametrize("rate", ["realizable", "proven", "guarded"])
def test_the_textbook_rate_fails_when_frozen(rate, rng):
    """Why rates are divided by H.

    16 functions, 8 contexts in turn, predictions frozen for H = 10 steps, outcomes against them. At the textbook's
    rate, made for an update after each example, the forecaster follows every swing to the end and is then wrong ten
    times: its regret is linear in T, where the textbook's bounds are 1.4 and 2.8.
    """
    horizon, episodes, contexts = 10, 200, range(8)
    opinions = rng.integers(0, 2, (len(contexts), 16, 1, 1)).astype(float)
    tables = rng.dirichlet(np.full(5, 0.3), (len(contexts), 16, 5, 1)) * (1 - 5e-6) + 1e-6
    rewards = FiniteRewards(lambda context: opinions[context], horizon=horizon, rate=rate)
    dynamics = FiniteDynamics(lambda context: tables[context], horizon=horizon, rate=rate)
    regrets = []
    for oracle in (rewards, dynamics):
        challenged(oracle, contexts, horizon, "against", "one pair", rng, episodes)
        regrets.append(oracle.loss - oracle.best_loss())
    if rate == "realizable":
        assert regrets[0] > 200 * 0.5 * math.log(16)
        assert regrets[1] > 1500 * math.log(16)
    else:
        assert regrets[0] <= rewards.regret_bound(episodes, horizon) <= 0.5 * horizon * math.log(32)
        assert regrets[1] <= dynamics.regret_bound(episodes, horizon) <= horizon * math.log(32)


@pytest.mark.parametrize("rate", ["realizable", "guarded", "proven"])
def test_on_data_that_fit_the_class_the_guard_costs_little(rate, rng):
    """Realizable data, H = 10: the textbook's rate learns fast, the guarded one pays at most H·log 2 more."""
    tables = rng.dirichlet(np.ones(3), (16, 3, 2))
    oracle = FiniteDynamics(lambda context: tables, horizon=10, rate=rate)
    twin = FiniteDynamics(lambda context: tables, horizon=10, rate="realizable")
    for _ in range(100):
        states, actions = rng.integers(3, size=10), rng.integers(2, size=10)
        reached = [rng.choice(3, p=tables[5, s, a]) for s, a in zip(states, actions, strict=True)]
        oracle.update(0, states, actions, reached)
        twin.update(0, states, actions, reached)
    if rate != "proven":
        assert oracle.loss <= twin.loss + 10 * math.log(2)
    assert oracle.loss - oracle.best_loss() <= 10 * math.log(32)
