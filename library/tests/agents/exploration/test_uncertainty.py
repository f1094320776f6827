"""The uncertainty-weighted rule: the weights that it promises."""

import math

import numpy as np
import pytest

from library.tests.agents.catalogue import ORACLES, SIZE, build
from library.tests.agents.exploration.situations import after, situation
from omg_cmdp.mdp.bellman import value_ranges
from omg_cmdp.planning import plan

H = SIZE["horizon"]
FLOOR = 0.01  # that of "uncertainty weighted" in the catalogue; its κ is 1


@pytest.mark.parametrize("oracle", list(ORACLES))
def test_weights_are_above_the_floor(oracle):
    contexts, agent = build("uncertainty weighted", oracle)
    for t in (1, 10, 100):
        decision = after(agent, t - 1).decide(contexts[0])
        weights = decision.weights / decision.gamma
        tuples = situation(agent, contexts[0], t).tuples
        assert (weights >= FLOOR / math.sqrt(tuples * t) * (1.0 - 1e-12)).all()
        np.testing.assert_allclose(decision.weights.mean(), 1.0)


def test_nothing_but_the_floor_is_paid_where_all_is_known():
    contexts, agent = build("uncertainty weighted", "known by step")
    decision = agent.decide(contexts[0])
    np.testing.assert_allclose(decision.weights, 1.0)
    assert 1.0 / decision.gamma == pytest.approx(FLOOR / math.sqrt(situation(agent, contexts[0]).tuples))


@pytest.mark.parametrize("oracle", ["finite", "counts", "linear and softmax"])
def test_weights_are_those_of_the_root_program(oracle):
    """m = ½·√(q̂·u) + m₀, u = (κ/H)·(u_f + range²·u_P), and q̂ maximises ⟨q, f̂⟩ + Σ √(u·q) + m₀·Σ log q."""
    contexts, agent = build("uncertainty weighted", oracle)
    this = situation(after(agent, 5), contexts[0], 6, tolerance=1e-9)
    decision = agent.gamma.decide(this)
    floor = FLOOR / math.sqrt(this.tuples * 6)
    after_step = value_ranges(this.model, bounds=this.bounds)[:, None, None]
    dynamics = this.dynamics_oracle.uncertainty(this.context)
    unsure = (this.reward_oracle.uncertainty(this.context) + after_step**2 * dynamics) / H
    expected = 0.5 * np.sqrt(decision.occupancy * unsure) + floor
    np.testing.assert_allclose(decision.weights / decision.gamma, expected, rtol=1e-12)
    best = plan(this.model, uncertainty=unsure, floor=floor, tolerance=1e-12)
    np.testing.assert_allclose(decision.occupancy, best.occupancy, atol=1e-5)
