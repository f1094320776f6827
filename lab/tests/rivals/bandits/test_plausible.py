"""The plausible functions: what they are, and that the truth stays among them."""

import math

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import rounds, with_class
from omg_cmdp import oracles
from omg_lab.rivals import RegCB
from omg_lab.rivals.bandits.plausible import plausible

MASK = np.array([[True, True, False], [False, True, True]])


@pytest.mark.parametrize("make", [oracles.FiniteRewards, oracles.OfflineFiniteRewards])
def test_of_a_finite_class_they_are_those_of_nearly_the_least_loss(make, rng):
    tables = rng.random((20, 2, 3))
    oracle, losses = make({"c": tables}, horizon=1), np.zeros(20)
    for _ in range(15):
        state, action, reward = int(rng.integers(2)), int(rng.integers(3)), rng.random()
        oracle.update("c", [state], [action], [reward])
        losses += (tables[:, state, action] - reward) ** 2
        kept = tables[losses <= losses.min() + 0.3]
        found = plausible(oracle, "c", 0.3, MASK)
        np.testing.assert_array_equal(found.lows[MASK], kept.min(axis=0)[MASK])
        np.testing.assert_array_equal(found.highs[MASK], kept.max(axis=0)[MASK])
        best = np.where(MASK, kept, -1.0).argmax(axis=2)
        assert {(s, a) for s, a in np.argwhere(found.best).tolist()} == {
            (s, int(row[s])) for row in best for s in (0, 1)
        }
    assert not found.best[~MASK].any()
    assert not found.survivors[~MASK].any()
    assert (found.survivors >= found.best).all()


def test_the_truth_stays_plausible_as_often_as_is_said(rng):
    """P(ever excluded) <= δ with β = ½·log(N/δ), for actions chosen by what was seen."""
    size, delta, runs, lost = 12, 0.3, 50, 0
    for _ in range(runs):
        tables = np.clip(0.5 + rng.normal(scale=0.15, size=(size, 1, 2)), 0.0, 1.0)
        agent = with_class(RegCB, {"c": tables}, 0.5 * math.log(size / delta))
        excluded = False
        for _ in rounds(agent, {"c": tables[0, 0]}, ["c"], 60, rng):
            losses = agent.reward_oracle.forecasters.class_losses
            excluded |= len(losses) > 0 and losses[0] > losses.min() + agent.radius(1)
        lost += excluded
    assert lost <= delta * runs + 3.0 * math.sqrt(delta * (1.0 - delta) * runs)


def test_of_counts_they_are_within_the_root_of_four_radii_of_uncertainty(rng):
    oracle = oracles.CountRewards(states=2, actions=3, horizon=1)
    for _ in range(40):
        oracle.update("c", [int(rng.integers(2))], [int(rng.integers(3))], [float(rng.random() < 0.5)])
    found, mean = plausible(oracle, "c", 0.1, MASK), oracle.predict("c")
    width = np.sqrt(0.4 * oracle.uncertainty("c"))
    np.testing.assert_allclose(found.highs[MASK], np.minimum(mean + width, 1.0)[MASK])
    np.testing.assert_allclose(found.lows[MASK], np.maximum(mean - width, 0.0)[MASK])
    narrow = plausible(oracle, "c", 1e-12, MASK)
    np.testing.assert_array_equal(narrow.survivors.argmax(axis=1), np.where(MASK, mean, -1.0).argmax(axis=1))


def test_for_noise_of_a_quarter_the_width_is_that_of_the_loss(rng):
    """L(f) - L(f̂) = ‖θ - θ̂‖² in the norm of A = λI + Σzzᵀ, so that |f - f̂| <= √(β·zᵀA⁻¹z) on {L <= min + β}."""
    oracle = oracles.LinearRewards(states=1, actions=1, dimension=3, horizon=1, ridge=1.0, intercept=False)
    gram = np.eye(3)
    for _ in range(600):
        z = rng.normal(size=3)
        z /= np.linalg.norm(z)
        oracle.update(z, [0], [0], [float(rng.random() < 0.5)])  # a fair coin: the noise is ¼
        gram += np.outer(z, z)
    found = plausible(oracle, z, 2.0, np.ones((1, 1), dtype=bool))
    width = math.sqrt(2.0 * z @ np.linalg.solve(gram, z))
    assert found.highs[0, 0] - found.lows[0, 0] == pytest.approx(2.0 * width, rel=0.03)
