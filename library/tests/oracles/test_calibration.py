"""Calibration: on data that fit the class, the uncertainty is the size of the true error, within a factor of three.

The truths and what is measured are in `calibration.py`, which prints the table of docs/oracles.md.
"""

import numpy as np
import pytest

from library.tests.oracles.calibration import REWARDS, WORLDS, calibration, linear_rewards, shared_rewards

LINEAR = (linear_rewards, shared_rewards)
MARKS, REPETITIONS = (0, 10, 80), 40


@pytest.mark.slow
@pytest.mark.parametrize(("world", "rate"), [(world, rate) for world, rates in WORLDS.items() for rate in rates])
def test_the_uncertainty_is_the_size_of_the_error(world, rate, rng):
    """Also of pairs that were never visited, or seldom. The truths of linear rewards are a fifth of what λ allows."""
    found = calibration(rng, world, rate, MARKS, REPETITIONS).mean(axis=1)  # (marks, kinds, 2)
    errors, claimed = found[..., 0], found[..., 1]
    least = 6.0 if world in LINEAR else 3.0
    assert (errors <= 3.0 * claimed).all(), f"overconfident {errors / claimed}"
    assert (claimed <= least * errors).all(), f"too cautious {errors / claimed}"


@pytest.mark.parametrize("world", REWARDS)
def test_without_noise_too(world, rng):
    found = calibration(rng, world, "guarded", MARKS, REPETITIONS, noise=False).mean(axis=1)
    errors, claimed = found[..., 0], found[..., 1]
    least = 6.0 if world in LINEAR else 3.0
    assert (errors <= 3.0 * claimed).all(), f"overconfident {errors / claimed}"
    assert (claimed <= least * errors).all(), f"too cautious {errors / claimed}"


def test_linear_rewards_are_calibrated_for_the_prior_that_the_ridge_stands_for(rng):
    """θ ~ N(0, I/(4λ)), λ = 25, so that rewards stay in [0, 1]: the ratio is 1, for pairs never visited too."""
    from library.tests.oracles.calibration import ACTIONS, DIMENSION, LABELS, SIZE, STATES, in_ball
    from omg_cmdp.oracles import LinearRewards

    def world(rng, rate):
        theta = 0.1 * rng.standard_normal((STATES, ACTIONS, DIMENSION))
        return (
            LinearRewards(**SIZE, dimension=DIMENSION, rate=rate, ridge=25.0, intercept=False),
            lambda z: 0.5 + theta @ z,
            in_ball(rng, LABELS),
        )

    found = calibration(rng, world, "realizable", (20, 200), 100).mean(axis=1)
    np.testing.assert_allclose(found[..., 0] / found[..., 1], 1.0, atol=0.25)
