"""What is special about the adapters of scikit-learn."""

import numpy as np
import pytest

from library.tests.oracles.adapters.catalogue import (
    ACTIONS,
    HORIZON,
    STATES,
    assert_same_state,
    episode,
)
from omg_cmdp.oracles import adapters
from omg_cmdp.oracles.adapters.ensemble import lessons


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
