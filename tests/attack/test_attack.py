"""A small share of every attack."""

import pytest

from tests.attack.__main__ import ATTACKS, run

EFFORT = 0.01


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_breaks(name, seed):
    outcome = run(name, EFFORT, seed)
    assert outcome.tried > 0
    assert not outcome.broken, "\n".join(outcome.broken[:10])
