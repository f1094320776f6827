"""A state is refused by an oracle with another number in one of its arguments, in every class of the catalogue.

An argument that changes what is learned, and is missing in `settings`, would let a state continue as something else.
"""

import pytest

from library.tests.oracles import catalogue
from library.tests.oracles.test_state import HORIZON, is_refused
from library.tests.varying import another, flat_call, numeric_arguments
from omg_cmdp import oracles

TIED = dict.fromkeys([("AggregateRewards", "horizon"), ("AggregateDynamics", "horizon")], "it is that of its oracles")
"""Arguments that cannot be changed alone, with the reason."""


class Recorder:
    """The room of oracles, which notes the calls of its classes."""

    def __init__(self):
        self.calls = {}

    def __getattr__(self, name):
        def make(*arguments, **named):
            made = getattr(oracles, name)
            self.calls.setdefault(name, []).append(flat_call(made, *arguments, **named))
            return made(*arguments, **named)

        return make


def recorded():
    """Return class -> the arguments of every call with which the catalogue makes one."""
    recorder, room = Recorder(), catalogue.oracles
    catalogue.oracles = recorder
    try:
        catalogue.each_oracle(HORIZON)
    finally:
        catalogue.oracles = room
    return recorder.calls


CALLS = recorded()


def usual(name):
    """Return the arguments of a class that are numbers, with their defaults."""
    return numeric_arguments(getattr(oracles, name))


def test_every_oracle_of_the_library_is_varied():
    assert set(CALLS) == {name for name in oracles.__all__ if name.endswith(("Rewards", "Dynamics"))}


@pytest.mark.parametrize(("name", "argument"), [(name, each) for name in sorted(CALLS) for each in usual(name)])
def test_a_state_of_an_oracle_with_another_number_is_refused(name, argument):
    made, tried = getattr(oracles, name), 0
    for call in CALLS[name]:
        value = call.get(argument, usual(name)[argument])
        other = another(made, call, argument, value)
        if other is not None:
            tried += 1
            is_refused(made(**call), other.state())
    assert (tried == 0) is ((name, argument) in TIED)
