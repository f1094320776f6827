"""LinMED: its formula where it is known in closed form, its design, and the covariance that both rest on."""

import math

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import one_state, still, taught
from omg_cmdp import oracles
from omg_lab.rivals import LinMED
from omg_lab.rivals.bandits.lin_med import empirical_likelihoods, optimal_design


def linear(features, space, **more):
    """Return an agent with shared features (S, A, d), the same for every context."""
    sizes = {"states": space.states, "actions": space.actions, "horizon": 1, "dimension": features.shape[-1]}
    norm = float(np.linalg.norm(features, axis=-1).max())
    oracle = oracles.LinearRewards(**sizes, features=lambda _: features, shared=True, feature_norm=norm, ridge=1e-6)
    return LinMED(space, oracle, still(space), **more)


def test_for_independent_actions_it_is_minimum_empirical_divergence():
    """Two arms, played 30 and 20 times, means .7 and .6: m = exp(-gap²/(β·(1/30 + 1/20)))."""
    agent = linear(np.eye(2)[None], one_state(2), empirical=0.6, design=0.3)
    for action, mean, count in ((0, 0.7, 30), (1, 0.6, 20)):
        for _ in range(count):
            taught(agent, "c", action, mean)
    gap = np.subtract(*agent.model("c").rewards[0])
    rate = math.exp(-(gap**2) / (0.5 * (1 / 30 + 1 / 20)))
    assert gap == pytest.approx(0.1, abs=0.01)
    base = 0.5 * 0.3 + 0.5 * 0.1  # the design of two orthogonal features is uniform, however they are scaled
    expected = np.array([base + 0.6, base * rate])
    np.testing.assert_allclose(agent.policy("c")[0, 0], expected / expected.sum(), rtol=1e-5)


def test_with_counts_it_is_the_same_with_their_uncertainty(rng):
    space = one_state(3, 2, start=[0.5, 0.5], admissible=[[True, True, True], [False, True, True]])
    oracle = oracles.CountRewards(states=2, actions=3, horizon=1)
    agent = LinMED(space, oracle, still(space), 0.7, empirical=0.5, design=0.2)
    for _ in range(60):
        state = int(rng.integers(2))
        action = int(rng.integers(state, 3))
        taught(agent, "c", action, float(rng.random() < 0.2 + 0.3 * action), state=state)
    policy, mean, spread = agent.policy("c")[0], oracle.predict("c"), 4.0 * oracle.uncertainty("c")
    np.testing.assert_allclose(policy.sum(axis=1), 1.0)
    assert policy[1, 0] == 0.0
    for s, allowed in ((0, [0, 1, 2]), (1, [1, 2])):
        best = allowed[int(mean[s, allowed].argmax())]
        rates = np.exp(-((mean[s, best] - mean[s]) ** 2) / (0.7 * (spread[s] + spread[s, best])))
        rates[best], k = 1.0, len(allowed)
        weights = (0.3 / k + 0.2 / k + 0.5 * (np.arange(3) == best)) * rates
        np.testing.assert_allclose(policy[s, allowed], weights[allowed] / weights[allowed].sum(), rtol=1e-9)


def test_features_that_are_nearly_the_same_tell_of_each_other():
    """ε apart, in a direction of which little is known: m is large although each action was played often."""
    covariance = np.array([[0.01, 0.0099], [0.0099, 0.01]])
    assert empirical_likelihoods(np.array([0.0, 0.05]), covariance, 0.5)[1] == pytest.approx(math.exp(-25.0))
    assert empirical_likelihoods(np.array([0.0, 0.05]), np.eye(2) / 100, 0.5)[1] == pytest.approx(math.exp(-0.25))


def test_what_is_known_is_played():
    space = one_state(3)
    agent = LinMED(space, oracles.KnownRewards([[0.2, 0.7, 0.6]], horizon=1), still(space))
    np.testing.assert_array_equal(agent.policy("c")[0, 0], [0.0, 1.0, 0.0])
    equal = LinMED(space, oracles.KnownRewards([[0.5, 0.5, 0.5]], horizon=1), still(space))
    assert equal.policy("c")[0, 0].min() > 0.0


def test_no_leverage_of_the_design_is_above_twice_the_rank(rng):
    """Kiefer and Wolfowitz: the optimum has the rank itself; and nothing depends on the coordinates."""
    for actions, rank in ((3, 1), (5, 2), (8, 3), (30, 5)):
        rows = rng.normal(size=(actions, rank)) * 10.0 ** rng.uniform(-2, 2, size=(actions, 1))
        design = optimal_design(rows @ rows.T, np.ones(actions, dtype=bool))
        assert design.sum() == pytest.approx(1.0)
        inverse = np.linalg.inv(rows.T * design @ rows)
        assert np.einsum("ai,ij,aj->a", rows, inverse, rows).max() <= 2.0 * rank * (1.0 + 1e-6)
        moved = rows @ (np.eye(rank) + 0.3 * rng.normal(size=(rank, rank)))
        again = optimal_design(moved @ moved.T, np.ones(actions, dtype=bool))
        np.testing.assert_allclose(again, design, atol=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_the_covariance_is_that_of_the_regression(shared, rng):
    features = {k: rng.normal(size=(2, 3, 4)) / 4.0 if shared else rng.normal(size=4) / 4.0 for k in range(5)}
    sizes = {"states": 2, "actions": 3, "horizon": 1, "dimension": 4}
    oracle = oracles.LinearRewards(**sizes, features=features.get, shared=shared, ridge=0.5, intercept=False)
    grams = np.tile(0.5 * np.eye(4), (1 if shared else 6, 1, 1))
    for _ in range(40):
        k, state, action = (int(rng.integers(high)) for high in (5, 2, 3))
        oracle.update(k, [state], [action], [rng.random()])
        z = features[k][state, action] if shared else features[k]
        grams[0 if shared else 3 * state + action] += np.outer(z, z)
    found = oracle.covariance(2)
    for s in range(2):
        for a in range(3):
            for b in range(3):
                z, w = (features[2][s, each] if shared else features[2] for each in (a, b))
                expected = z @ np.linalg.solve(grams[0 if shared else 3 * s + a], w) * (shared or a == b)
                assert found[s, a, b] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("empirical", "design"), [(0.5, 0.5), (1.0, 0.0), (-0.1, 0.5), (0.5, np.nan)])
def test_shares_that_leave_nothing_are_refused(empirical, design):
    space = one_state(2)
    with pytest.raises(ValueError, match=r"`(empirical|design)`"):
        LinMED(space, oracles.KnownRewards([[0.1, 0.2]], horizon=1), still(space), empirical=empirical, design=design)
