"""A state is refused by an agent with another number in one of its arguments."""

import pytest

from library.tests.agents.catalogue import KINDS, ORACLES, SPACES
from library.tests.varying import another, flat_call, numeric_arguments
from omg_cmdp import OMG

HARMLESS = {
    **dict.fromkeys(
        [(kind, "delta") for kind in ("adaptive", "float", "callable", "uncertainty weighted", "schedule, episodes")],
        "only the rules of the theorems, by name, have a probability",
    ),
    **dict.fromkeys(
        [(kind, "seed") for kind, line in KINDS.items() if line.made is OMG and kind != "adaptive"],
        "only the adaptive rule draws",
    ),
}
"""Arguments that a state need not share, with the reason."""


def numbers_of(lines):
    """Return (kind, argument) for every argument of these agents that may be a number."""
    return [(kind, each) for kind, line in lines.items() for each in numeric_arguments(line.made)]


def refuses_another_number(line, parts, argument):
    """Return whether a state of the agent with another number is refused; None if no other number is accepted."""
    call = flat_call(line.made, *parts, *line.arguments, **line.named)
    other = another(line.made, call, argument, call.get(argument, numeric_arguments(line.made)[argument]))
    if other is None:
        return None
    try:
        line.made(**call).load_state(other.state())
    except ValueError as error:
        return "`state`" in str(error)
    return False


@pytest.mark.parametrize(("kind", "argument"), numbers_of(KINDS))
def test_a_state_of_an_agent_with_another_number_is_refused(kind, argument):
    refused = refuses_another_number(KINDS[kind], (SPACES["plain"], *ORACLES["finite"][1]()), argument)
    assert refused is ((kind, argument) not in HARMLESS)
