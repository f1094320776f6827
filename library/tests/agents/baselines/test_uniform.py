"""Uniform play: its regret, and inadmissible actions."""

import numpy as np
import pytest

from library.tests.agents.catalogue import HORIZON, SPACES
from library.tests.agents.models import uniform
from library.tests.worlds import SafeArm
from omg_cmdp import optimal_policy, policy_value, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Uniform


def test_uniform_regret_is_what_uniform_play_is_short_of():
    world = SafeArm()
    ledger = simulate(world, IID(world.contexts), Uniform(world.space), 40)
    for context, regret in zip(ledger.contexts, ledger.regret, strict=True):
        mdp = world.mdp(context)
        assert regret == pytest.approx(optimal_policy(mdp)[1] - policy_value(mdp, uniform(mdp)), abs=1e-12)


def test_uniform_leaves_out_what_is_not_admissible():
    space = SPACES["restricted"]
    agent = Uniform(space)
    np.testing.assert_array_equal(agent.policy("a") > 0.0, np.tile(space.admissible, (HORIZON, 1, 1)))


def test_without_oracles_nothing_is_said_of_their_classes():
    assert Uniform(SPACES["restricted"]).misfit() is None
