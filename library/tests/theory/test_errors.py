import itertools
import math

import numpy as np
import pytest

from omg_cmdp.theory import errors


def test_the_square_losses_concentrate_as_the_proof_says(rng):
    """E exp(s·E D - c·X) <= 1 for every episode of two steps: errors d, means f, and rewards 0 or 1, enumerated.

    s and c are read off the bound, which is (c·R + log 2/δ)/s. What happens in the second step depends on the first.
    """
    horizon = 2
    constant = errors.reward_error(horizon=horizon, delta=0.5, reward_regret=0.0)
    s = math.log(4.0) / constant
    c = s * (errors.reward_error(horizon=horizon, delta=0.5, reward_regret=1.0) - constant)
    tightest = 0.0
    for _ in range(3000):
        extreme = rng.random() < 0.5
        means, guesses = (rng.random(3) if not extreme else rng.integers(0, 2, 3).astype(float) for _ in range(2))
        mean, squares = 0.0, 0.0
        for first, second in itertools.product((0, 1), repeat=2):
            at = (0, 1 + first)
            chance = math.prod(means[k] if r else 1.0 - means[k] for k, r in zip(at, (first, second), strict=True))
            excess = sum((guesses[k] - r) ** 2 - (means[k] - r) ** 2 for k, r in zip(at, (first, second), strict=True))
            mean += chance * math.exp(-c * excess)
            squares += chance * sum((guesses[k] - means[k]) ** 2 for k in at)
        tightest = max(tightest, mean * math.exp(s * squares))
    assert 0.9 < tightest <= 1.0 + 1e-12


@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 40])
def test_both_constants_are_below_those_of_the_paper(horizon):
    most = [errors.reward_error(horizon=horizon, delta=0.05, reward_regret=regret) for regret in (0.0, 1.0)]
    assert most[0] < 0.5 * 16.0 * horizon * math.log(2.0 / 0.05)
    assert most[1] - most[0] < 2.0
    assert np.isfinite(most).all()
