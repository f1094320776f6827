import copy
import math
import pickle

import numpy as np
import pytest

from library.tests.random_mdps import random_mdp, random_mdps, with_tables
from omg_cmdp import Space, TabularMDP

S, A, H = 2, 3, 4
TABLES = ("transitions", "rewards", "start", "admissible")


def make_mdp(**changes):
    tables = {"transitions": np.full((S, A, S), 0.5), "rewards": np.full((S, A), 0.5), "horizon": H}
    return TabularMDP(**(tables | changes))


def make_space(**changes):
    return Space(**({"states": S, "actions": A, "horizon": H} | changes))


def table(shape, value, **entries):
    """Return a table full of `value`, but for the entries given as i_j_k=value."""
    array = np.full(shape, value)
    for place, entry in entries.items():
        array[tuple(int(i) for i in place.strip("_").split("_"))] = entry
    return array


def kernel(**entries):
    return table((S, A, S), 0.5, **entries)


def step_kernel(**entries):
    return table((H, S, A, S), 0.5, **entries)


def rewards(**entries):
    return table((S, A), 0.5, **entries)


def assert_refused(make, arguments, *fragments):
    """The message names the first of `arguments` in backticks, and holds every fragment: rule, value, index."""
    with pytest.raises(ValueError, match=f"`{next(iter(arguments))}`") as refusal:
        make(**arguments)
    for fragment in fragments:
        assert fragment in str(refusal.value)


BAD_TABLES = [
    # rows that are not distributions; of several, the first is named
    ({"transitions": kernel(_1_2_0=0.25)}, "sum to 1", "0.75", "(1, 2)"),
    ({"transitions": kernel(_0_1_1=0.75, _1_2_0=0.25)}, "sum to 1", "1.25", "(0, 1)"),
    ({"transitions": step_kernel(_3_0_2_1=0.25, _3_1_2_1=0.0)}, "sum to 1", "0.75", "(3, 0, 2)"),
    ({"transitions": np.zeros((S, A, S))}, "sum to 1", "0.0", "(0, 0)"),
    ({"transitions": kernel(_1_0_0=-0.5, _1_0_1=1.5)}, "non-negative", "-0.5", "(1, 0, 0)"),
    ({"transitions": step_kernel(_2_1_0_0=-1e-300)}, "non-negative", "-1e-300", "(2, 1, 0, 0)"),
    ({"transitions": kernel(_0_2_1=np.nan, _1_0_0=np.nan)}, "finite", "nan", "(0, 2, 1)"),
    ({"transitions": kernel(_0_2_1=np.inf)}, "finite", "inf", "(0, 2, 1)"),
    ({"transitions": kernel(_1_1_0=-np.inf)}, "finite", "-inf", "(1, 1, 0)"),
    # rewards
    ({"rewards": rewards(_1_2=1.5)}, "[0, 1]", "1.5", "(1, 2)"),
    ({"rewards": rewards(_0_1=-0.25, _1_2=1.5)}, "[0, 1]", "-0.25", "(0, 1)"),
    ({"rewards": rewards(_0_1=np.nan)}, "[0, 1]", "nan", "(0, 1)"),
    ({"rewards": rewards(_1_0=np.inf)}, "[0, 1]", "inf", "(1, 0)"),
    ({"rewards": table((H, S, A), 0.5, _3_1_1=np.nextafter(1.0, 2.0))}, "[0, 1]", "1.0000000000000002", "(3, 1, 1)"),
    # shapes
    ({"transitions": np.float64(1.0)}, "shape (S, A, S) or (H, S, A, S)", "()"),
    ({"transitions": np.full((S, S), 0.5)}, "shape", "(2, 2)"),
    ({"transitions": np.full((S, A, S + 1), 1 / 3)}, "shape (2, 3, 2) or (4, 2, 3, 2)", "got (2, 3, 3)"),
    ({"transitions": np.full((H - 1, S, A, S), 0.5)}, "shape (2, 3, 2) or (4, 2, 3, 2)", "got (3, 2, 3, 2)"),
    ({"transitions": np.empty((S, 0, S))}, "shape", "(2, 0, 2)"),
    ({"transitions": np.full((1, H, S, A, S), 0.5)}, "shape", "(1, 4, 2, 3, 2)"),
    ({"rewards": 0.5}, "shape (2, 3) or (4, 2, 3)", "got ()"),
    ({"rewards": np.zeros((A, S))}, "shape (2, 3) or (4, 2, 3)", "got (3, 2)"),
    ({"rewards": np.zeros((H + 1, S, A))}, "shape (2, 3) or (4, 2, 3)", "got (5, 2, 3)"),
    # not tables at all
    ({"transitions": "north"}, "real numbers", "str"),
    ({"transitions": [[0.5], [0.25, 0.75]]}, "real numbers", "list"),
    ({"rewards": None}, "real numbers", "None"),
]

