"""Rivals are loaded from their files, as the library's agents are: `omg_lab` is imported, and nothing is for a file."""

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.rivals.catalogue import each_agent
from library.tests.agents.models import an_episode
from omg_cmdp.recipes.recipe import holes, kept
from omg_lab.rivals.declared import Rival

AGENTS = each_agent()
FEW = {type(agent): name for name, (_, agent) in AGENTS.items() if not any(holes(kept(agent)))}
"""One of each class whose arguments a file can hold."""


def after(agent, contexts):
    """Return the policies and the state of an agent that has learned two more episodes."""
    rng = np.random.default_rng(0)
    for context in contexts[:2]:
        policy = agent.policy(context)
        agent.update(an_episode(rng, agent.space, context, policy, *((0.0, 0.0) if agent.return_range else (0.0, 1.0))))
    arrays = {**agent.state(), "policy": agent.policy(contexts[0])}
    return {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()}


@pytest.mark.parametrize("name", FEW.values())
def test_a_rival_continues_bit_for_bit(name, tmp_path):
    contexts, agent = AGENTS[name]
    after(agent, contexts)
    agent.save(tmp_path / "agent")
    again = omg.load(tmp_path / "agent")
    assert type(again) is type(agent)
    assert after(again, contexts) == after(agent, contexts)


def test_only_rivals_with_functions_of_the_users_own_are_left_out():
    left = {type(agent).__name__ for _, agent in AGENTS.values()} - {kind.__name__ for kind in FEW}
    assert left == {"Boltzmann", "RegularisedIDS", "FastCB"}  # whose schedules in the catalogue are functions
    assert all(issubclass(kind, Rival) for kind in FEW)
