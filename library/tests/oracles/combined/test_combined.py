"""Oracles made of oracles: aggregates, one oracle per step, known functions, and both nested."""

import math

import numpy as np
import pytest

from omg_cmdp.oracles import (
    AggregateDynamics,
    AggregateRewards,
    CountDynamics,
    CountRewards,
    FiniteDynamics,
    FiniteRewards,
    KnownDynamics,
    KnownRewards,
    LinearRewards,
    StepwiseDynamics,
    StepwiseRewards,
)

STATES, ACTIONS, HORIZON = 3, 2, 5
SIZE = {"states": STATES, "actions": ACTIONS}
CONTEXTS = (np.array([1.0, 0.0]), np.array([0.6, -0.8]))


def random_table(rng, rewards, *lead):
    shape = (*lead, STATES, ACTIONS)
    return rng.random(shape) if rewards else rng.dirichlet(np.ones(STATES), size=shape)


def random_episode(rng, rewards, horizon=HORIZON):
    outcomes = rng.random(horizon) if rewards else rng.integers(STATES, size=horizon)
    return rng.integers(STATES, size=horizon), rng.integers(ACTIONS, size=horizon), outcomes


def taught(oracle, rng, rewards, episodes=7):
    for t in range(episodes):
        oracle.update(CONTEXTS[t % 2], *random_episode(rng, rewards))
    return oracle


def fingerprint(oracle):
    tables = oracle.state() | {f"f{i}": oracle.predict(c) for i, c in enumerate(CONTEXTS)}
    tables |= {f"u{i}": oracle.uncertainty(c) for i, c in enumerate(CONTEXTS)}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in tables.items()}


def worst_episode(prediction):
    """Return states, actions and outcomes, all steps alike, that hurt a frozen prediction."""
    if prediction.ndim == 2:
        return [0] * HORIZON, [0] * HORIZON, [float(prediction[0, 0] < 0.5)] * HORIZON
    return [0] * HORIZON, [0] * HORIZON, [2 * int(prediction[0, 0, 0] > prediction[0, 0, 2])] * HORIZON


def total_loss(prediction, episode):
    states, actions, outcomes = episode
    if prediction.ndim == 2:
        return float(((prediction[states, actions] - outcomes) ** 2).sum())
    return float(-np.log(prediction[states, actions, outcomes]).sum())


def extremes(rewards):
    """Two opposite tables."""
    high = np.full((STATES, ACTIONS), 0.9) if rewards else np.full((STATES, ACTIONS, STATES), 0.05)
    if not rewards:
        high[..., 0] = 0.9
    return high, (1.0 - high if rewards else high[..., ::-1])


@pytest.mark.parametrize("rewards", [True, False])
def test_an_aggregate_is_almost_as_good_as_its_best_expert(rewards, rng):
    known, counts = (KnownRewards, CountRewards) if rewards else (KnownDynamics, CountDynamics)
    aggregate, eta = (AggregateRewards, 2.0) if rewards else (AggregateDynamics, 1.0)
    for extra in (0, 3):
        tables = [*extremes(rewards), *(random_table(rng, rewards) for _ in range(extra))]
        oracle = aggregate([known(t, horizon=HORIZON) for t in tables], horizon=HORIZON)
        if extra:
            experts = [
                *oracle.forecasters.oracles,
                counts(**SIZE, horizon=HORIZON),
                counts(**SIZE, horizon=HORIZON, rate="proven"),
            ]
            oracle = aggregate(experts, horizon=HORIZON)
        losses = np.zeros(len(oracle.forecasters.oracles))
        for t in range(200):
            prediction = oracle.predict(0)
            episode = worst_episode(prediction) if t % 3 or not extra else random_episode(rng, rewards)
            losses += [total_loss(expert.predict(0), episode) for expert in oracle.forecasters.oracles]
            oracle.update(0, *episode)
            assert oracle.loss <= losses.min() + HORIZON / eta * math.log(len(losses)) + 1e-9
        np.testing.assert_allclose([expert.loss for expert in oracle.forecasters.oracles], losses, rtol=1e-9)


@pytest.mark.parametrize("rewards", [True, False])
def test_at_the_textbook_rate_the_same_outcomes_exceed_the_bound(rewards):
    """The test above can fail."""
    kind = FiniteRewards if rewards else FiniteDynamics
    oracle = kind(lambda _: np.array(extremes(rewards)), horizon=HORIZON, rate="realizable")
    for _ in range(200):
        oracle.update(0, *worst_episode(oracle.predict(0)))
    assert oracle.loss - oracle.best_loss() > 10.0 * HORIZON * math.log(2.0)


