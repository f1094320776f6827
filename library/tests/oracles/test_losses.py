"""Square loss and log loss: compiled loops against numpy, mixability, and bad episodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omg_cmdp.oracles import (
    AggregateDynamics,
    CountDynamics,
    CountRewards,
    FiniteRewards,
    LinearRewards,
    SoftmaxDynamics,
    StepwiseRewards,
)
from omg_cmdp.oracles.compiled import losses as compiled
from omg_cmdp.oracles.losses import LOG, SQUARE, Examples, exponential_weights, loss_of, read_episode

STATES, ACTIONS, HORIZON = 3, 2, 3
CONTEXT = np.array([0.6, -0.3])
GRID = np.linspace(0.0, 1.0, 501)


def weights_in_numpy(losses, rate):
    weights = np.maximum(np.exp(-rate * (losses - losses.min())), np.exp(-700.0))
    return weights / weights.sum()


def mix_loss(weights, forecasts, outcomes, rate):
    """-(1/η)·log Σ w·exp(-η(f - y)²), for every outcome."""
    return -np.log(weights @ np.exp(-rate * (forecasts[:, None] - outcomes) ** 2)) / rate


def substitution_in_numpy(weights, forecasts):
    zero, one = mix_loss(weights, forecasts, np.array([0.0, 1.0]), 2.0)
    return np.clip(0.5 + 0.5 * (zero - one), 0.0, 1.0)


def random_experts(rng, largest=6):
    """Return weights and forecasts in [0, 1], often at the ends of the interval and often uneven."""
    count = rng.integers(1, largest + 1)
    forecasts = rng.beta(*rng.choice([0.1, 1.0, 5.0], 2), size=count)
    return rng.dirichlet(np.full(count, rng.choice([0.1, 1.0, 10.0]))), forecasts


@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0, 1e6])
def test_exponential_weights(scale, rng):
    for count in (1, 2, 9):
        losses, rate = scale * rng.random(count), rng.uniform(0.01, 2.0)
        filled = np.empty(count)
        compiled.exponential_weights(losses, rate, filled)
        expected = weights_in_numpy(losses, rate)
        np.testing.assert_allclose(filled, expected, rtol=1e-12)
        np.testing.assert_allclose(exponential_weights(losses, rate), expected, rtol=1e-12)
        assert filled.min() > 0.0


@pytest.mark.parametrize("count", [1, 2, 7])
def test_aggregates_against_numpy(count, rng):
    losses, rate = 5.0 * rng.random(count), rng.uniform(0.1, 2.0)
    weights = weights_in_numpy(losses, rate)
    rewards, table = rng.random((count, 4, 3)), rng.dirichlet(np.ones(4), size=(count, 4, 3))
    square, log = np.empty(12), np.empty(48)
    compiled.aggregate(losses, rate, rewards.reshape(count, -1), True, square)
    compiled.aggregate(losses, rate, table.reshape(count, -1), False, log)
    expected = [substitution_in_numpy(weights, column) for column in rewards.reshape(count, -1).T]
    np.testing.assert_allclose(square, expected, atol=1e-14)
    np.testing.assert_allclose(log, weights @ table.reshape(count, -1), rtol=1e-13)
    np.testing.assert_allclose(SQUARE.aggregate(losses, rate, rewards).ravel(), square, atol=1e-15)
    np.testing.assert_allclose(LOG.aggregate(losses, rate, table).ravel(), log, rtol=1e-15)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_charges_against_numpy(count, rng):
    before, rate = 5.0 * rng.random(count), rng.uniform(0.1, 2.0)
    weights, cells = weights_in_numpy(before, rate), rng.integers(12, size=8)
    forecasts, rewards = rng.random((count, 12)), rng.random(8)
    forecasts[:, 5] = 0.0  # excluded by all
    cells[3] = 5
    seen = forecasts[:, cells]

    losses = before.copy()
    own = compiled.charge_square(losses, rate, forecasts, cells, rewards)
    np.testing.assert_allclose(losses, before + ((seen - rewards) ** 2).sum(axis=1), rtol=1e-12)
    aggregate = [substitution_in_numpy(weights, column) for column in seen.T]
    assert own == pytest.approx(((aggregate - rewards) ** 2).sum(), rel=1e-10)

    losses = before.copy()
    own = compiled.charge_log(losses, rate, forecasts, cells, 1e-300)
    np.testing.assert_allclose(losses, before - np.log(seen + 1e-300).sum(axis=1), rtol=1e-12)
    assert own == pytest.approx(-np.log(weights @ seen + 1e-300).sum(), rel=1e-12)


@pytest.mark.parametrize("steps", [1, 6])
def test_locate_is_the_index_of_a_flat_table(steps, rng):
    states, actions, pairs = rng.integers(4, size=6), rng.integers(3, size=6), np.empty(6, dtype=np.int64)
    assert compiled.locate(states, actions, steps, 4, 3, pairs)
    layers = np.arange(6) if steps > 1 else np.zeros(6, dtype=np.int64)
    np.testing.assert_array_equal(pairs, np.ravel_multi_index((layers, states, actions), (steps, 4, 3)))
    for values, bad in ((states, 4), (states, -1), (actions, 3), (actions, -1)):
        broken = values.copy()
        broken[4] = bad
        given_states, given_actions = (broken, actions) if values is states else (states, broken)
        assert not compiled.locate(given_states, given_actions, steps, 4, 3, pairs)


@pytest.mark.parametrize("steps", [(), (6,)])
def test_an_episode_is_read_into_the_cells_of_a_flat_table(steps, rng):
    states, actions, next_states, rewards = (*(rng.integers(n, size=6) for n in (4, 3, 4)), rng.random(6))
    layers = (np.arange(6),) if steps else ()
    squares, logs = read_episode(SQUARE, (*steps, 4, 3), 6, states, actions, rewards), (*steps, 4, 3, 4)
    np.testing.assert_array_equal(squares.cells, np.ravel_multi_index((*layers, states, actions), (*steps, 4, 3)))
    episode = read_episode(LOG, logs, 6, states, actions, next_states)
    np.testing.assert_array_equal(episode.pairs, squares.cells)
    np.testing.assert_array_equal(episode.cells, np.ravel_multi_index((*layers, states, actions, next_states), logs))


@pytest.mark.parametrize(
    ("loss", "shape", "place", "bad", "message"),
    [
        (SQUARE, (4, 3), 0, 4, r"`states` must lie in 0\.\.3, got 4"),
        (SQUARE, (4, 3), 1, -1, r"`actions` must lie in 0\.\.2, got -1"),
        (SQUARE, (4, 3), 2, np.nan, r"`rewards` must lie in \[0, 1\], got nan"),
        (SQUARE, (4, 3), 2, 1.5, r"`rewards` must lie in \[0, 1\], got 1.5"),
        (LOG, (4, 3, 4), 0, -1, r"`states` must lie in 0\.\.3, got -1"),
        (LOG, (4, 3, 4), 1, 3, r"`actions` must lie in 0\.\.2, got 3"),
        (LOG, (4, 3, 4), 2, 4, r"`next_states` must lie in 0\.\.3, got 4"),
    ],
)
def test_what_is_out_of_range_is_named(loss, shape, place, bad, message):
    episode = [np.zeros(6, dtype=np.int64), np.zeros(6, dtype=np.int64), np.zeros(6, type(bad))]
    episode[place][4] = bad
    with pytest.raises(ValueError, match=message):
        read_episode(loss, shape, 6, *episode)


def test_the_substitution_mixes_at_rate_two(rng):
    for _ in range(2000):
        weights, forecasts = random_experts(rng)
        # Losses whose exponential weights at rate 1 are `weights`.
        losses = -np.log(np.maximum(weights, 1e-250))
        forecast = SQUARE.aggregate(losses, 1.0, forecasts[:, None])[0]
        weights = weights_in_numpy(losses, 1.0)
        assert ((forecast - GRID) ** 2 <= mix_loss(weights, forecasts, GRID, 2.0) + 1e-12).all()


def test_no_forecast_mixes_at_a_larger_rate(rng):
    """At η = 2.5 there are experts without such a forecast: the test above can fail."""
    worst = 0.0
    for _ in range(2000):
        weights, forecasts = random_experts(rng)
        excess = ((GRID[:, None] - GRID[::100]) ** 2 - mix_loss(weights, forecasts, GRID[::100], 2.5)).max(axis=1)
        worst = max(worst, excess.min())
    assert worst > 1e-3


def test_the_mean_mixes_log_loss_at_rate_one(rng):
    for _ in range(100):
        losses, table = 3.0 * rng.random(4), rng.dirichlet(np.ones(3), size=4)
        weights = weights_in_numpy(losses, 1.0)
        mixed = -np.log(weights @ np.exp(-1.0 * -np.log(table)))
        np.testing.assert_allclose(-np.log(LOG.aggregate(losses, 1.0, table[:, None, None])[0, 0]), mixed, atol=1e-13)


def test_the_mean_mixes_log_loss_where_forecasts_are_zero(rng):
    """Also if all of them are, and if the weight of the only one that is not is as small as ε.

    With max(P, ε) in the place of P + ε the last is wrong by log 2.
    """
    for _ in range(300):
        before = np.array([0.0, 345.0, 345.4, 690.0]) + rng.random(4)
        certain = np.eye(3)[rng.integers(3, size=4)].reshape(4, 1, 1, 3)
        losses, episode = before.copy(), Examples(*np.zeros((4, 1), dtype=np.int64), rng.integers(3, size=1))
        own = LOG.charge(losses, 1.0, certain, episode)
        mixed = np.log(np.exp(-before).sum()) - np.log(np.exp(-losses).sum())
        assert own == pytest.approx(mixed, abs=1e-10)


def trained(oracle):
    rng = np.random.default_rng(0)
    outcomes = rng.random(HORIZON) if loss_of(oracle) is SQUARE else rng.integers(STATES, size=HORIZON)
    oracle.update(CONTEXT, rng.integers(STATES, size=HORIZON), rng.integers(ACTIONS, size=HORIZON), outcomes)
    return oracle


SIZE = {"states": STATES, "actions": ACTIONS}
TABLES = np.random.default_rng(0).random((4, STATES, ACTIONS))
ORACLES = {
    "FiniteRewards": lambda: FiniteRewards(lambda context: TABLES, horizon=HORIZON),
    "CountDynamics": lambda: CountDynamics(**SIZE, horizon=HORIZON),
    "LinearRewards": lambda: LinearRewards(**SIZE, dimension=2, horizon=HORIZON),
    "SoftmaxDynamics": lambda: SoftmaxDynamics(**SIZE, dimension=2, horizon=HORIZON),
    "StepwiseRewards": lambda: StepwiseRewards([CountRewards(**SIZE, horizon=1) for _ in range(HORIZON)]),
    "AggregateDynamics": lambda: AggregateDynamics(
        [CountDynamics(**SIZE, horizon=HORIZON), SoftmaxDynamics(**SIZE, dimension=2, horizon=HORIZON)], horizon=HORIZON
    ),
}
TRAINED = {name: trained(make()) for name, make in ORACLES.items()}


def fingerprint(oracle):
    tables = {**oracle.state(), "prediction": oracle.predict(CONTEXT), "uncertainty": oracle.uncertainty(CONTEXT)}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in tables.items()}


small = st.integers(0, 1)
not_a_vector = st.one_of(
    st.none(),
    small,
    st.text(max_size=4),
    st.lists(small, max_size=8).filter(lambda values: len(values) != HORIZON),
    st.lists(st.text(max_size=3), min_size=HORIZON, max_size=HORIZON),
    st.lists(st.one_of(st.none(), small), min_size=HORIZON, max_size=HORIZON).filter(lambda values: None in values),
    st.lists(st.lists(small, max_size=3), min_size=1, max_size=4),  # ragged, or of two dimensions
    st.tuples(small, st.lists(small, max_size=2), small),
    st.just([1j] * HORIZON),
    st.sampled_from([np.zeros((HORIZON, 1), int), np.zeros((1, HORIZON), int), np.zeros((3, 3)), np.zeros(0), [], {}]),
    st.sets(small, min_size=1),
)


def with_one(bad):
    """Return vectors of the right length that hold at least one of `bad`."""
    places = st.integers(0, HORIZON - 1)
    return st.tuples(bad, places).map(lambda pair: [pair[0] if h == pair[1] else 0 for h in range(HORIZON)])


def not_indices(count):
    return st.one_of(
        not_a_vector,
        with_one(st.sampled_from([-1, count])),
        with_one(st.one_of(st.integers(max_value=-1), st.integers(min_value=count))),
        with_one(st.floats()),
        st.lists(st.booleans(), min_size=HORIZON, max_size=HORIZON).map(np.array),
        st.sampled_from([np.uint8, np.int16, np.uint64]).map(lambda kind: np.full(HORIZON, count, dtype=kind)),
    )


no_reward = st.one_of(st.floats(max_value=0.0, exclude_max=True), st.floats(min_value=1.0, exclude_min=True))
not_rewards = st.one_of(
    not_a_vector,
    with_one(no_reward),
    with_one(st.sampled_from([np.nan, -np.inf, np.inf, -1e-16, 1.0 + 1e-15])),
    with_one(st.one_of(st.integers(max_value=-1), st.integers(min_value=2))),
    st.sampled_from([np.float16, np.float32, np.int8]).map(lambda kind: np.full(HORIZON, -1, dtype=kind)),
)


BAD = {"states": not_indices(STATES), "actions": not_indices(ACTIONS), "next_states": not_indices(STATES)}
BAD["rewards"] = not_rewards


@pytest.mark.parametrize("argument", ["states", "actions", "outcomes"])
@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_malformed_episodes_are_refused_and_change_nothing(name, argument, data):
    oracle, outcomes = TRAINED[name], "rewards" if name.endswith("Rewards") else "next_states"
    argument = outcomes if argument == "outcomes" else argument
    episode = {"states": [0, 1, 2], "actions": [0, 1, 0], outcomes: [0, 1, 0]}
    before = fingerprint(oracle)
    with pytest.raises(ValueError, match=f"`{argument}`"):
        oracle.update(CONTEXT, **episode | {argument: data.draw(BAD[argument])})
    assert fingerprint(oracle) == before


def strided(values):
    return np.array([values, values]).T[:, 1]


@pytest.mark.parametrize("name", ORACLES)
def test_well_formed_episodes_are_accepted_in_any_form(name):
    """And no reference to them is kept."""
    predictions = []
    for dress in (list, tuple, np.array, lambda values: np.array(values, dtype=np.uint8), strided):
        oracle = trained(ORACLES[name]())
        episode = [dress(values) for values in ([0, 1, 2], [0, 1, 0], [0, 1, 1])]
        oracle.update(CONTEXT, *episode)
        for values in episode:
            if isinstance(values, np.ndarray):
                values[:] = 2
        predictions.append(oracle.predict(CONTEXT).tobytes())
    assert len(set(predictions)) == 1
    assert predictions[0] != trained(ORACLES[name]()).predict(CONTEXT).tobytes()
