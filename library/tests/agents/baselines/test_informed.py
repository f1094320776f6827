"""The agent that knows the truth has no regret."""

import numpy as np
import pytest

from library.tests.random_mdps import random_mdp
from library.tests.worlds import SafeArm
from omg_cmdp import optimal_policy, policy_value, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Informed


def test_the_informed_have_no_regret_and_no_error(seed):
    world = SafeArm(seed=seed)
    table = simulate(world, IID(world.contexts), Informed(world.space, world.mdp), 50).table()
    assert np.abs(table["regret"]).max() <= 1e-12
    assert table["reward_error"].max() == table["dynamics_error"].max() == 0.0


def test_the_informed_may_be_restricted_and_start_anywhere(rng):
    for _ in range(10):
        mdp = random_mdp(rng, 4, 3, 4, masked=True)
        policy = Informed(mdp.space, lambda _, mdp=mdp: mdp).policy("any")
        assert policy_value(mdp, policy) == pytest.approx(optimal_policy(mdp)[1], abs=1e-12)


def test_the_informed_need_a_function():
    mdp = SafeArm().mdp(0)
    with pytest.raises(ValueError, match="`mdp` must be a function, got TabularMDP"):
        Informed(mdp.space, mdp)
