"""Every agent of the library keeps the contract, on every kind of space, with every kind of oracle."""

import importlib
import inspect
import pkgutil
import typing

import numpy as np
import pytest

from library.tests.agents.catalogue import each_agent
from omg_cmdp import agents, policy_value
from omg_cmdp.agents import Agent
from omg_cmdp.checks import check_agent
from omg_cmdp.planning.decision import own_optimum

AGENTS = each_agent()


def makes_agents(thing):
    """Return whether `thing` is a concrete agent class, or a function that says that it returns an agent."""
    if inspect.isclass(thing):
        return issubclass(thing, Agent) and not inspect.isabstract(thing)
    made = typing.get_type_hints(thing).get("return") if inspect.isfunction(thing) else None
    return inspect.isclass(made) and issubclass(made, Agent)


def find_agents(package):
    """Return all that makes agents in the modules of `package`, by its public name."""
    things = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if ".compiled" not in module.name:
            for name, thing in vars(importlib.import_module(module.name)).items():
                if getattr(thing, "__module__", None) == module.name and not name.startswith("_"):
                    things[name] = thing
    return {name: thing for name, thing in things.items() if makes_agents(thing)}


def best_policy_is_optimal_in_the_model(contexts, agent):
    """Within its budgets, if it has some; a policy that is better than the optimum passes one of them."""
    model, decision = agent.model(contexts[-1]), agent.decide(contexts[-1])
    policy = own_optimum(model, decision.limits)
    np.testing.assert_array_equal(agent.best_policy(contexts[-1]), policy)
    if decision.limits is None or (decision.costs <= decision.limits.given).all():
        assert policy_value(model, agent.policy(contexts[-1])) <= policy_value(model, policy) + 1e-9


def test_every_agent_is_public_and_in_the_catalogue():
    found = find_agents(agents)
    assert set(found) <= set(agents.__all__)
    assert set(found.values()) == {type(agent) for _, agent in AGENTS.values()}


@pytest.mark.parametrize("name", AGENTS)
def test_contract(name):
    contexts, agent = AGENTS[name]
    check_agent(agent, contexts)


@pytest.mark.parametrize("name", [name for name, (_, agent) in AGENTS.items() if agent.reward_oracle is not None])
def test_the_best_policy_is_optimal_in_the_model(name):
    best_policy_is_optimal_in_the_model(*AGENTS[name])
