"""The attack of malformed calls knows every public name, begins with valid calls, and sees what is wrong."""

import contextlib

import pytest

from omg_cmdp import Space
from omg_cmdp.agents import Greedy
from tests.attack.calls import targets
from tests.attack.malformed import examples, judge, names
from tests.attack.malformed.nasty import Junk


def test_every_public_name_has_an_example_or_a_reason():
    assert targets()[1] == []


def test_no_example_or_reason_is_left_over():
    public = dict(names.public())
    assert {*examples.EXAMPLES, *examples.REASONS, *examples.INSTANCES} <= set(public)
    assert not set(examples.EXAMPLES) & set(examples.REASONS)


@pytest.mark.slow
def test_every_example_is_a_valid_call(tmp_path):
    with contextlib.chdir(tmp_path):
        for target in targets()[0]:
            call, arguments, _ = target.prepared()
            call(**arguments)


def raising(error):
    def call(size):
        raise error

    return call


@pytest.mark.parametrize(
    ("call", "value", "found"),
    [
        (lambda size: size, 3, ""),
        (lambda size: size, Junk(), "accepted"),
        (lambda size: size, None, "accepted"),
        (lambda size: size, -3, "accepted"),
        (lambda size: size, "12", "accepted"),
        (lambda size: size.rows, 3, "AttributeError"),
        (lambda size: [][size], 3, "IndexError"),
        (lambda size: size + "", 3, "unclear TypeError"),
        (raising(ValueError("wrong shape of something else")), 3, "unclear ValueError"),
        (raising(ValueError("bad size")), 3, "unclear ValueError"),
        (raising(ValueError("unknown size 3; use 5 or more")), 3, ""),
        (raising(ValueError("`size` must be at least 5, got 3")), 3, ""),
    ],
)
def test_the_judge(call, value, found):
    answer = judge.problem("a call", {"size": ("int", False)}, call, {"size": 1}, {"size": value}, None)
    assert answer.startswith(found)
    assert bool(answer) == bool(found)


def test_the_judge_sees_a_changed_state():
    agent = Greedy(Space(states=3, actions=2, horizon=2), **examples.pair())

    def call(size):
        agent.update(examples.omg.Trajectory(**examples.STEPS))
        raise ValueError("`size` must be at least 5, got 3")

    assert judge.problem("a call", {}, call, {"size": 1}, {"size": 3}, agent) == "state changed"


def test_the_judge_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(judge, "LONGEST", 0.05)

    def call(size):
        while True:
            pass

    assert judge.problem("a call", {}, call, {"size": 1}, {"size": 3}, None).startswith("no answer")
