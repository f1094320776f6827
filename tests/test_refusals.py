"""Wrong objects are refused at the public boundary: the error names the argument, the rule and the value.

`tests/attack/calls.py` makes thousands of such calls; these are the ones that people make.
"""

import re

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp import adversaries, logs, oracles, theory
from omg_lab import worlds
from tests.attack.malformed.examples import KERNELS, LABELS, MDP, REWARDS, SIZES, SPACE, UNIFORM, WORLD, a_log, an_agent


def a_run(**more):
    return omg.simulate(WORLD, adversaries.IID(LABELS), an_agent(), 2, **more)


REFUSED = {
    "plan": (lambda: omg.plan("mdp", 1.0), "`mdp` must be a TabularMDP, got str"),
    "plan, an agent": (lambda: omg.plan(an_agent(), 1.0), "`mdp` must be a TabularMDP, got Greedy"),
    "plan, floor": (lambda: omg.plan(MDP, uncertainty=np.ones((3, 2)), floor=[0.1]), "`floor` must be a number"),
    "plan_many": (lambda: omg.plan_many([None], 1.0), "`mdp` must be a TabularMDP, got NoneType"),
    "plan_many, one": (lambda: omg.plan_many(MDP, 1.0), "`mdps` must be a list, got TabularMDP"),
    "workers": (lambda: omg.plan_many([MDP], 1.0, workers=-3), "`workers` must be an integer of at least 1, got -3"),
    "no workers": (lambda: omg.plan_many([MDP], 1.0, workers=0), "`workers` must be an integer of at least 1, got 0"),
    "certificate": (lambda: omg.certificate(3, UNIFORM, [[1.0]], gamma=1.0), "`mdp` must be a TabularMDP, got int"),
    "problem": (lambda: omg.Problem(mdp=MDP, gamma=-1.0), "`gamma` must be a positive, finite number, got -1.0"),
    "problem, file": (lambda: omg.Problem.load(3), "`path` must be the name of a file, got int"),
    "optimal_policy": (lambda: omg.optimal_policy(SPACE), "`mdp` must be a TabularMDP, got Space"),
    "bounds": (lambda: omg.optimal_policy(MDP, bounds=(0, 1)), "`bounds` must be a ValueBounds, got tuple"),
    "policy_value": (lambda: omg.policy_value(None, UNIFORM), "`mdp` must be a TabularMDP, got NoneType"),
    "occupancy_measure": (lambda: omg.occupancy_measure([], UNIFORM), "`mdp` must be a TabularMDP, got list"),
    "hellinger": (lambda: omg.squared_hellinger([-1, 2], [0, 1]), "`p` must be finite and at least 0, got -1.0"),
    "hellinger, shapes": (lambda: omg.squared_hellinger([0.5, 0.5], [1.0, 0.0, 0.0]), "`p` and `q` must have shapes"),
    "space too large": (
        lambda: omg.Space(states=2**70, actions=2, horizon=2),
        "`states` must be an integer of at",
    ),
    "log": (lambda: omg.Log(3, reward_range=(0, 1)), "`space` must be a Space, got int"),
    "reward_range": (lambda: omg.Log(SPACE, reward_range="12"), "`reward_range` must be an interval"),
    "importance_sampling": (lambda: logs.importance_sampling([], WORLD.mdp), "`log` must be a Log, got list"),
    "policy": (lambda: logs.importance_sampling(a_log(), UNIFORM), "`policy` must be a function, got ndarray"),
    "doubly_robust": (lambda: logs.doubly_robust(a_log(), lambda _: UNIFORM, MDP), "`model` must be a function, got"),
    "warm_start": (lambda: logs.warm_start(an_agent(), None), "`log` must be a Log, got NoneType"),
    "read_frame": (lambda: logs.read_frame(a_log().table(), 3), "`space` must be a Space, got int"),
    "restore": (lambda: an_agent().restore(None), "`path` must be the name of a file, got NoneType"),
    "save": (lambda: an_agent().save(3), "`path` must be the name of a file, got int"),
    "load_state": (lambda: an_agent().load_state(7), "`state` must be a mapping of names to arrays, got int"),
    "seed": (lambda: a_run(seed=None), "`seed` must be an integer of at least 0, got None"),
    "seed of a world": (lambda: worlds.Arms(seed=-1), "`seed` must be an integer of at least 0, got -1"),
    "observe": (lambda: a_run(observe=3), "`observe` must be a function, got int"),
    "sample": (lambda: WORLD.sample("a", UNIFORM, 0), "`generator` must be a Generator, got int"),
    "draws": (lambda: oracles.CountRewards(**SIZES).draws("a", 3, None), "`generator` must be a Generator, got None"),
    "aggregate": (lambda: oracles.AggregateRewards(3, horizon=2), "`oracles` must be a list, got int"),
    "bound": (lambda: theory.bounds.anytime({}), "`given` must be an Assumptions, got dict"),
    "assumptions": (
        lambda: theory.Assumptions(**SIZES, episodes=9, delta=0.1, reward_regret="1", dynamics_regret=1.0),
        "`reward_regret` must be a number of at least 0, got '1'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_objects_are_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_whatever_a_foreign_object_raises():
    class Raising:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("no array after all")

    with pytest.raises(ValueError, match="`transitions` must be an array of real numbers, got Raising"):
        omg.TabularMDP(transitions=Raising(), rewards=REWARDS["a"][0], horizon=2)
    with pytest.raises(ValueError, match="`rewards` must be an array of real numbers, got Raising"):
        SPACE.mdp(transitions=KERNELS["a"][0], rewards=Raising())


def test_a_refused_run_has_played_nothing():
    run = omg.Run(WORLD, adversaries.IID(LABELS), an_agent())
    before = {name: array.tobytes() for name, array in run.state().items()}
    for episodes in (None, -3, 1.5, "2"):
        with pytest.raises(ValueError, match="`episodes` must be an integer"):
            run.advance(episodes)
    assert {name: array.tobytes() for name, array in run.state().items()} == before
