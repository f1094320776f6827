"""Wrong arguments are refused at the public boundary, by an error that says what is wrong, and nothing changes.

These are the mistakes that people make; `python -m tests.attack calls` makes thousands of others.
"""

import dataclasses
import re

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp import adversaries, agents, logs, oracles, theory
from omg_cmdp.validation import probability

SIZES = {"states": 3, "actions": 2, "horizon": 2}
LABELS = ("a", "b")
SPACE = omg.Space(**SIZES, admissible=[[True, True], [True, True], [True, False]])
TRANSITIONS, REWARDS = np.full((3, 2, 3), 1.0 / 3.0), np.full((3, 2), 0.5)
MDP = omg.TabularMDP(transitions=TRANSITIONS, rewards=REWARDS, horizon=2)
UNIFORM = np.full((2, 3, 2), 0.5)
EPISODE = {"context": "a", "states": [0, 1, 1], "actions": [0, 1], "rewards": [0.5, 1.0]}


class Small(omg.ContextualMDP):
    space = omg.Space(**SIZES)

    def mdp(self, context):
        return MDP


WORLD = Small()


def an_agent(kind=agents.Greedy, space=SPACE):
    return kind(space, oracles.CountRewards(**SIZES), oracles.CountDynamics(**SIZES, contexts=LABELS))


def a_log():
    return omg.Log(SPACE, [omg.Episode(**EPISODE, propensities=[0.5, 0.5])])


def a_run(**more):
    return omg.simulate(WORLD, adversaries.IID(LABELS), an_agent(space=WORLD.space), 2, **more)


def a_table(entry=1.0):
    values = np.ones((3, 2))
    values[2, 1] = entry
    return values


def bits(agent):
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in agent.state().items()}


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
        "`states` must be an integer in 1..2**53, got",
    ),
    "log": (lambda: omg.Log(3, reward_range=(0, 1)), "`space` must be a Space, got int"),
    "reward_range": (lambda: omg.Log(SPACE, reward_range="12"), "`reward_range` must be an interval"),
    "importance_sampling": (lambda: logs.importance_sampling([], WORLD.mdp), "`log` must be a Log, got list"),
    "policy": (lambda: logs.importance_sampling(a_log(), UNIFORM), "`policy` must be a function, got ndarray"),
    "doubly_robust": (lambda: logs.doubly_robust(a_log(), lambda _: UNIFORM, MDP), "`model` must be a function, got"),
    "warm_start": (lambda: logs.warm_start(an_agent(), None), "`log` must be a Log, got NoneType"),
    "read_table": (lambda: logs.read_table(a_log().table(), space=3), "`space` must be a Space, got int"),
    "restore": (lambda: an_agent().restore(None), "`path` must be the name of a file, got NoneType"),
    "save": (lambda: an_agent().save(3), "`path` must be the name of a file, got int"),
    "load_state": (lambda: an_agent().load_state(7), "`state` must be a mapping of names to arrays, got int"),
    "seed": (lambda: a_run(seed=None), "`seed` must be an integer of at least 0, got None"),
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


@pytest.mark.parametrize("wrong", [0.0, 1.0, -1.0, 2.0, np.nan, np.inf, "half", None, np.ones(2)], ids=str)
def test_a_number_outside_0_to_1_is_refused_in_one_way(wrong):
    with pytest.raises(ValueError, match=re.escape(f"`delta` must lie in (0, 1), got {wrong!r}")):
        probability("delta", wrong)


def test_any_error_of_a_foreign_object_is_a_refusal():
    class Raising:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("no array after all")

    with pytest.raises(ValueError, match="`transitions` must be an array of real numbers, got Raising"):
        omg.TabularMDP(transitions=Raising(), rewards=REWARDS, horizon=2)
    with pytest.raises(ValueError, match="`rewards` must be an array of real numbers, got Raising"):
        SPACE.mdp(transitions=TRANSITIONS, rewards=Raising())


PLANS = {
    "gamma zero": ({"gamma": 0.0}, r"`gamma` must be a positive, finite number, got 0.0"),
    "gamma negative": ({"gamma": -1.0}, r"`gamma` must be a positive, finite number, got -1.0"),
    "gamma nan": ({"gamma": np.nan}, r"`gamma` must be a positive, finite number, got nan"),
    "gamma inf": ({"gamma": np.inf}, r"`gamma` must be a positive, finite number, got inf"),
    "gamma text": ({"gamma": "10"}, r"`gamma` must be a positive, finite number, got '10'"),
    "gamma array": ({"gamma": np.ones(2)}, r"`gamma` must be a positive, finite number"),
    "no regulariser": ({}, r"one of `gamma` and `uncertainty` must be given, got neither"),
    "two regularisers": ({"gamma": 1.0, "uncertainty": a_table()}, r"one of `gamma` and `uncertainty` .* got both"),
    "weights alone": ({"uncertainty": a_table(), "weights": a_table()}, r"`weights` must come with `gamma`"),
    "weights zero": ({"gamma": 1.0, "weights": a_table(0.0)}, r"`weights` must be positive, got 0.0 at index \(2, 1\)"),
    "weights nan": ({"gamma": 1.0, "weights": a_table(np.nan)}, r"`weights` must be finite .* at index \(2, 1\)"),
    "weights shape": ({"gamma": 1.0, "weights": np.ones(3)}, r"`weights` must have shape \(3, 2\) or \(2, 3, 2\)"),
    "u negative": ({"uncertainty": a_table(-1.0)}, r"`uncertainty` must be finite .* got -1.0 at index \(2, 1\)"),
    "u infinite": ({"uncertainty": a_table(np.inf)}, r"`uncertainty` must be finite .* got inf at index \(2, 1\)"),
    "u text": ({"uncertainty": "high"}, r"`uncertainty` must be an array of real numbers"),
    "tolerance": ({"gamma": 1.0, "tolerance": 0.0}, r"`tolerance` must be a positive, finite number, got 0.0"),
}


