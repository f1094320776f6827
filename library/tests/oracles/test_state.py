"""States: through a file, to the bit; and what is refused."""

import functools
import zipfile

import numpy as np
import pytest

from library.tests.oracles.catalogue import (
    ACTIONS,
    LABELS,
    REWARDS,
    SAMPLED,
    SIZE,
    STATES,
    SUPPORT,
    TRANSITIONS,
    build_oracle,
    each_oracle,
)
from omg_cmdp import oracles
from omg_cmdp.oracles import AggregateRewards, FiniteDynamics, FiniteRewards, RewardOracle

HORIZON = 3
EVERY = pytest.mark.parametrize("name", SAMPLED)


def random_episode(rng, oracle, horizon=HORIZON):
    reached, rewards = rng.integers(STATES, size=horizon), rng.random(horizon)
    states, actions = rng.integers(STATES, size=horizon), rng.integers(ACTIONS, size=horizon)
    if isinstance(oracle, RewardOracle):
        return states, actions, rewards
    return states, actions, np.where(SUPPORT[states, actions, reached], reached, 2)


def taught(oracle, contexts, rng, episodes=7):
    for t in range(episodes):
        oracle.update(contexts[t % len(contexts)], *random_episode(rng, oracle, oracle.horizon))
    return oracle


def bits(arrays):
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def answers(oracle, contexts):
    tables = {f"prediction {i}": oracle.predict(context) for i, context in enumerate(contexts)}
    tables |= {f"uncertainty {i}": oracle.uncertainty(context) for i, context in enumerate(contexts)}
    return bits(tables | {"loss": np.array(oracle.loss), "best loss": np.array(oracle.best_loss())})


def fingerprint(oracle, contexts):
    return bits(oracle.state()) | answers(oracle, contexts)


def build(name):
    return build_oracle(name, HORIZON)


@EVERY
def test_a_restored_oracle_continues_to_the_bit(name, seed, tmp_path):
    (contexts, oracle), (_, other) = build(name), build(name)
    taught(oracle, contexts, np.random.default_rng(seed))
    state = oracle.state()
    assert all(array.dtype.kind in "fU" for array in state.values())
    np.savez(tmp_path / "state.npz", allow_pickle=False, **state)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as saved:
        other.load_state(saved)
    assert fingerprint(other, contexts) == fingerprint(oracle, contexts)
    rng = np.random.default_rng(seed + 1)
    for t in range(7):
        context, episode = contexts[t % len(contexts)], random_episode(rng, oracle)
        oracle.update(context, *episode)
        other.update(context, *episode)
        assert fingerprint(other, contexts) == fingerprint(oracle, contexts)
    assert other.episodes == oracle.episodes == 14


@EVERY
def test_an_oracle_that_was_asked_and_has_learned_nothing_loads_its_own_state(name):
    contexts, oracle = build(name)
    before = fingerprint(oracle, contexts)
    oracle.load_state(oracle.state())
    assert fingerprint(oracle, contexts) == before


@EVERY
def test_a_state_is_a_copy(name, rng):
    contexts, oracle = build(name)
    taught(oracle, contexts, rng)
    state, before = oracle.state(), fingerprint(oracle, contexts)
    _, other = build(name)
    other.load_state(state)
    restored = answers(other, contexts)
    for array in state.values():
        if array.dtype.kind == "f":
            array[...] = 0.123
    assert fingerprint(oracle, contexts) == before
    assert answers(other, contexts) == restored
    state = oracle.state()
    saved = bits(state)
    taught(oracle, contexts, rng)
    assert bits(state) == saved


@functools.cache
def states_of_all(horizon):
    """Return (class, rate, state) of every oracle."""
    rng, every = np.random.default_rng(0), each_oracle(horizon)
    return {name: (*kind_of(o), taught(o, contexts, rng, 2).state()) for name, (contexts, o) in every.items()}


def kind_of(oracle):
    return type(oracle), getattr(oracle, "rate", None)


@EVERY
def test_states_of_another_class_rate_or_horizon_are_refused(name, rng):
    contexts, oracle = build(name)
    taught(oracle, contexts, rng)
    before = fingerprint(oracle, contexts)
    strangers = [state for *kind, state in states_of_all(HORIZON).values() if tuple(kind) != kind_of(oracle)]
    assert len(strangers) > 30
    for state in (*strangers, states_of_all(HORIZON + 1)[name][-1]):
        with pytest.raises(ValueError, match="`state`"):
            oracle.load_state(state)
        assert bits(oracle.state()).items() <= before.items()
    assert fingerprint(oracle, contexts) == before


@EVERY
def test_broken_states_are_refused(name, rng):
    contexts, oracle = build(name)
    taught(oracle, contexts, rng)
    before, good = fingerprint(oracle, contexts), taught(*reversed(build(name)), rng, 9).state()
    own = [key for key in good if "/" not in key]
    for key in own:
        missing = {other: array for other, array in good.items() if other != key}
        bad = [missing, missing | {key: np.full(good[key].shape, np.nan)}, missing | {key: np.array("text")}]
        bad.append(missing | {key: np.zeros((2, *good[key].shape))})
        bad.append(missing | {key: np.zeros(good[key].shape, dtype=int)})
        for state in bad:
            with pytest.raises(ValueError, match="`state`"):
                oracle.load_state(state)
            assert bits(oracle.state()).items() <= before.items(), key
    assert fingerprint(oracle, contexts) == before


