"""All adapters keep the contract: valid tables, masks, what is refused, and errors that fall with data."""

import math

import numpy as np
import pytest

from library.tests.oracles.adapters.catalogue import (
    ACTIONS,
    DIMENSION,
    HORIZON,
    INPUTS,
    STATES,
    assert_same_state,
    assert_valid,
    build,
    episode,
    error,
    every_adapter,
    train,
)
from omg_cmdp.checks import check_oracle
from omg_cmdp.oracles import adapters


@pytest.mark.slow
@every_adapter
def test_the_contract_holds(kind, rng):
    check_oracle(build(kind), contexts=list(rng.random((3, DIMENSION))))


@every_adapter
@pytest.mark.parametrize("members", [1, 4])
def test_tables_are_valid_before_any_data_and_after(kind, members, rng):
    oracle = build(kind, members=members)
    context = rng.random(DIMENSION)
    assert_valid(oracle, context)
    rewards = kind == "Rewards"
    np.testing.assert_allclose(oracle.predict(context), 0.5 if rewards else 1.0 / STATES)
    np.testing.assert_allclose(oracle.uncertainty(context), 0.25 if rewards else 2.0 - 2.0 / math.sqrt(STATES))
    for _ in range(30):
        train(oracle, rng, kind, 1)
        assert_valid(oracle, context)
    assert oracle.loss > 0.0
    assert oracle.regret_bound(10, HORIZON) == math.inf


@every_adapter
def test_copies_that_have_learned_nothing_are_not_asked(kind, rng):
    oracle = build(kind, horizon=1)
    for _ in range(4):
        context, *arrays = episode(rng, kind)
        oracle.update(context, *(array[:1] for array in arrays))
        assert_valid(oracle, context)


@every_adapter
def test_asking_changes_nothing(kind, rng):
    oracle = train(build(kind), rng, kind, 5)
    before, context = oracle.state(), rng.random(DIMENSION)
    prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
    oracle.predict(rng.random(DIMENSION))
    np.testing.assert_array_equal(oracle.predict(context), prediction)
    np.testing.assert_array_equal(oracle.uncertainty(context), uncertainty)
    assert_same_state(oracle.state(), before)


@every_adapter
@pytest.mark.parametrize("members", [1, 3])
def test_masks_are_respected(kind, members, rng):
    admissible = np.array([[True, False], [True, True], [False, True]])
    support = np.ones((STATES, ACTIONS, STATES), dtype=bool)
    support[0, :, 2] = support[1, 0, 1:] = False

    def features(context):
        # Inadmissible pairs have no features: a model that is asked about them would answer nan.
        inputs = np.full((STATES, ACTIONS, INPUTS), np.nan)
        inputs[admissible] = np.concatenate([np.tile(context, (4, 1)), np.eye(4, INPUTS - DIMENSION)], axis=1)
        return inputs

    options = {} if kind == "Rewards" else {"support": support}
    oracle = build(kind, admissible=admissible, features=features, members=members, **options)
    for episodes in (0, 30):
        train(oracle, rng, kind, episodes, admissible=admissible, support=support)
        context = rng.random(DIMENSION)
        prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
        assert (uncertainty[~admissible] == 0.0).all()
        if kind == "Rewards":
            assert (prediction[~admissible] == 0.0).all()
            assert (uncertainty[admissible] > 0.0).all()
        else:
            np.testing.assert_allclose(prediction.sum(axis=-1), 1.0, atol=1e-12)
            np.testing.assert_allclose(
                prediction[~admissible], (support / support.sum(axis=-1, keepdims=True))[~admissible], rtol=1e-15
            )
            assert (prediction[~support] == 0.0).all()
            assert (prediction[support] >= 0.99 * oracle.forecasters.tables.floor).all()
            # Where only one next state is possible, nothing is uncertain.
            assert uncertainty[1, 0] == 0.0
            assert uncertainty[1, 1] > 0.0


@every_adapter
def test_errors_leave_the_state_unchanged(kind, rng):
    admissible = np.array([[True, True], [True, True], [True, False]])
    oracle = train(build(kind, admissible=admissible), rng, kind, 3, admissible=admissible)
    before = oracle.state()
    context, states, actions, outcomes = episode(rng, kind, admissible=admissible)
    for bad in (
        [0.5, np.nan],
        [0.5, np.inf],
        [0.5],
        [0.1, 0.2, 0.3],
        0.5,
        [[0.5, 0.5]],
        "patient",
        None,
        {},
        [[1], []],
    ):
        for ask in (oracle.predict, oracle.uncertainty, lambda c: oracle.update(c, states, actions, outcomes)):
            with pytest.raises(ValueError, match="`context`"):
                ask(bad)
    for arguments, name in (
        ((states[:-1], actions, outcomes), "states"),
        ((states, actions + ACTIONS, outcomes), "actions"),
        ((states, actions, outcomes - 2), "rewards" if kind == "Rewards" else "next_states"),
        ((np.full(HORIZON, 2), np.full(HORIZON, 1), outcomes), "`actions` must be admissible, got 1 in state 2"),
    ):
        with pytest.raises(ValueError, match=name):
            oracle.update(context, *arguments)
    for arguments in ((0, 1), (1, 0), (1.5, 1)):
        with pytest.raises(ValueError, match="must be an integer"):
            oracle.regret_bound(*arguments)
    assert_same_state(oracle.state(), before)
    oracle.update(context, states, actions, outcomes)


@pytest.mark.slow
@every_adapter
def test_error_and_uncertainty_fall_with_data(kind, rng):
    oracle, context = build(kind), np.full(DIMENSION, 0.5)
    errors, uncertainties = [], []
    for episodes in (0, 20, 400):
        train(oracle, rng, kind, episodes)
        errors.append(error(oracle, kind))
        uncertainties.append(oracle.uncertainty(context).mean())
    assert errors[2] < 0.25 * errors[0]
    assert uncertainties[0] > uncertainties[1] > uncertainties[2] > 0.0
    assert uncertainties[2] < 0.1 * uncertainties[0]


@every_adapter
def test_bad_arguments_are_refused_by_name(kind):
    for options in (
        {"states": 0},
        {"actions": 1.5},
        {"horizon": True},
        {"members": 0},
        {"features": [1.0]},
        {"admissible": np.ones((STATES, ACTIONS))},
        *(
            []
            if kind == "Rewards"
            else [{"floor": 0.0}, {"floor": 0.5}, {"support": np.ones((STATES, ACTIONS, 1), bool)}]
        ),
    ):
        with pytest.raises(ValueError, match=f"`{next(iter(options))}` must"):
            build(kind, **options)
    with pytest.raises(ValueError, match="`model` must"):
        getattr(adapters, type(build(kind)).__name__)(object(), states=1, actions=1, horizon=1)


@every_adapter
def test_bad_features_are_refused_by_name(kind):
    answers = {
        "flat": np.zeros((STATES, ACTIONS)),
        "small": np.zeros((STATES, 1, 2)),
        "empty": np.zeros((STATES, ACTIONS, 0)),
    }
    answers |= {"nan": np.full((STATES, ACTIONS, 2), np.nan), "text": "text"}
    oracle = build(kind, features=answers.get)
    for context in answers:
        with pytest.raises(ValueError, match="`features` must"):
            oracle.predict(context)
