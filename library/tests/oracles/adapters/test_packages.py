"""What is special about the adapters of scikit-learn, River and PyTorch."""

import numpy as np
import pytest

from library.tests.oracles.adapters.catalogue import (
    ACTIONS,
    HORIZON,
    INPUTS,
    KINDS,
    STATES,
    assert_same_state,
    build,
    episode,
    train,
)
from omg_cmdp.oracles import adapters
from omg_cmdp.oracles.adapters.ensemble import lessons

# scikit-learn


def test_a_copy_that_gives_up_midway_is_undone(rng):
    linear_model = pytest.importorskip("sklearn.linear_model")

    class Moody(linear_model.SGDRegressor):
        def partial_fit(self, inputs, outcomes):
            if 1.0 in outcomes:
                raise OverflowError("diverged")
            return super().partial_fit(inputs, outcomes)

    shape = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON}
    oracle, undisturbed = adapters.SklearnRewards(Moody(), **shape), adapters.SklearnRewards(Moody(), **shape)
    for t in range(6):
        context, states, actions, _ = episode(rng, "Rewards")
        # The first copy does not see these examples, and has learned when the second gives up.
        unseen = ~lessons(t * HORIZON, HORIZON, oracle.forecasters.members)[0]
        if unseen.any():
            with pytest.raises(OverflowError, match="diverged"):
                oracle.update(context, states, actions, np.where(unseen, 1.0, 0.5))
        for each in (oracle, undisturbed):
            each.update(context, states, actions, np.full(HORIZON, 0.1 * t))
        np.testing.assert_array_equal(oracle.predict(context), undisturbed.predict(context))
    assert_same_state(oracle.state(), undisturbed.state())


def test_sklearn_models_are_copied_and_seeded():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPRegressor

    model, rng = MLPRegressor(hidden_layer_sizes=(8,)), np.random.default_rng(0)
    first, second = (adapters.SklearnRewards(model, states=STATES, actions=ACTIONS, horizon=HORIZON) for _ in range(2))
    for _ in range(3):
        arrays = episode(rng, "Rewards")
        first.update(*arrays)
        second.update(*arrays)
    np.testing.assert_array_equal(first.predict([0.5, 0.5]), second.predict([0.5, 0.5]))
    assert model.random_state is None
    assert not hasattr(model, "coefs_")
    with pytest.raises(ValueError, match="must have partial_fit and predict_proba"):
        adapters.SklearnDynamics(SGDClassifier(loss="hinge"), states=2, actions=1, horizon=1)


@pytest.mark.parametrize(
    ("answer", "row"),
    [
        ([1e-6, 3e-6, 1.0], [0.25, 0.75, 0.0]),  # the third cannot happen: its answer, conditional on that
        ([0.0, 0.0, 1.0], [0.5, 0.5, 0.0]),  # no mass on what can happen
        ([0.0, 1.0, 0.0], [0.01 / 1.01, 1.0 / 1.01, 0.0]),  # below the floor
    ],
)
def test_answers_are_cut_to_the_support_and_the_floor(answer, row):
    base = pytest.importorskip("sklearn.base")

    class Stubborn(base.BaseEstimator):
        def partial_fit(self, inputs, outcomes, classes):
            return self

        def predict_proba(self, inputs):
            return np.tile(answer, (len(inputs), 1))

    support = np.broadcast_to([True, True, False], (3, 1, 3))
    oracle = adapters.SklearnDynamics(Stubborn(), states=3, actions=1, horizon=2, support=support, floor=0.01)
    oracle.update([0.0], [0, 1], [0, 0], [1, 1])
    np.testing.assert_allclose(oracle.predict([0.0]), np.broadcast_to(row, (3, 1, 3)), rtol=1e-12)


# River


