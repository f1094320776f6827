"""One number to tune, given or as a function of the episode: refusals, and what is saved of it."""

import math

import numpy as np
import pytest

from library.tests.agents.models import learning
from library.tests.worlds import SafeArm
from omg_cmdp.agents import EpsilonGreedy, Power

BAD = (0.0, -1.0, np.nan, np.inf, "much", [1.0], True - 1)


def refuses_by_name(kind, name, bad):
    world = SafeArm()
    with pytest.raises(ValueError, match=f"`{name}` must be a positive, finite number"):
        learning(world, kind, bad)
    agent = learning(world, kind, lambda _: bad)
    with pytest.raises(ValueError, match=rf"`{name}\(t\)` must be a positive, finite number"):
        agent.policy(0)


def saves_what_it_was_tuned_to(kind, path):
    """Powers are known by their numbers, other functions by what they say in some episodes."""
    world = SafeArm()
    learning(world, kind, Power(3, 0.5)).save(path)
    learning(world, kind, Power(3.0, 0.5)).restore(path)
    for other in (3.0, Power(4.0, 0.5), lambda t: 3.0 * math.sqrt(t)):
        with pytest.raises(ValueError, match="`state` must come from"):
            learning(world, kind, other).restore(path)
    learning(world, kind, lambda t: t).save(path)
    learning(world, kind, lambda t: 1.0 * t).restore(path)
    for other in (lambda t: 2.0 * t, lambda t: t + (t == 3), 3.0):
        with pytest.raises(ValueError, match="`state` must come from"):
            learning(world, kind, other).restore(path)


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_other_numbers_are_refused_by_name(bad):
    refuses_by_name(EpsilonGreedy, "epsilon", bad)


def test_tuned_numbers_are_settings(tmp_path):
    saves_what_it_was_tuned_to(EpsilonGreedy, tmp_path / "agent")


def test_powers_are_checked():
    assert Power(8, -1.0 / 3.0)(27) == pytest.approx(8.0 / 3.0)
    for scale, exponent in ((0.0, 1.0), (-1.0, 1.0), (1.0, np.nan), (1.0, "half")):
        with pytest.raises(ValueError, match=r"`(scale|exponent)` must be"):
            Power(scale, exponent)
