"""A quarter of v (docs/theory.md): what half of the best weights cost, exact or not, whatever few draws say."""

import itertools

import numpy as np
import pytest

from lab.tests.audit.test_gain import FLOOR, ROUNDING, gain_round, posterior, problems
from library.tests.agents.exploration.draws import flow, promised, seen_by
from omg_cmdp.agents.exploration.gain import SHARE
from omg_cmdp.mdp import optimal_policy, policy_value
from omg_cmdp.planning import plan
from omg_cmdp.planning.certificate import slacks

FACTOR = 0.5 * (SHARE**0.5 + SHARE**-0.5)


def test_half_of_the_weights_cost_five_quarters():
    """Σ m + ¼·Σ q̂v/m at m = ¼·√(q̂v) is 5/4 of its minimum, that at ½·√(q̂v)."""
    q, v = np.array([0.2, 0.8]), np.array([0.3, 0.05])
    half, best = (gain_round(0.5 * np.sqrt(q * w), q, v) for w in (SHARE * v, v))
    assert half / best == pytest.approx(FACTOR) == 1.25


def test_a_pair_near_the_plan_of_a_share_pays_for_its_distance(rng):
    """Any pair, with m = ¼√(q̂v) + m₀ and x = q̂z/m: E V_k - V̂(q̂) <= Σ √(q̂v)·(x/4 + 1/x) + m₀·Σ x."""
    for model, draws in problems(rng, 30):
        v = flow(draws)
        rough = plan(model, uncertainty=np.maximum(SHARE * v, 4.0 * FLOOR**2), tolerance=10.0 ** rng.uniform(-6, -1))
        held = rough.occupancy > 0.0
        q, z = rough.occupancy[held], slacks(model, rough.values)[held]
        root = np.sqrt(q * v[held])
        x = q * z / (0.25 * root + FLOOR)
        right = float((root * (0.25 * x + 1.0 / x) + FLOOR * x).sum())
        assert promised(model, draws) - policy_value(model, rough.policy) <= right + ROUNDING


@pytest.mark.parametrize("by_steps", [True, False])
def test_bayesian_price_of_an_episode(rng, by_steps):
    """E V* - V̂^π <= Σ m + ¼·Σ q̂v/m, v of the whole posterior, for the plan of any two draws; <= 5/4·Σ √(q̂v) of all."""
    for _ in range(3):
        models, mean = posterior(rng, by_steps=by_steps)
        best = np.mean([optimal_policy(each)[1] for each in models])
        v = flow(seen_by(mean, models))
        for drawn in itertools.chain([models], itertools.islice(itertools.combinations(models, 2), 20)):
            seen = SHARE * flow(seen_by(mean, drawn))
            solution = plan(mean, uncertainty=seen, floor=FLOOR, tolerance=1e-9)
            q, lost = solution.occupancy, best - policy_value(mean, solution.policy)
            assert lost <= gain_round(0.5 * np.sqrt(q * seen) + FLOOR, q, v) + 1e-4
            if drawn is models:
                spare = ((q > 0.0).sum() - mean.horizon) * FLOOR
                assert lost <= FACTOR * np.sqrt(q * v).sum() + spare + 1e-6
