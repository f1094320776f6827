"""Bad arguments of the planner: a ValueError that names the argument, the rule and the value."""

import dataclasses

import numpy as np
import pytest

import omg_cmdp as omg

MDP = omg.TabularMDP(transitions=np.full((2, 3, 2), 0.5), rewards=np.zeros((2, 3)), horizon=4)
OTHER = omg.TabularMDP(transitions=np.full((2, 3, 2), 0.5), rewards=np.zeros((2, 3)), horizon=5)


def table(**entries):
    values = np.ones((2, 3))
    for value in entries.values():
        values[1, 2] = value
    return values


BAD = {
    "gamma zero": ({"gamma": 0.0}, r"`gamma` must be a positive, finite number, got 0.0"),
    "gamma negative": ({"gamma": -1.0}, r"`gamma` must be a positive, finite number, got -1.0"),
    "gamma nan": ({"gamma": np.nan}, r"`gamma` must be a positive, finite number, got nan"),
    "gamma inf": ({"gamma": np.inf}, r"`gamma` must be a positive, finite number, got inf"),
    "gamma text": ({"gamma": "10"}, r"`gamma` must be a positive, finite number, got '10'"),
    "gamma array": ({"gamma": np.ones(2)}, r"`gamma` must be a positive, finite number"),
    "no regulariser": ({}, r"one of `gamma` and `uncertainty` must be given, got neither"),
    "two regularisers": ({"gamma": 1.0, "uncertainty": table()}, r"one of `gamma` and `uncertainty` .* got both"),
    "weights alone": ({"uncertainty": table(), "weights": table()}, r"`weights` must come with `gamma`"),
    "weights zero": ({"gamma": 1.0, "weights": table(x=0.0)}, r"`weights` must be positive, got 0.0 at index \(1, 2\)"),
    "weights nan": ({"gamma": 1.0, "weights": table(x=np.nan)}, r"`weights` must be finite .* at index \(1, 2\)"),
    "weights shape": ({"gamma": 1.0, "weights": np.ones(3)}, r"`weights` must have shape \(2, 3\) or \(4, 2, 3\)"),
    "u negative": ({"uncertainty": table(x=-1.0)}, r"`uncertainty` must be finite .* got -1.0 at index \(1, 2\)"),
    "u infinite": ({"uncertainty": table(x=np.inf)}, r"`uncertainty` must be finite .* got inf at index \(1, 2\)"),
    "u text": ({"uncertainty": "high"}, r"`uncertainty` must be an array of real numbers"),
    "tolerance": ({"gamma": 1.0, "tolerance": 0.0}, r"`tolerance` must be a positive, finite number, got 0.0"),
}
REGULARISERS = {name: case for name, case in BAD.items() if "tolerance" not in case[0]}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        omg.plan(MDP, **arguments)


def test_an_earlier_solution_must_have_the_shape():
    with pytest.raises(ValueError, match=r"`start.policy` must have shape \(4, 2, 3\), got \(5, 2, 3\)"):
        omg.plan(MDP, gamma=1.0, start=omg.plan(OTHER, gamma=1.0))


@pytest.mark.parametrize("start", [np.ones((4, 2, 3)) / 3, "warm", 3, {}])
def test_an_earlier_solution_must_be_one(start):
    with pytest.raises(ValueError, match="`start` must be a Solution, got"):
        omg.plan(MDP, gamma=1.0, start=start)


def test_a_nonsense_policy_in_the_earlier_solution_does_no_harm():
    solution = omg.plan(MDP, gamma=1.0)
    for policy in (np.full((4, 2, 3), np.nan), np.zeros((4, 2, 3), dtype=int), np.full((3, 2, 4), -1.0).T):
        odd = dataclasses.replace(solution, policy=policy)
        assert omg.plan(MDP, gamma=1.0, start=odd).status is omg.Status.SOLVED


@pytest.mark.parametrize(("arguments", "message"), REGULARISERS.values(), ids=REGULARISERS)
def test_the_certificate_refuses_the_same(arguments, message):
    solution = omg.plan(MDP, gamma=1.0)
    with pytest.raises(ValueError, match=message):
        omg.certificate(MDP, solution.policy, solution.values, **arguments)


def test_the_certificate_wants_values_of_the_right_shape():
    solution = omg.plan(MDP, gamma=1.0)
    with pytest.raises(ValueError, match=r"`values` must have shape \(4, 2\), got \(3, 2\)"):
        omg.certificate(MDP, solution.policy, solution.values[1:], gamma=1.0)


@pytest.mark.parametrize("gamma", [1e-300, 1e300])
def test_beyond_the_range_of_floats_nothing_is_claimed(gamma):
    solution = omg.plan(MDP, gamma=gamma)
    assert (solution.status is omg.Status.SOLVED) == (solution.certificate <= 1e-9)


@pytest.mark.parametrize("gamma", [1, np.float32(2.0), np.int64(3), np.array(4.0)])
def test_any_real_number_is_a_gamma(gamma):
    assert omg.plan(MDP, gamma=gamma).status is omg.Status.SOLVED
