"""A state is refused by a rival with another number in one of its arguments: `settings` names all that matter."""

import pytest

from lab.tests.rivals.catalogue import BANDITS, KINDS, ONE_STEP, ORACLES, OWN_STATISTICS, REWARDS, SPACES
from library.tests.agents.test_settings import numbers_of, refuses_another_number
from omg_cmdp import Space, oracles

LINES = KINDS | {kind: line for kind, (_, line) in (OWN_STATISTICS | BANDITS).items()}


def parts_of(kind):
    """Return what all agents have: the space, and oracles if the rival has some."""
    if kind in BANDITS:
        return Space(**ONE_STEP), BANDITS[kind][0](REWARDS, horizon=1), oracles.CountDynamics(**ONE_STEP)
    return (SPACES["plain"], *(ORACLES["finite"][1]() if kind in KINDS else ()))


@pytest.mark.parametrize(("kind", "argument"), numbers_of(LINES))
def test_a_state_of_a_rival_with_another_number_is_refused(kind, argument):
    assert refuses_another_number(LINES[kind], parts_of(kind), argument)