@pytest.mark.parametrize("rewards", [True, False])
def test_an_aggregate_of_one_is_that_one(rewards, seed):
    kind, aggregate = (CountRewards, AggregateRewards) if rewards else (CountDynamics, AggregateDynamics)
    alone = taught(kind(**SIZE, horizon=HORIZON), np.random.default_rng(seed), rewards)
    oracle = aggregate([kind(**SIZE, horizon=HORIZON)], horizon=HORIZON)
    taught(oracle, np.random.default_rng(seed), rewards)
    for context in CONTEXTS:
        np.testing.assert_array_equal(oracle.predict(context), alone.predict(context))
        np.testing.assert_array_equal(oracle.uncertainty(context), alone.uncertainty(context))
    assert oracle.loss == alone.loss
    assert oracle.best_loss() == alone.best_loss()
    assert oracle.regret_bound(9, HORIZON) == alone.regret_bound(9, HORIZON)


@pytest.mark.parametrize("rewards", [True, False])
def test_stepwise_is_one_oracle_for_each_step(rewards, rng):
    kind, stepwise = (FiniteRewards, StepwiseRewards) if rewards else (FiniteDynamics, StepwiseDynamics)
    tables = random_table(rng, rewards, 2, 4)
    tell = lambda context: tables[int(context[1] < 0.0)]  # noqa: E731
    by_hand = [kind(tell, horizon=1) for _ in range(HORIZON)]
    oracle = stepwise([kind(tell, horizon=1) for _ in range(HORIZON)])
    assert oracle.horizon == HORIZON
    for t in range(10):
        context, (states, actions, outcomes) = CONTEXTS[t % 2], random_episode(rng, rewards)
        oracle.update(context, states, actions, outcomes)
        for h, other in enumerate(by_hand):
            other.update(context, [states[h]], [actions[h]], [outcomes[h]])
    for context in CONTEXTS:
        np.testing.assert_array_equal(oracle.predict(context), [other.predict(context) for other in by_hand])
        np.testing.assert_array_equal(oracle.uncertainty(context), [other.uncertainty(context) for other in by_hand])
    assert oracle.loss == pytest.approx(sum(other.loss for other in by_hand), rel=1e-12)
    assert oracle.best_loss() == pytest.approx(sum(other.best_loss() for other in by_hand), rel=1e-12)
    assert oracle.regret_bound(9, HORIZON) == pytest.approx(HORIZON * by_hand[0].regret_bound(9, 1))


@pytest.mark.parametrize("lead", [(), (HORIZON,)])
@pytest.mark.parametrize("rewards", [True, False])
def test_known_functions_have_no_uncertainty(rewards, lead, rng):
    kind, table = KnownRewards if rewards else KnownDynamics, random_table(rng, rewards, *lead)
    for dress in (table, lambda _: table, {0: table, 1: table}):
        oracle = kind(dress, horizon=HORIZON)
        for context in (0, 1, 0):
            oracle.update(context, *random_episode(rng, rewards))
            np.testing.assert_array_equal(oracle.predict(context), table)
            np.testing.assert_array_equal(oracle.uncertainty(context), np.zeros((*lead, STATES, ACTIONS)))
        assert oracle.regret_bound(100, HORIZON) == 0.0
        assert oracle.loss == oracle.best_loss() > 0.0
    with pytest.raises(ValueError, match="`context`"):
        kind({0: table}, horizon=HORIZON).predict([0])
    oracle, before = kind(table, horizon=HORIZON), table.copy()
    table[..., 0] = 1.0 - table[..., 0]
    np.testing.assert_array_equal(oracle.predict(0), before)


def nested():
    """An aggregate of stepwise oracles, one of them made of aggregates, and a known table."""
    tables = np.random.default_rng(0).random((4, STATES, ACTIONS))
    counts = StepwiseRewards([CountRewards(**SIZE, horizon=1) for _ in range(HORIZON)])
    pairs = [
        [FiniteRewards(lambda _: tables, horizon=1), LinearRewards(**SIZE, dimension=2, horizon=1)]
        for _ in range(HORIZON)
    ]
    linear = StepwiseRewards([AggregateRewards(pair, horizon=1) for pair in pairs])
    known = KnownRewards(np.full((HORIZON, STATES, ACTIONS), 0.4), horizon=HORIZON)
    return AggregateRewards([counts, linear, known], horizon=HORIZON)


