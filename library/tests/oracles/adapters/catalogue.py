"""An oracle of both adapters, a truth for it to learn, and episodes of that truth."""

import numpy as np
import pytest

from omg_cmdp.oracles import adapters

STATES, ACTIONS, HORIZON, DIMENSION = 3, 2, 4, 2
INPUTS = DIMENSION + STATES + ACTIONS
KINDS = ("Rewards", "Dynamics")


def refitted_oracle(kind, **options):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LinearRegression, LogisticRegression

    model = LinearRegression() if kind == "Rewards" else LogisticRegression(C=100.0, tol=0.01, solver="newton-cholesky")
    return getattr(adapters, f"Refitted{kind}")(model, **{"every": 0.5, "members": 3, **options})


every_adapter = pytest.mark.parametrize("kind", KINDS)


def build(kind, **options):
    return refitted_oracle(kind, **{"states": STATES, "actions": ACTIONS, "horizon": HORIZON, **options})


def truth(kind, context):
    """Return a table that is linear in the inputs; for dynamics, its softmax with a slope for each next state."""
    state, action = np.arange(STATES)[:, None], np.arange(ACTIONS)
    if kind == "Rewards":
        return 0.1 + 0.4 * context[0] + 0.15 * state + 0.2 * action
    scores = np.broadcast_arrays(4.0 * context[0] - 2.0 * state, 4.0 * action - 4.0, 4.0 * context[1] - 4.0)
    weights = np.exp(np.stack(scores, axis=-1))
    return weights / weights.sum(axis=-1, keepdims=True)


def episode(rng, kind, admissible=None, support=None):
    """Return a context and an episode of random admissible pairs, for `update`."""
    context = rng.random(DIMENSION)
    pairs = np.argwhere(np.ones((STATES, ACTIONS)) if admissible is None else admissible)
    states, actions = pairs[rng.integers(len(pairs), size=HORIZON)].T
    table = truth(kind, context)
    if kind == "Rewards":
        return context, states, actions, np.clip(table[states, actions] + 0.1 * rng.normal(size=HORIZON), 0.0, 1.0)
    table = table if support is None else table * support
    rows = table[states, actions].cumsum(axis=-1)
    return context, states, actions, (rng.random((HORIZON, 1)) * rows[:, -1:] > rows).sum(axis=-1)


def train(oracle, rng, kind, episodes, **masks):
    for _ in range(episodes):
        oracle.update(*episode(rng, kind, **masks))
    return oracle


def error(oracle, kind):
    """Return the mean squared error over a grid of contexts."""
    contexts = [np.array([x, y]) for x in (0.1, 0.5, 0.9) for y in (0.1, 0.5, 0.9)]
    return np.mean([(oracle.predict(context) - truth(kind, context)) ** 2 for context in contexts])


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def assert_valid(oracle, context):
    prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
    assert uncertainty.shape == (STATES, ACTIONS)
    assert np.isfinite(prediction).all()
    assert (prediction >= 0.0).all()
    if "Rewards" in type(oracle).__name__:
        assert prediction.shape == (STATES, ACTIONS)
        assert (prediction <= 1.0).all()
        assert ((uncertainty > 0.0) & (uncertainty <= 1.0)).all()
    else:
        assert prediction.shape == (STATES, ACTIONS, STATES)
        np.testing.assert_allclose(prediction.sum(axis=-1), 1.0, atol=1e-12)
        assert (prediction >= 0.99 * oracle.forecasters.tables.floor).all()
        assert ((uncertainty > 0.0) & (uncertainty <= 2.0)).all()
