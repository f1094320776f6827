"""Every rival keeps the contract of an agent, is saved in the middle of a run, and keeps to the range of returns."""

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.rivals.catalogue import KINDS, OWN_STATISTICS, SPACES, build, builders, each_agent
from library.tests.agents import test_ranges as ranges
from library.tests.agents.catalogue import LABELS
from library.tests.agents.test_contract import best_policy_is_optimal_in_the_model, find_agents
from library.tests.agents.test_saving import continues_bit_for_bit
from omg_cmdp.checks import check_agent
from omg_lab import rivals

AGENTS = each_agent()
MAKERS = {kind: (LABELS, lambda kind=kind, **more: build(kind, **more)[1]) for kind in KINDS}
MAKERS |= {
    kind: (contexts, lambda make=make, **more: make(SPACES["plain"], **more))
    for kind, (contexts, make) in OWN_STATISTICS.items()
}
"""Contexts, and how to make a rival for the plain space with some options."""


def test_every_rival_is_public_and_in_the_catalogue():
    found = find_agents(rivals)
    assert set(found) <= set(rivals.__all__)
    built = builders() | {type(agent) for _, agent in AGENTS.values()}
    assert {name for name, thing in found.items() if thing not in built} == set()


@pytest.mark.parametrize("name", AGENTS)
def test_contract(name):
    contexts, agent = AGENTS[name]
    check_agent(agent, contexts)


@pytest.mark.parametrize("name", AGENTS)
def test_the_best_policy_is_optimal_in_the_model(name):
    best_policy_is_optimal_in_the_model(*AGENTS[name])


@pytest.mark.parametrize("kind", KINDS)
def test_a_rival_restored_in_the_middle_continues_bit_for_bit(kind, tmp_path, rng):
    continues_bit_for_bit(lambda: build(kind, space="restricted"), tmp_path / "agent", rng)


@pytest.mark.parametrize("kind", MAKERS)
def test_returns_outside_the_range_are_refused_and_change_nothing(kind):
    ranges.refuses_other_returns(*MAKERS[kind])


@pytest.mark.parametrize("kind", MAKERS)
def test_a_range_that_says_no_more_than_that_of_rewards_changes_nothing(kind, rng):
    ranges.ignores_a_wide_range(*MAKERS[kind], rng)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_range_of_returns_is_in_the_units_of_rewards(kind, rng):
    ranges.depends_on_units_only(*MAKERS[kind], rng)


def test_rivals_that_cannot_wait_for_rewards_say_so():
    agent = rivals.UCBVI(omg.Space(states=3, actions=2, horizon=3), rivals.Blind())
    parts = {"context": 0, "states": [0, 1, 2, 0], "actions": [0, 1, 0]}
    before = agent.state()
    with pytest.raises(ValueError, match="`rewards` must all be known for UCBVI"):
        agent.update(omg.Trajectory(**parts, rewards=None))
    with pytest.raises(ValueError, match="all rewards at once for UCBVI"):
        agent.update_rewards(omg.Trajectory(**parts, rewards=[0.0, 1.0, 0.0]))
    assert all(np.array_equal(before[name], array) for name, array in agent.state().items())
    agent.update(omg.Trajectory(context=0, states=[0, 1, 2], actions=[0, 1], rewards=[0.0, 1.0]))
