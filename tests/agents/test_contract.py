"""Every agent of the package keeps the contract, on every kind of space, with every kind of oracle."""

import inspect

import pytest

from omg_cmdp import agents
from omg_cmdp.agents import Agent
from omg_cmdp.checks import AGENT_CHECKS
from omg_cmdp.checks.agents import AgentSubject
from tests.agents.catalogue import each_agent

AGENTS = each_agent()


def test_every_agent_is_in_the_catalogue():
    classes = [c for name in agents.__all__ if inspect.isclass(c := getattr(agents, name)) and issubclass(c, Agent)]
    assert {c for c in classes if not inspect.isabstract(c)} == {type(agent) for _, agent in AGENTS.values()}


@pytest.mark.parametrize("check", AGENT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", AGENTS)
def test_contract(name, check):
    contexts, agent = AGENTS[name]
    check(AgentSubject(agent, contexts))