BAD_HORIZONS = [
    ({"horizon": 0}, "at least 1", "0"),
    ({"horizon": -3}, "at least 1", "-3"),
    ({"horizon": True}, "integer", "True"),
    ({"horizon": np.True_}, "integer", "True"),
    ({"horizon": 4.0}, "integer", "4.0"),
    ({"horizon": "4"}, "integer", "'4'"),
    ({"horizon": None}, "integer", "None"),
]

BAD_STARTS_AND_MASKS = [
    ({"start": S}, "0..1", "2"),
    ({"start": -1}, "0..1", "-1"),
    ({"start": 1.0}, "a state or a distribution", "1.0"),
    ({"start": None}, "a state or a distribution", "None"),
    ({"start": [0.25, 0.25]}, "sum to 1", "0.5"),
    ({"start": [1.5, -0.5]}, "non-negative", "-0.5", "(1,)"),
    ({"start": [np.nan, 1.0]}, "finite", "nan", "(0,)"),
    ({"start": [0.0, np.inf]}, "finite", "inf", "(1,)"),
    ({"start": [1.0, 0.0, 0.0]}, "shape (2,)", "(3,)"),
    ({"start": [[1.0, 0.0]]}, "shape (2,)", "(1, 2)"),
    ({"start": ["a", "b"]}, "real numbers", "list"),
    ({"admissible": np.ones((A, S), bool)}, "shape (2, 3)", "(3, 2)"),
    ({"admissible": np.ones(A, bool)}, "shape (2, 3)", "(3,)"),
    ({"admissible": np.ones((S, A), int)}, "boolean", "int64"),
    ({"admissible": np.ones((S, A))}, "boolean", "float64"),
    ({"admissible": [[True] * A, [False] * A]}, "an action in every state", "state 1"),
    ({"admissible": np.zeros((S, A), bool)}, "an action in every state", "state 0"),
]

BAD_SIZES = [
    ({name: value}, rule, got)
    for name in ("states", "actions")
    for value, rule, got in [(0, "at least 1", "0"), (True, "integer", "True"), (2.0, "integer", "2.0")]
]


@pytest.mark.parametrize(("arguments", "fragments"), [(bad, rest) for bad, *rest in BAD_TABLES])
def test_bad_tables_are_refused(arguments, fragments):
    assert_refused(make_mdp, arguments, *fragments)


@pytest.mark.parametrize("make", [make_mdp, make_space])
@pytest.mark.parametrize(
    ("arguments", "fragments"), [(bad, rest) for bad, *rest in BAD_HORIZONS + BAD_STARTS_AND_MASKS]
)
def test_bad_horizons_starts_and_masks_are_refused(make, arguments, fragments):
    assert_refused(make, arguments, *fragments)


