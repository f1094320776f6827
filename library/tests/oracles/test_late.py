"""Outcomes that come late: the loss of what was predicted never exceeds the bound, in whatever order they come."""

import math

import numpy as np
import pytest

from library.tests.oracles.catalogue import DIMENSION, LABELS, RATED, REWARDS, SIZE, TRANSITIONS, VECTORS
from omg_cmdp import delays, oracles
from omg_cmdp.checks import challenge

ORDERS = {
    "constant": lambda d: delays.Fixed(d),
    "random": lambda d: delays.UpTo(d // 2),
    "reversed": lambda d: delays.Reversed(d),
    "batches": lambda d: lambda t: d - (t - 1) % (d + 1),
}
CASES = ((1, "against in blocks"), (6, "against"), (6, "correlated"), (10, "alternating"))
"""Delays, and how outcomes are chosen."""
EPISODES = {1: 60, 5: 40}

opposite = {label: np.stack([np.zeros((3, 2)), np.ones((3, 2))]) for label in LABELS}
"""Two functions, none of which is ever unsure."""


def late_finite(h, d):
    return oracles.FiniteDynamics(TRANSITIONS, horizon=h, rate="proven", delay=d, smoothing=0.02)


LATE = {
    "finite rewards": (LABELS, lambda h, d: oracles.FiniteRewards(REWARDS, horizon=h, rate="proven", delay=d)),
    "two functions": (LABELS, lambda h, d: oracles.FiniteRewards(opposite, horizon=h, rate="proven", delay=d)),
    "finite dynamics": (LABELS, late_finite),
    "reward counts": (LABELS, lambda h, d: RATED["reward counts"][1](h, "proven")),
    "transition counts": (LABELS, lambda h, d: RATED["transition counts"][1](h, "proven")),
    "reward counts, guarded": (LABELS, lambda h, d: RATED["reward counts"][1](h, "guarded")),
    "transition counts, guarded": (LABELS, lambda h, d: RATED["transition counts"][1](h, "guarded")),
    "transition counts, one prior": (
        LABELS,
        lambda h, d: oracles.CountDynamics(**SIZE, horizon=h, rate="guarded", prior=0.75),
    ),
    "linear": (
        VECTORS,
        lambda h, d: oracles.LinearRewards(**SIZE, dimension=DIMENSION, horizon=h, rate="proven", delay=d),
    ),
}


def challenged(oracle, contexts, delay, rng, *, outcomes="against", visits="one pair", episodes=None):
    """Return the regret of what was predicted, and the bound for outcomes that came as late as they did."""
    size = {"episodes": episodes or EPISODES[oracle.horizon], "horizon": oracle.horizon, "generator": rng}
    record = challenge(oracle, contexts, outcomes=outcomes, visits=visits, delay=delay, **size)
    most, constant = record.late
    bound = oracle.delayed_regret_bound(size["episodes"], oracle.horizon, most, constant=constant)
    return record.loss - oracle.best_loss(), bound


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("horizon", EPISODES)
@pytest.mark.parametrize("name", LATE)
def test_regret_is_within_the_bound_in_any_order(name, horizon, order, rng):
    contexts, build = LATE[name]
    for delay, outcomes in CASES:
        oracle = build(horizon, delay)
        visits = "one pair" if delay < 10 else "all pairs"
        regret, bound = challenged(oracle, contexts, ORDERS[order](delay), rng, outcomes=outcomes, visits=visits)
        assert regret <= bound < math.inf


@pytest.mark.parametrize("horizon", EPISODES)
@pytest.mark.parametrize("name", ["finite rewards", "finite dynamics", "reward counts", "transition counts", "linear"])
def test_copies_have_the_bounds_of_their_oracles(name, horizon, rng):
    contexts, build = RATED[name]
    copies = oracles.CopiesRewards if "dynamics" not in name and "transition" not in name else oracles.CopiesDynamics
    for delay, outcomes in CASES:
        oracle = copies(build(horizon, "guarded"), delay=delay)
        regret, bound = challenged(oracle, contexts, delay, rng, outcomes=outcomes)
        alone = build(horizon, "guarded")
        alone.predict(contexts[0])
        each = alone.regret_bound(-(-EPISODES[horizon] // (delay + 1)), horizon)
        assert regret <= bound == (delay + 1) * each < math.inf


def test_each_copy_is_the_oracle_of_every_third_episode(rng):
    """With a constant delay of two the predictions are those of three oracles that take turns, without delay."""
    oracle = oracles.CopiesRewards(oracles.FiniteRewards(REWARDS, horizon=2), delay=2)
    turns = [oracles.FiniteRewards(REWARDS, horizon=2) for _ in range(3)]
    waiting = []
    for t in range(30):
        context = LABELS[rng.integers(3)]
        np.testing.assert_array_equal(oracle.predict(context), turns[t % 3].predict(context))
        np.testing.assert_array_equal(oracle.uncertainty(context), turns[t % 3].uncertainty(context))
        episode = context, rng.integers(3, size=2), rng.integers(2, size=2), rng.random(2)
        turns[t % 3].update(*episode)
        waiting.append(episode)
        if len(waiting) > 2:
            oracle.update(*waiting.pop(0))


@pytest.mark.parametrize(("rate", "horizon"), [("proven", 5), ("guarded", 5), ("guarded", 1)])
@pytest.mark.parametrize("delay", [10, 30])
def test_without_the_slower_rate_late_outcomes_break_the_bound(rate, horizon, delay, rng):
    """Why there is one: at the rate for outcomes that come at once the oracle follows every swing too late."""
    oracle = oracles.FiniteRewards(opposite, horizon=horizon, rate=rate)
    regret, bound = challenged(oracle, LABELS[:1], delay, rng, episodes=400)
    slow = oracles.FiniteRewards(opposite, horizon=horizon, rate="proven", delay=delay)
    slow_regret, slow_bound = challenged(slow, LABELS[:1], delay, rng, episodes=400)
    assert bound == math.inf
    assert regret > oracle.regret_bound(400, horizon)
    assert slow_regret <= slow_bound


def test_copies_break_where_outcomes_come_at_once(rng):
    """Each then learns from the episodes that another one predicted; `regret_bound` says that nothing is proven."""
    oracle = oracles.CopiesRewards(oracles.FiniteRewards(opposite, horizon=1), delay=1)
    regret, bound = challenged(oracle, LABELS[:1], 0, rng, outcomes="alternating", episodes=200)
    assert regret > 20.0
    assert bound == math.inf == oracle.regret_bound(200, 1)


def test_copies_of_a_step_break_where_somebody_drops_out_before_it():
    """Of a constant delay only the first step can be sure: nothing is claimed. Copies of all steps keep their bound."""
    ones = {"c": np.array([[[0.0]], [[1.0]]])}

    def steps(make):
        return oracles.StepwiseRewards([make(oracles.FiniteRewards(ones, horizon=1)) for _ in range(2)])

    inside, around = steps(lambda each: oracles.CopiesRewards(each, delay=1)), steps(lambda each: each)
    regrets = []
    for oracle in (inside, oracles.CopiesRewards(around, delay=1)):
        waiting, loss = [], 0.0
        for t in range(100):
            said = oracle.predict("c")[: 2 - t % 2, 0, 0]  # every other episode ends after one step
            rewards = np.array([1.0, float(said[-1] < 0.5)])[: len(said)]
            loss += ((said - rewards) ** 2).sum()
            waiting.append(("c", [0] * len(said), [0] * len(said), rewards))
            if len(waiting) > 1:
                oracle.update(*waiting.pop(0))
        oracle.update(*waiting.pop())
        regrets.append((loss - oracle.best_loss(), oracle.delayed_regret_bound(100, 2, 1, constant=True)))
    (broken, unclaimed), (kept, bound) = regrets
    assert broken > 20.0
    assert unclaimed == math.inf
    assert kept <= bound < math.inf
    assert inside.delayed_regret_bound(100, 1, 1, constant=True) < math.inf  # of one step, it is constant


@pytest.mark.parametrize("delay", [0, 1, 9])
@pytest.mark.parametrize("horizon", [1, 4])
def test_the_factor_is_needed(horizon, delay):
    """k contexts, one of two truths in each, d + 1 blind episodes: (d+1)·H·k/4 against 0, whatever is predicted.

    With N = 2^k this is (d+1)·H·log₂(N)/4; the bound has 3.6·(d+1)·H·log N. The truth is the one that costs more.
    """
    bits = np.array([[(i >> k) & 1 for k in range(3)] for i in range(8)], dtype=float)  # (N, k)
    functions = {k: bits[:, k].reshape(8, 1, 1) for k in range(3)}
    rate = {"rate": "proven", "delay": delay} if delay else {}
    oracle = oracles.FiniteRewards(functions, horizon=horizon, **rate)
    loss = 0.0
    for context in range(3):
        [[said]] = oracle.predict(context)
        truth = float(said < 0.5)
        loss += (delay + 1) * horizon * (said - truth) ** 2
        for _ in range(delay + 1):
            oracle.update(context, [0] * horizon, [0] * horizon, [truth] * horizon)
    assert oracle.best_loss() == 0.0
    assert 3 * (delay + 1) * horizon / 4.0 <= loss <= oracle.delayed_regret_bound(3 * (delay + 1), horizon, delay)


@pytest.mark.parametrize("norm", [0.1, 1.0])
def test_weights_in_the_ball_are_the_constrained_least_squares(norm, rng):
    """Against a brute-force search of the ball in two dimensions; in the large one the ridge decides."""
    sizes = {"states": 1, "actions": 1, "dimension": 2, "horizon": 1}
    oracle = oracles.LinearRewards(**sizes, rate="proven", delay=1, weight_norm=norm, ridge=0.5, intercept=False)
    features, rewards = rng.uniform(-0.7, 0.7, (30, 2)), rng.random(30)
    for z, r in zip(features, rewards, strict=True):
        oracle.update(z, [0], [0], [float(r > 0.5 - 0.4 * z[0])])
    targets = np.array([float(r > 0.5 - 0.4 * z[0]) for z, r in zip(features, rewards, strict=True)])
    angles, radii = np.meshgrid(np.linspace(0, 2 * np.pi, 721), np.linspace(0, norm, 301))
    weights = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=-1).reshape(-1, 2)
    losses = ((0.5 + weights @ features.T - targets) ** 2).sum(axis=1) + 2 * 0.5 * (weights**2).sum(axis=1)
    best = weights[losses.argmin()]
    for z in ([0.6, 0.0], [0.0, 0.6], [0.4, -0.4]):
        assert oracle.predict(z)[0, 0] == pytest.approx(np.clip(0.5 + best @ z, 0.0, 1.0), abs=2e-3)


def test_the_bounds_are_those_of_the_theorem():
    """The four lines of Theorem 8: adversaries that are known to us come nowhere near their constants."""
    size = {"states": 3, "actions": 2, "horizon": 4, "rate": "proven"}
    of_features = {**size, "dimension": 2, "intercept": False}
    d, horizon, episodes = 5, 4, 50
    linear = oracles.LinearRewards(
        **of_features, delay=d, ridge=0.5, feature_norm=1.5, weight_norm=2.0, features=lambda context: [0.0, 1.0]
    )
    growth = 2 * math.log(1 + episodes * 1.5**2 / ((d + 1) * 0.5 * 2 * 6))
    promised = {linear: horizon * (d + 1) * 6 * (0.5 * 2.0**2 + 4 * (0.5 + 2.0 * 1.5) * growth)}
    rewards = oracles.CountRewards(**size)
    promised[rewards] = horizon * 6 * (0.5 + 4 * (d + 1) * math.log(1 + episodes / 12))
    dynamics = oracles.CountDynamics(**size, prior=0.7)
    drift = horizon * (d + 1) * 18 * math.log(1 + episodes / (0.7 * 18))
    promised[dynamics] = dynamics.regret_bound(episodes, horizon) + drift
    softmax = oracles.SoftmaxDynamics(**of_features, feature_norm=0.5, weight_norm=2.0)
    kappa = 1 / (1 + 2 * math.exp(math.sqrt(2)))
    rho = 1 + d * kappa**2 / 2
    logarithm = math.log(1 + kappa**2 * episodes / (6 * 2**2))
    promised[softmax] = horizon * 6 * 2 / kappa * (0.5 + (1 + d * (1 + rho)) * logarithm)
    for oracle, bound in promised.items():
        assert oracle.delayed_regret_bound(episodes, horizon, d) == pytest.approx(bound, rel=1e-12)


def test_online_newton_steps_pay_for_the_drift(rng):
    """Softmax has no closed form for the best loss: the truth that made the data is a comparator."""
    contexts, build = RATED["softmax"]
    oracle = build(3, "proven")
    waiting, regret = [], 0.0
    transitions = np.full(3, 1.0 / 3.0)  # weights of zero
    for t in range(60):
        context = contexts[t % 3]
        row = oracle.predict(context)[0, 0]
        reached = np.full(3, int(row.argmin()))
        regret += (np.log(transitions[reached]) - np.log(row[reached])).sum()
        waiting.append((context, [0] * 3, [0] * 3, reached))
        if len(waiting) > 8:
            oracle.update(*waiting.pop(0))
    at_once, late = oracle.regret_bound(60, 3), oracle.delayed_regret_bound(60, 3, 8)
    assert regret <= late
    assert at_once < oracle.delayed_regret_bound(60, 3, 1) < late


def test_nothing_is_promised_beyond_what_is_proven():
    guarded, slow = (oracles.FiniteRewards(REWARDS, horizon=5, **each) for each in ({}, {"rate": "proven", "delay": 4}))
    copies = oracles.CopiesRewards(oracles.FiniteRewards(REWARDS, horizon=5), delay=4)
    aggregate = oracles.AggregateRewards([slow, guarded], horizon=5)
    for oracle in (guarded, slow, copies, aggregate):
        oracle.predict(0)
    assert guarded.delayed_regret_bound(100, 5, 0) == guarded.regret_bound(100, 5)
    assert guarded.delayed_regret_bound(100, 5, 1) == math.inf
    assert slow.delayed_regret_bound(100, 5, 4) < math.inf == slow.delayed_regret_bound(100, 5, 5)
    assert copies.delayed_regret_bound(100, 5, 4) == copies.delayed_regret_bound(100, 5, 3, constant=True) == math.inf
    assert aggregate.delayed_regret_bound(100, 5, 1) == math.inf
    known = oracles.KnownRewards(np.zeros((3, 2)), horizon=5)
    assert known.delayed_regret_bound(100, 5, 10**6) == 0.0
    steps = oracles.StepwiseRewards([oracles.FiniteRewards(REWARDS, horizon=1, rate="proven", delay=3)] * 1)
    steps.predict(0)
    assert steps.delayed_regret_bound(100, 1, 3) < math.inf == steps.delayed_regret_bound(100, 1, 4)


@pytest.mark.parametrize("horizon", [1, 4])
def test_guarded_counts_stay_near_the_proven_forecast(horizon, rng):
    """Why counts have a late bound at the guarded rate too: both sides of the step that is added to Theorem 8."""
    size = {**SIZE, "horizon": horizon}
    rewards, proven = (oracles.CountRewards(**size, rate=rate) for rate in ("guarded", "proven"))
    dynamics, sure = (oracles.CountDynamics(**size, rate=rate) for rate in ("guarded", "proven"))
    visits, counts = np.zeros((3, 2)), np.zeros((3, 2, 3))
    for t in range(60):
        apart = np.abs(rewards.predict("any") - proven.predict("any"))
        assert (apart <= (horizon - 1.0) / (visits + 2.0 * horizon) + 1e-12).all()
        ratios = sure.predict("any") / dynamics.predict("any")
        assert (ratios <= (counts + 0.5 * horizon) / (counts + min(0.5, 1 / 3)) + 1e-12).all()
        states, actions, reached = rng.integers([[3], [2], [3 if t % 2 else 1]], size=(3, horizon))
        earned = np.full(horizon, float(t % 3 > 0))
        for oracle, outcomes in ((rewards, earned), (proven, earned), (dynamics, reached), (sure, reached)):
            oracle.update("any", states, actions, outcomes)
        np.add.at(visits, (states, actions), 1.0)
        np.add.at(counts, (states, actions, reached), 1.0)


def test_guarded_counts_pay_for_what_lies_between_their_forecasters():
    """The numbers of the line that is added to Theorem 8; nothing is added where there is one forecaster."""
    size, d, episodes = {"states": 3, "actions": 2, "horizon": 4}, 5, 50
    rewards, proven = (oracles.CountRewards(**size, rate=rate) for rate in ("guarded", "proven"))
    more = 6 * 3 * (d + 1 + 2 * math.log(1 + episodes / 12))
    wanted = proven.delayed_regret_bound(episodes, 4, d) + more
    assert rewards.delayed_regret_bound(episodes, 4, d) == pytest.approx(wanted)
    dynamics, sure = (oracles.CountDynamics(**size, rate=rate) for rate in ("guarded", "proven"))
    more = 18 * (4 * (d + 1) * math.log(2.0 * 3) + (2.0 - 1 / 3) * math.log(1 + episodes * 4 / (18 / 3)))
    late = dynamics.delayed_regret_bound(episodes, 4, d)
    assert late == pytest.approx(sure.delayed_regret_bound(episodes, 4, d) + more)
    assert oracles.CountRewards(**size, rate="realizable").delayed_regret_bound(episodes, 4, d) == math.inf


def test_what_a_support_leaves_out_may_cost_all_that_can_be(rng):
    """Smoothing over a part of the next states does not bound the losses of the others."""
    part = np.ones((3, 2, 3), dtype=bool)
    part[..., 2] = False
    tables = np.stack([np.broadcast_to(row, (3, 2, 3)) for row in np.eye(3)])
    bounds = []
    for support in (None, part):
        oracle = oracles.FiniteDynamics(
            lambda context: tables, horizon=2, rate="proven", delay=2, smoothing=0.1, support=support
        )
        regret, bound = challenged(oracle, [0], 2, rng, outcomes="excluded", episodes=40)
        assert regret <= bound
        bounds.append(oracle.delayed_regret_bound(1, 2, 2))
    scale = 6 * math.log(3) / 0.567
    most = [math.log(30), 150 * math.log(10)]
    np.testing.assert_allclose(bounds, [scale * (2 + m) - 2 * math.log(0.9) for m in most])


@pytest.mark.parametrize("rate", ["guarded", "realizable"])
def test_only_the_proven_rate_can_be_late(rate):
    with pytest.raises(ValueError, match=r"`rate` must be 'proven' if `delay` is positive"):
        oracles.FiniteRewards(REWARDS, horizon=2, rate=rate, delay=1)
