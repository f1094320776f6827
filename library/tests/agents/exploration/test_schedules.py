"""One number, or a function of t."""

import math

import pytest

from library.tests.agents.catalogue import SPACES, build
from library.tests.agents.exploration.situations import after, finite
from omg_cmdp import OMG


def test_fixed_and_callable():
    assert build("float")[1].decide("a").gamma == 50.0
    assert after(build("callable")[1], 8).decide("a").gamma == 30.0
    asked = []
    agent = OMG(SPACES["plain"], *finite(), lambda t: asked.append(t) or 5.0)
    agent.policy("a")
    agent.episodes_seen = 3
    agent.policy("a")
    assert asked == [1, 4]


@pytest.mark.parametrize("value", [-1.0, math.nan, 0.0, "x"])
def test_a_function_that_returns_nonsense_is_named(value):
    agent = OMG(SPACES["plain"], *finite(), lambda t: value)
    with pytest.raises(ValueError, match=r"`gamma\(t\)` must"):
        agent.policy("a")
