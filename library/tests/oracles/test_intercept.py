"""A constant in the features: the oracles on z are those on (z, 1), learn what is constant, and say what they add."""

import math

import numpy as np
import pytest

from library.tests.oracles.test_state import bits, taught
from omg_cmdp.oracles import FeatureMap, LinearRewards, SoftmaxDynamics

SIZE = {"states": 3, "actions": 2, "horizon": 4}
KINDS = {"linear": LinearRewards, "softmax": SoftmaxDynamics}


def with_one(context):
    return np.append(context, 1.0)


def shared(context):
    return np.sin(np.arange(12)).reshape(3, 2, 2) * context / 2


def shared_with_one(context):
    return np.concatenate([shared(context), np.ones((3, 2, 1))], axis=-1)


PAIRS = {
    "linear": (LinearRewards, {"feature_norm": 1.5}, {"features": with_one}),
    "shared": (LinearRewards, {"features": shared, "shared": True}, {"features": shared_with_one, "shared": True}),
    "late": (LinearRewards, {"rate": "proven", "delay": 2}, {"features": with_one, "rate": "proven", "delay": 2}),
    "softmax": (SoftmaxDynamics, {"feature_norm": 1.5}, {"features": with_one}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_an_intercept_is_one_more_feature(name, seed):
    """The same forecasts to the bit, the same best loss and bound: ‖(z, 1)‖ <= √(X² + 1)."""
    kind, own, other = PAIRS[name]
    norm = math.hypot(own.get("feature_norm", 1.0), 1.0)
    contexts = [np.array(z) for z in ([0.6, 0.0], [0.0, -0.8], [0.5, 0.5])]
    one = taught(kind(**SIZE, dimension=2, **own), contexts, np.random.default_rng(seed), 20)
    two = kind(**SIZE, dimension=3, feature_norm=norm, intercept=False, **other)
    taught(two, contexts, np.random.default_rng(seed), 20)
    for context in contexts:
        np.testing.assert_array_equal(one.predict(context), two.predict(context))
    assert one.loss == two.loss
    np.testing.assert_equal(one.best_loss(), two.best_loss())
    assert one.regret_bound(99, 4) == pytest.approx(two.regret_bound(99, 4), rel=1e-12)


def test_what_is_constant_is_learned_at_every_context(rng):
    """Raw vectors, zeros among them: without an intercept the prediction at 0 is ½, and uniform, for good."""
    rewards, dynamics = (kind(**SIZE, dimension=2) for kind in KINDS.values())
    for _ in range(400):
        context = rng.uniform(-0.7, 0.7, 2)
        rewards.update(context, [0] * 4, [0] * 4, [0.9] * 4)
        dynamics.update(context, [0] * 4, [0] * 4, [1] * 4)
    for context in ([0.0, 0.0], [0.7, -0.7], [-0.5, 0.5]):
        assert rewards.predict(context)[0, 0] == pytest.approx(0.9, abs=0.01)
        assert dynamics.predict(context)[0, 0, 1] > 0.98
    blind = LinearRewards(**SIZE, dimension=2, intercept=False)
    blind.update([0.0, 0.0], [0] * 4, [0] * 4, [0.9] * 4)
    assert blind.predict([0.0, 0.0])[0, 0] == 0.5


@pytest.mark.parametrize("norm", [1e-3, 1.0, 1e3])
def test_neither_the_constant_nor_the_features_drown(norm, rng):
    """Before any data half of the variance ¼ is the constant's, in any unit of the features; and both are learned."""
    oracle = LinearRewards(states=1, actions=1, dimension=1, horizon=1, feature_norm=norm, ridge=1e-6)
    assert oracle.uncertainty([0.0]).item() == pytest.approx(1 / 8)
    assert oracle.uncertainty([norm]).item() == pytest.approx(1 / 4)
    for z in rng.uniform(-1.0, 1.0, 300):
        oracle.update([norm * z], [0], [0], [0.6 + 0.3 * z])
    means = [oracle.draws([norm * z], 400, rng).mean() for z in (-1.0, 0.0, 1.0)]
    np.testing.assert_allclose(means, [0.3, 0.6, 0.9], atol=0.02)


def pairs(context):
    """Return features that tell pairs apart, which add up to one."""
    return np.eye(6).reshape(3, 2, 6)


pairs.has_intercept = True


def test_features_with_a_constant_get_no_second_one():
    features = FeatureMap.fit({"age": [1, 2, 3], "ward": ["a", "b", "a"]})
    for kind in KINDS.values():
        oracles = [kind(**SIZE, dimension=4, features=features, intercept=intercept) for intercept in (True, False)]
        for oracle in oracles:
            assert oracle.forecasters.features.shape == (4,)
        assert bits(oracles[0].state()) == bits(oracles[1].state())
    table = LinearRewards(**SIZE, dimension=6, features=pairs, shared=True)
    assert table.forecasters.features.shape == (3, 2, 6)
    with pytest.raises(ValueError, match="`intercept` must be a bool"):
        LinearRewards(**SIZE, dimension=2, intercept=1)