@pytest.mark.parametrize(("arguments", "fragments"), [(bad, rest) for bad, *rest in BAD_SIZES])
def test_bad_sizes_are_refused(arguments, fragments):
    assert_refused(make_space, arguments, *fragments)


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ({"transitions": kernel(_1_2_0=np.inf, _1_2_1=-np.inf)}, ("finite", "inf", "(1, 2, 0)")),
        ({"transitions": kernel(_1_2_0=1.7e308, _1_2_1=1.7e308)}, ("sum to 1", "(1, 2)")),
        ({"transitions": kernel().astype(complex)}, ("real numbers",)),
        ({"rewards": rewards(_1_2=1.5)}, ("got 1.5 at index (1, 2)",)),
        ({"start": [[1.0], [0.5, 0.5]]}, ("real numbers", "list")),
        ({"start": True}, ("a state or a distribution", "True")),
        ({"admissible": [[True], [True, False]]}, ("boolean mask",)),
    ],
    ids=["inf - inf", "overflow", "complex", "repr of the value", "ragged start", "start True", "ragged mask"],
)
def test_odd_tables_are_refused(arguments, fragments):
    assert_refused(make_mdp, arguments, *fragments)


@pytest.mark.parametrize(("excess", "accepted"), [(0.9e-8, True), (-0.9e-8, True), (1.1e-8, False), (-1.1e-8, False)])
@pytest.mark.parametrize(
    "arguments",
    [
        lambda excess: {"transitions": kernel(_1_2_0=0.5 + excess)},
        lambda excess: {"transitions": step_kernel(_3_1_2_0=0.5 + excess)},
        lambda excess: {"start": [0.5, 0.5 + excess]},
    ],
    ids=["transitions", "transitions by step", "start"],
)
def test_sums_are_one_within_1e_8(arguments, excess, accepted):
    if accepted:
        make_mdp(**arguments(excess))
    else:
        assert_refused(make_mdp, arguments(excess), "sum to 1 (within 1e-08)")


def test_rewards_of_exactly_zero_and_one_are_accepted():
    assert make_mdp(rewards=rewards(_0_0=0.0, _1_2=1.0)).rewards[1, 2] == 1.0


@pytest.mark.parametrize("anything", [np.nan, np.inf, -np.inf, -3.0, 1e300])
@pytest.mark.parametrize("steps", [(), (H,)], ids=["stationary", "by step"])
def test_inadmissible_rows_may_hold_anything_and_become_zeros(anything, steps):
    mask = np.array([[True, True, False], [False, True, True]])
    transitions, reward_table = np.full((*steps, S, A, S), 0.5), np.full((*steps, S, A), 0.5)
    transitions[..., ~mask, :], reward_table[..., ~mask] = anything, anything
    mdp = make_mdp(transitions=transitions, rewards=reward_table, admissible=mask)
    assert not mdp.transitions[..., ~mask, :].any()
    assert not mdp.rewards[..., ~mask].any()
    assert (mdp.transitions[..., mask, :] == 0.5).all()
    assert (mdp.rewards[..., mask] == 0.5).all()


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"transitions": kernel(_1_1_0=0.25, _0_2_0=np.nan)}, ("0.75", "(1, 1)")),
        ({"rewards": rewards(_1_1=2.0, _0_2=np.nan)}, ("2.0", "(1, 1)")),
    ],
)
def test_a_mask_excuses_no_admissible_row(changes, fragments):
    mask = np.array([[True, True, False], [False, True, True]])
    assert_refused(make_mdp, changes | {"admissible": mask}, *fragments)


def test_tables_are_copied():
    given = {
        "transitions": kernel(),
        "rewards": rewards(),
        "start": np.array([0.5, 0.5]),
        "admissible": np.ones((S, A), bool),
    }
    mdp, space = make_mdp(**given), make_space(start=given["start"], admissible=given["admissible"])
    for array in given.values():
        array[...] = 0
    assert all(getattr(mdp, name).all() for name in TABLES)
    assert space.start.all()
    assert space.admissible.all()


@pytest.mark.parametrize("name", [*TABLES, "transition_steps", "reward_steps"])
@pytest.mark.parametrize("masked", [False, True])
def test_tables_are_read_only(name, masked, rng):
    array = getattr(random_mdp(rng, masked=masked), name)
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0


