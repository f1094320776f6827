"""Nothing that a rival gives away or was given is shared: who writes into it changes no later answer."""

import collections
import copy
import dataclasses
import inspect

import numpy as np
import pytest

from lab.tests.rivals.test_restore import CONTEXTS, LINES, bits, call_of, taught
from omg_cmdp.agents.agent import Agent
from omg_cmdp.mdp.tabular import TabularMDP
from omg_lab.rivals import Cover, PerBall
from omg_lab.rivals.hypotheses import Hypotheses
from omg_lab.rivals.listed import Listed

TAKEN = {"policy", "decide", "model", "best_policy"}
"""Methods of every agent."""


def scribble(thing, seen=None):
    """Write over all arrays, lists and dictionaries that can be reached; return how many arrays there were."""
    seen = set() if seen is None else seen
    if id(thing) in seen or thing is None or isinstance(thing, (str, bytes, int, float, type)):
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        if thing.flags.writeable and thing.size:
            thing[...] = 0 if thing.dtype.kind in "biuf" else thing.flat[0]
        return 1
    if isinstance(thing, (list, collections.deque)):
        found = sum(scribble(each, seen) for each in thing)
        thing.clear()
        return found
    if isinstance(thing, dict):
        found = sum(scribble(each, seen) for each in thing.values())
        thing.clear()
        return found
    ours = isinstance(thing, (TabularMDP, Hypotheses, Cover, Listed)) or dataclasses.is_dataclass(thing)
    if isinstance(thing, tuple) or ours:
        parts = thing if isinstance(thing, tuple) else [getattr(thing, each) for each in public(thing)]
        return sum(scribble(each, seen) for each in parts)
    return 0


def public(thing):
    """Return the names of public attributes that are no methods."""
    names = [name for name in dir(thing) if not name.startswith("_") and name != "raw"]
    return [name for name in names if not callable(getattr(thing, name))]


def of_context(agent):
    """Return the public methods of a rival that take a context."""
    named = {name for name in dir(type(agent)) if not name.startswith("_")} | TAKEN
    found = [name for name in named if inspect.isfunction(inspect.getattr_static(type(agent), name, None))]
    return [name for name in found if list(inspect.signature(getattr(agent, name)).parameters) == ["context"]]


@pytest.mark.parametrize("kind", LINES)
def test_what_a_rival_gives_away_is_not_its_own(kind):
    contexts = CONTEXTS[kind]
    made, call = call_of(kind)
    agent, twin = (taught(made(**copied), contexts, 9, 1) for copied in (call, call_of(kind)[1]))
    assert {"decide", "policy", "model"} <= set(of_context(agent))
    for name in of_context(agent):
        for context in contexts:
            assert scribble(getattr(agent, name)(context))
    scribble(agent.state())
    for name in public(agent):
        if not isinstance(getattr(agent, name), (Agent, tuple)):
            scribble(getattr(agent, name))
    for _ in range(3):
        assert bits(agent) == bits(twin)
        for context in contexts:
            assert agent.policy(context).tobytes() == twin.policy(context).tobytes()
        for each in (agent, twin):
            taught(each, contexts, 2, 5)


@pytest.mark.parametrize("kind", LINES)
def test_what_a_rival_was_given_may_change_afterwards(kind):
    made, call = call_of(kind)
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in call.items()}
    given = {name: copy.deepcopy(value) if isinstance(value, list) else value for name, value in given.items()}
    contexts = CONTEXTS[kind]
    agent, twin = made(**given), made(**call_of(kind)[1])
    for value in given.values():
        if isinstance(value, list):
            scribble(value)
    for each in (agent, twin):
        taught(each, contexts, 4, 1)
    assert bits(agent) == bits(twin)
    assert all(agent.policy(context).tobytes() == twin.policy(context).tobytes() for context in contexts)


def test_a_cover_has_centres_of_its_own():
    ball, context = PerBall(0.5), np.zeros(2)
    ball.open(context)
    context[:] = 9.0
    assert ball.cell(np.zeros(2)) == 0
    with pytest.raises(ValueError, match="read-only"):
        ball.centres[:] = 9.0
    state = ball.state()
    state["centres"][:] = 9.0
    assert ball.cell(np.zeros(2)) == 0
