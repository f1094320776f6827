"""A saved run tells worlds apart: another number in an argument is another world, or changes nothing that is played."""

import numpy as np
import pytest

from lab.tests.worlds.catalogue import WORLDS
from library.tests.varying import another, numeric_arguments

PAIRS = [(kind, argument) for kind in WORLDS for argument in numeric_arguments(kind)]


def same_world(one, other):
    """Return whether the two pay and move alike in all contexts."""
    if len(one.contexts) != len(other.contexts) or one.space.difference(other.space) is not None:
        return False
    drawn = [[world.draw_reward(mean, 0.3) for mean in (0.0, 0.2, 0.5, 1.0)] for world in (one, other)]
    tables = [[world.mdp(context) for context in world.contexts] for world in (one, other)]
    alike = (
        np.array_equal(a.rewards, b.rewards) and np.array_equal(a.transitions, b.transitions)
        for a, b in zip(*tables, strict=True)
    )
    return drawn[0] == drawn[1] and all(alike)


@pytest.mark.parametrize(("kind", "argument"), PAIRS, ids=lambda each: getattr(each, "__name__", each))
def test_another_number_is_another_world(kind, argument):
    one, again = kind(), kind()
    assert one.fingerprint() == again.fingerprint()
    assert not one.fingerprint().endswith("?")
    other = another(kind, {}, argument, numeric_arguments(kind)[argument])
    if other is not None:
        assert (other.fingerprint() != one.fingerprint()) or same_world(one, other)
