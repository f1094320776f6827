"""Counts that no episode can have made, in a state whose form is right."""

import numpy as np
import pytest

from omg_cmdp import oracles


@pytest.mark.filterwarnings("ignore")  # of nan
@pytest.mark.parametrize(("name", "value"), [("visits", 1e300), ("sums", 1e6), ("sums", -1e6), ("squares", -1e6)])
def test_draws_end_whatever_was_counted(name, value):
    oracle = oracles.CountRewards(states=1, actions=2, horizon=2)
    oracle.update(0, [0, 0], [0, 1], [1.0, 0.0])
    state = oracle.state()
    oracle.load_state({**state, name: np.full_like(state[name], value)})
    assert oracle.draws(0, 3, np.random.default_rng(0)).shape == (3, 1, 2)