@pytest.mark.parametrize(("arguments", "message"), PLANS.values(), ids=PLANS)
def test_wrong_arguments_of_a_plan_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        omg.plan(MDP, **arguments)
    if "tolerance" not in arguments and "got 0.0 at index" not in message:  # a proof needs no weight everywhere
        with pytest.raises(ValueError, match=message):
            omg.certificate(MDP, UNIFORM, np.ones((2, 3)), **arguments)


def test_an_earlier_solution_must_be_one_of_the_shape():
    longer = omg.TabularMDP(transitions=TRANSITIONS, rewards=REWARDS, horizon=5)
    with pytest.raises(ValueError, match=r"`start.policy` must have shape \(2, 3, 2\), got \(5, 3, 2\)"):
        omg.plan(MDP, gamma=1.0, start=omg.plan(longer, gamma=1.0))
    for start in (UNIFORM, "warm", 3, {}):
        with pytest.raises(ValueError, match="`start` must be a Solution, got"):
            omg.plan(MDP, gamma=1.0, start=start)
    with pytest.raises(ValueError, match=r"`values` must have shape \(2, 3\), got \(1, 3\)"):
        omg.certificate(MDP, UNIFORM, np.ones((1, 3)), gamma=1.0)


def test_a_nonsense_policy_in_the_earlier_solution_does_no_harm():
    solution = omg.plan(MDP, gamma=1.0)
    for policy in (np.full((2, 3, 2), np.nan), np.zeros((2, 3, 2), dtype=int), np.full((2, 3, 2), -1.0).T):
        odd = dataclasses.replace(solution, policy=policy)
        assert omg.plan(MDP, gamma=1.0, start=odd).status is omg.Status.SOLVED


TRAJECTORIES = {
    "too few states": {"states": [0, 1]},
    "no state": {"states": []},
    "text for a state": {"states": [0, "x", 1]},
    "states in a list": {"states": [[0, 1, 2]]},
    "too many actions": {"actions": [0, 1, 1]},
    "a complex action": {"actions": [0, 1j]},
    "a fraction of an action": {"actions": [0, 0.5]},
    "text for rewards": {"rewards": "ab"},
    "a reward that is not a number": {"rewards": [0.5, np.nan]},
    "an infinite reward": {"rewards": [0.5, np.inf]},
    "rewards by step": {"rewards": {0: 0.5, 1: 1.0}},
}


@pytest.mark.parametrize("wrong", TRAJECTORIES.values(), ids=TRAJECTORIES)
def test_a_malformed_trajectory_cannot_be_made(wrong):
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}"):
        omg.Trajectory(**{**EPISODE, **wrong})


STRANGE = {
    "longer than the horizon": {"states": [0, 1, 1, 1], "actions": [0, 1, 0], "rewards": [0.5, 1.0, 0.5]},
    "an unknown state": {"states": [0, 1, 3]},
    "a negative state": {"states": [0, 1, -1]},
    "an unknown action": {"actions": [0, 2]},
    "an action that is not admissible": {"states": [0, 2, 1]},
    "a reward above its range": {"rewards": [0.5, 1.0 + 1e-15]},
    "a reward below its range": {"rewards": [0.5, -1e-300]},
    "an unknown context": {"context": "c"},
    "a context of another kind": {"context": [1.0, [2.0]]},
}


@pytest.mark.parametrize("wrong", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("kind", [agents.Greedy, omg.OMG])
def test_an_episode_of_another_space_is_refused_and_changes_nothing(kind, wrong):
    agent = an_agent(kind)
    before = bits(agent)
    trajectory = omg.Trajectory(**{**EPISODE, **wrong})
    with pytest.raises(ValueError, match="`"):
        agent.update(trajectory)
    assert bits(agent) == before
    agent.update(omg.Trajectory(**EPISODE))
    assert agent.episodes_seen == 1


@pytest.mark.parametrize("wrong", [None, "episode", 3, EPISODE, [EPISODE], np.ones(3)], ids=repr)
def test_only_a_trajectory_is_learned_from(wrong):
    agent = an_agent()
    before = bits(agent)
    with pytest.raises(ValueError, match="`trajectory`"):
        agent.update(wrong)
    assert bits(agent) == before


@pytest.mark.parametrize("wrong", ["rewards", "dynamics"])
def test_both_oracles_learn_or_neither(wrong):
    """Functions say their sizes with the first context only."""
    steps = {"horizon": SIZES["horizon"]}
    rewards = oracles.KnownRewards(lambda _: np.zeros((2, 2)), **steps)
    dynamics = oracles.KnownDynamics(lambda _: np.full((2, 2, 2), 0.5), **steps)
    rewards = rewards if wrong == "rewards" else oracles.CountRewards(**SIZES)
    dynamics = dynamics if wrong == "dynamics" else oracles.CountDynamics(**SIZES)
    agent = omg.OMG(omg.Space(**SIZES), rewards, dynamics)
    before = bits(agent)
    with pytest.raises(ValueError, match="`"):
        agent.update(omg.Trajectory(context=0, states=[0, 2, 1], actions=[0, 1], rewards=[1.0, 0.0]))
    assert bits(agent) == before


def test_a_refused_run_has_played_nothing():
    run = omg.Run(WORLD, adversaries.IID(LABELS), an_agent(space=WORLD.space))
    before = bits(run)
    for episodes in (None, -3, 1.5, "2"):
        with pytest.raises(ValueError, match="`episodes` must be an integer"):
            run.advance(episodes)
    assert bits(run) == before