@pytest.mark.parametrize("name", ["start", "admissible"])
def test_space_tables_are_read_only(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(make_space(), name)[...] = 0


@pytest.mark.parametrize("name", [*TABLES, "horizon", "states"])
def test_fields_cannot_be_reassigned(name):
    with pytest.raises(AttributeError):
        setattr(make_mdp(), name, None)


@pytest.mark.parametrize("kernel_steps", [False, True])
@pytest.mark.parametrize("reward_steps", [False, True])
def test_tables_are_stationary_or_by_step(kernel_steps, reward_steps, rng):
    mdp = random_mdp(rng, S, A, H, kernel_steps=kernel_steps, reward_steps=reward_steps)
    assert (mdp.states, mdp.actions, mdp.horizon) == (S, A, H)
    assert mdp.transition_steps.shape == (H if kernel_steps else 1, S, A, S)
    assert mdp.reward_steps.shape == (H if reward_steps else 1, S, A)
    np.testing.assert_array_equal(mdp.transition_steps.reshape(mdp.transitions.shape), mdp.transitions)
    np.testing.assert_array_equal(mdp.reward_steps.reshape(mdp.rewards.shape), mdp.rewards)


def test_lists_integers_and_numpy_integers_are_accepted():
    mdp = TabularMDP(transitions=[[[0, 1]], [[1, 0]]], rewards=[[1], [0]], horizon=np.int32(2), start=np.int64(1))
    assert mdp.transitions.dtype == mdp.rewards.dtype == np.float64
    assert type(mdp.horizon) is int
    assert mdp.start.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("state", range(S))
@pytest.mark.parametrize("make", [make_mdp, make_space])
def test_a_start_state_is_a_distribution_on_it(make, state):
    np.testing.assert_array_equal(make(start=state).start, np.eye(S)[state])


@pytest.mark.parametrize("make", [make_mdp, make_space])
def test_without_a_mask_every_action_is_admissible(make):
    mask = make().admissible
    assert mask.shape == (S, A)
    assert mask.dtype == np.bool_
    assert mask.all()


def test_the_space_of_an_mdp_is_what_is_known_beforehand(rng):
    for mdp in random_mdps(rng, 10):
        space = mdp.space
        assert (space.states, space.actions, space.horizon) == (mdp.states, mdp.actions, mdp.horizon)
        np.testing.assert_array_equal(space.start, mdp.start)
        np.testing.assert_array_equal(space.admissible, mdp.admissible)


def test_raw_arrays_hold_the_same_numbers(rng):
    for mdp in random_mdps(rng, 10):
        for raw, public in zip(
            mdp.raw, (mdp.transition_steps, mdp.reward_steps, mdp.start, mdp.admissible), strict=True
        ):
            np.testing.assert_array_equal(raw, public)
            assert raw.flags.c_contiguous


@pytest.mark.parametrize("copied", [lambda mdp: pickle.loads(pickle.dumps(mdp)), copy.deepcopy, with_tables])
def test_copies_are_equal_and_equally_read_only(copied, rng):
    for mdp in random_mdps(rng, 20):
        twin = copied(mdp)
        assert twin.horizon == mdp.horizon
        for name in TABLES:
            original, array = getattr(mdp, name), getattr(twin, name)
            np.testing.assert_array_equal(array, original, strict=True)
            assert not array.flags.writeable
            assert not np.shares_memory(array, original)


@pytest.mark.parametrize("name", ["start", "admissible"])
def test_a_pickled_space_is_still_read_only(name):
    assert not getattr(pickle.loads(pickle.dumps(make_space())), name).flags.writeable


def test_probabilities_down_to_1e_300_are_kept():
    mdp = make_mdp(transitions=kernel(_0_0_0=1e-300, _0_0_1=1.0))
    assert math.isclose(mdp.transitions[0, 0, 0], 1e-300)