def test_river_pipelines_and_random_forests_are_replayed_to_the_bit(rng):
    pytest.importorskip("river")
    from river import forest, preprocessing

    def fresh():
        model = preprocessing.StandardScaler() | forest.ARFRegressor(n_models=3)
        return adapters.RiverRewards(model, states=STATES, actions=ACTIONS, horizon=HORIZON, members=2)

    oracle, other = train(fresh(), rng, "Rewards", 40), fresh()
    other.load_state(oracle.state())
    arrays = episode(rng, "Rewards")
    oracle.update(*arrays)
    other.update(*arrays)
    np.testing.assert_array_equal(oracle.predict(arrays[0]), other.predict(arrays[0]))


def test_a_binary_classifier_of_river_serves_two_states():
    pytest.importorskip("river")
    from river import linear_model

    oracle = adapters.RiverDynamics(linear_model.LogisticRegression(), states=2, actions=1, horizon=1)
    for _ in range(50):
        oracle.update([1.0], [0], [0], [1])
    assert oracle.predict([1.0])[0, 0, 1] > 0.6
    with pytest.raises(ValueError, match="`model` must be a River Regressor"):
        adapters.RiverRewards(linear_model.LogisticRegression(), states=2, actions=1, horizon=1)


def test_a_model_that_diverges_is_named(rng):
    pytest.importorskip("river")
    from river import linear_model, optim

    model = linear_model.LinearRegression(optimizer=optim.SGD(1e308))
    oracle = adapters.RiverRewards(model, states=STATES, actions=ACTIONS, horizon=HORIZON)
    with pytest.raises(ValueError, match="`model` must predict finite numbers"):
        train(oracle, rng, "Rewards", 30)


# PyTorch


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "RMSprop", "NAdam", "ASGD", "Rprop"])
def test_optimisers_and_dropout_continue_to_the_bit(kind, name, rng, tmp_path):
    torch = pytest.importorskip("torch")
    extra = {"momentum": 0.9} if name == "SGD" else {}

    def fresh():
        return build(
            "torch", kind, optimizer=lambda p: getattr(torch.optim, name)(p, lr=0.01, **extra), dropout=0.5, passes=2
        )

    oracle, other = train(fresh(), rng, kind, 10), fresh()
    np.savez(tmp_path / "state.npz", **oracle.state())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
        other.load_state(state)
    for _ in range(5):
        arrays = episode(rng, kind)
        oracle.update(*arrays)
        with torch.random.fork_rng():
            torch.manual_seed(5)  # others draw from torch's generator too: neither may disturb the other
            numbers = torch.random.get_rng_state()
            other.update(*arrays)
            np.testing.assert_array_equal(oracle.predict(arrays[0]), other.predict(arrays[0]))
            assert torch.equal(torch.random.get_rng_state(), numbers)
    assert_same_state(oracle.state(), other.state())
    with pytest.raises(ValueError, match="`state` must come from"):
        build("torch", kind).load_state(oracle.state())


@pytest.mark.slow
def test_buffers_are_restored_and_a_module_that_gives_up_is_undone(rng):
    torch = pytest.importorskip("torch")

    def fresh(horizon):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.BatchNorm1d(INPUTS), torch.nn.Linear(INPUTS, 1))
        shape = {"states": STATES, "actions": ACTIONS, "horizon": horizon, "members": 2}
        return adapters.TorchRewards(model, optimizer=lambda p: torch.optim.SGD(p, lr=0.1), **shape)

    oracle, other = fresh(8), fresh(8)
    for _ in range(3):
        oracle.update(rng.random(2), rng.integers(STATES, size=8), rng.integers(ACTIONS, size=8), rng.random(8))
    other.load_state(oracle.state())
    assert_same_state(oracle.state(), other.state())
    assert "member1/module/0.running_mean" in oracle.state()
    np.testing.assert_array_equal(oracle.predict([0.5, 0.5]), other.predict([0.5, 0.5]))
    # One example has no variance: in an episode of length 1 the first copy sees nothing, and the second gives up.
    short = fresh(1)
    before = short.state()
    with pytest.raises(ValueError, match="more than 1 value"):
        short.update([0.5, 0.5], [0], [0], [0.2])
    assert_same_state(short.state(), before)