SHAPES = {
    "CountRewards": {"states": STATES + 1},
    "CountDynamics": {"actions": ACTIONS + 1},
    "LinearRewards": {"dimension": 4},
    "SoftmaxDynamics": {"dimension": 4},
    "BasisDynamics": {"bases": 4},
}
SETTINGS = {
    "CountRewards": [{"contexts": "abc"}],
    "CountDynamics": [{"contexts": "abc"}, {"prior": 1.0}, {"support": SUPPORT}],
    "LinearRewards": [{"ridge": 0.5}],
    "SoftmaxDynamics": [
        {"ridge": 0.5},
        {"weight_norm": 1.0},
        {"feature_norm": 2.0},
        {"support": SUPPORT},
        {"intercept": False},
    ],
    "BasisDynamics": [{"support": SUPPORT}],
    "FiniteDynamics": [{"smoothing": 0.1}, {"smoothing": 0.1, "support": SUPPORT}],
}
REQUIRED = {
    "LinearRewards": {"dimension": 3},
    "SoftmaxDynamics": {"dimension": 3},
    "BasisDynamics": {"bases": 3},
    "FiniteDynamics": {"predictions": TRANSITIONS},
}


def configured(kind, **changes):
    size = {} if kind == "FiniteDynamics" else SIZE
    return getattr(oracles, kind)(**({"horizon": HORIZON} | size | REQUIRED.get(kind, {}) | changes))


def is_refused(oracle, state):
    before = bits(oracle.state())
    with pytest.raises(ValueError, match="`state`"):
        oracle.load_state(state)
    assert bits(oracle.state()) == before


NONSENSE = (
    ("CountRewards", "contexts", 5),
    ("CountRewards", "contexts", [{"a"}]),
    ("CountDynamics", "support", [[[True]], [[True, False]]]),
    ("BasisDynamics", "support", [[[True]], [[True, False]]]),
    ("FiniteDynamics", "support", [[[True]], [[True, False]]]),
    ("FiniteDynamics", "smoothing", "a little"),
    ("FiniteDynamics", "smoothing", None),
)


@pytest.mark.parametrize(("kind", "argument", "value"), NONSENSE)
def test_settings_of_the_wrong_type_are_refused_by_name(kind, argument, value):
    with pytest.raises(ValueError, match=f"`{argument}`"):
        configured(kind, **{argument: value})


@pytest.mark.parametrize("kind", SHAPES)
def test_states_of_another_shape_are_refused(kind):
    is_refused(configured(kind), configured(kind, **SHAPES[kind]).state())


@pytest.mark.parametrize(
    ("kind", "changes"),
    [pytest.param(kind, c, id=f"{kind} {' and '.join(c)}") for kind, several in SETTINGS.items() for c in several],
)
def test_states_of_another_setting_are_refused(kind, changes):
    is_refused(configured(kind), configured(kind, **changes).state())


@pytest.mark.parametrize("kind", [FiniteRewards, FiniteDynamics])
def test_states_of_another_number_of_functions_are_refused(kind, rng):
    tables = REWARDS if kind is FiniteRewards else TRANSITIONS
    fewer = kind({label: table[:5] for label, table in tables.items()}, horizon=HORIZON)
    oracle = taught(kind(tables, horizon=HORIZON), LABELS, rng)
    is_refused(oracle, taught(fewer, LABELS, rng).state())


@pytest.mark.parametrize("name", ["aggregate rewards", "aggregate dynamics", "stepwise rewards", "stepwise dynamics"])
def test_a_damaged_file_changes_nothing(name, rng, tmp_path):
    contexts, oracle = build(name)
    taught(oracle, contexts, rng)
    path, before = tmp_path / "state.npz", fingerprint(oracle, contexts)
    np.savez(path, allow_pickle=False, **taught(*reversed(build(name)), rng, 9).state())
    with zipfile.ZipFile(path) as archive:
        place = archive.infolist()[-1].header_offset
    raw = bytearray(path.read_bytes())
    end = raw.index(b"\x93NUMPY", place) + 128
    raw[end] ^= 0xFF  # the first byte of the last array
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="`state`"), np.load(path, allow_pickle=False) as state:
        oracle.load_state(state)
    assert fingerprint(oracle, contexts) == before


def test_an_aggregate_of_others_is_refused(rng):
    _, oracle = build("aggregate rewards")
    experts = oracle.forecasters.oracles
    swapped = AggregateRewards([experts[1], experts[0], experts[2]], horizon=HORIZON)
    is_refused(build("aggregate rewards")[1], swapped.state())
    is_refused(build("aggregate rewards")[1], AggregateRewards(experts[:2], horizon=HORIZON).state())