def test_nested_combinations_learn_and_account(rng):
    oracle, own = nested(), 0.0
    for t in range(60):
        context, (states, actions, _) = CONTEXTS[t % 2], random_episode(rng, True)
        rewards = 0.2 + 0.1 * np.arange(HORIZON) + 0.1 * context[1]
        own += ((oracle.predict(context)[np.arange(HORIZON), states, actions] - rewards) ** 2).sum()
        oracle.update(context, states, actions, rewards)
    price = HORIZON / 2 * math.log(3.0)
    assert oracle.predict(CONTEXTS[0]).shape == oracle.uncertainty(CONTEXTS[0]).shape == (HORIZON, STATES, ACTIONS)
    assert oracle.loss == pytest.approx(own, rel=1e-9)
    assert oracle.loss <= min(part.loss for part in oracle.forecasters.oracles) + price + 1e-9
    bounds = [part.regret_bound(60, HORIZON) for part in oracle.forecasters.oracles]
    assert oracle.regret_bound(60, HORIZON) == pytest.approx(price + max(bounds))
    assert oracle.loss - oracle.best_loss() <= oracle.regret_bound(60, HORIZON)
    assert (
        oracle.forecasters.oracles[1].loss < oracle.forecasters.oracles[2].loss
    )  # the linear ones fit better than the table


def test_parts_that_do_not_fit_are_refused():
    one, five = CountRewards(**SIZE, horizon=1), CountRewards(**SIZE, horizon=HORIZON)
    moves = CountDynamics(**SIZE, horizon=1)
    bad = (
        *(
            lambda parts=parts: AggregateRewards(parts, horizon=1)
            for parts in ([], [one, five], [one, one], [one, moves])
        ),
        *(lambda parts=parts: StepwiseRewards(parts) for parts in ([], [one, five], [one, one], [moves], [None])),
        lambda: AggregateDynamics([one], horizon=1),
        lambda: StepwiseDynamics([one]),
        lambda: AggregateRewards([StepwiseRewards([one]), five], horizon=HORIZON),
        lambda: StepwiseRewards([one, CountRewards(states=2, actions=2, horizon=1)]),
    )
    for make in bad:
        with pytest.raises(ValueError, match="`oracles`"):
            make()
    smaller = KnownRewards(lambda _: np.zeros((2, 2)), horizon=1)  # its size is known with the first context
    for oracle in (AggregateRewards([one, smaller], horizon=1), StepwiseRewards([one, smaller])):
        with pytest.raises(ValueError, match="`oracles`"):
            oracle.predict(0)


def test_stepwise_oracles_refuse_tables_that_already_have_steps():
    oracle = StepwiseRewards([KnownRewards(np.full((1, STATES, ACTIONS), 0.5), horizon=1) for _ in range(2)])
    with pytest.raises(ValueError, match="`oracles`"):
        oracle.update(0, [0, 0], [0, 0], [0.0, 0.0])


@pytest.mark.parametrize("rewards", [True, False])
def test_bounds_of_horizons_that_do_not_fit(rewards):
    kind, aggregate = (CountRewards, AggregateRewards) if rewards else (CountDynamics, AggregateDynamics)
    stepwise = StepwiseRewards if rewards else StepwiseDynamics
    rows = stepwise([kind(**SIZE, horizon=1) for _ in range(2)])
    for oracle in (aggregate([kind(**SIZE, horizon=2)], horizon=2), rows):
        assert oracle.regret_bound(10, 1) <= oracle.regret_bound(10, 2)
        assert oracle.regret_bound(10, 3) == math.inf
        for bad in (0, -1):
            with pytest.raises(ValueError, match="`horizon`"):
                oracle.regret_bound(10, bad)


MAKERS = {
    "aggregate": lambda: AggregateRewards(
        [CountRewards(**SIZE, horizon=HORIZON), KnownRewards(np.eye(3, 2), horizon=HORIZON)], horizon=HORIZON
    ),
    "stepwise": lambda: StepwiseRewards([CountRewards(**SIZE, horizon=1) for _ in range(HORIZON)]),
    "nested": nested,
}


@pytest.mark.parametrize("place", ["part", "account"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_broken_state_changes_nothing(name, place, rng):
    oracle, other = taught(MAKERS[name](), rng, True), taught(MAKERS[name](), rng, True, 9)
    good, before = other.state(), fingerprint(oracle)
    keys = [key for key in good if ("/" in key) == (place == "part")]
    for key in keys[:: 1 + len(keys) // 12]:
        for bad in (None, np.array("text"), np.full(good[key].shape, np.nan), np.zeros((7, 7, 7))):
            state = {k: v for k, v in good.items() if k != key} | ({} if bad is None else {key: bad})
            with pytest.raises(ValueError, match="`state`"):
                oracle.load_state(state)
            assert fingerprint(oracle) == before, key
    oracle.load_state(good)
    assert fingerprint(oracle) == fingerprint(other)
