"""Ten thousand malformed calls: each is refused with a ValueError that names an argument, and nothing changes.

The normal suite makes one in thirty.
"""

import math
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from library.tests.agents.catalogue import LABELS, VECTORS, build
from omg_cmdp import OMG, Space, Trajectory, oracles

AGENTS = {
    name: build("float" if name != "greedy" else name, oracle, "restricted", **more)
    for name, oracle, more in (
        ("finite", "finite", {}),
        ("vectors", "linear and softmax", {}),
        ("greedy", "counts", {"reward_range": (-2, 5)}),
    )
}
SPACE = AGENTS["finite"][1].space
H, S, A = SPACE.horizon, SPACE.states, SPACE.actions

NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)
SHAPES = [(), (0,), (1,), (2,), (3,), (4,), (1, 3), (3, 1), (3, 3), (0, 3), (1, 1, 1)]
JUNK = st.one_of(
    st.none(),
    st.text(max_size=3),
    NUMBERS,
    st.integers(),
    st.booleans(),
    st.binary(max_size=3),
    st.builds(object),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.lists(st.one_of(NUMBERS, st.text(max_size=2), st.none(), st.lists(st.integers(), max_size=2)), max_size=5),
    st.complex_numbers(),
    st.builds(np.ones, st.sampled_from(SHAPES), st.sampled_from(["f8", "i4", "U2", "?", "c16", "O"])),
)


def bits(agent, contexts):
    everything = {**agent.state(), **{str(i): agent.policy(context) for i, context in enumerate(contexts)}}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in everything.items()}


def refused(call, *arguments, **named):
    """Call, and require a ValueError whose sentence names an argument."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the message is looked at below)
        call(*arguments, **named)
    assert re.search(r"`[a-z_()]+` ", str(caught.value)), str(caught.value)


@pytest.fixture(autouse=True, scope="module")
def nothing_has_changed():
    """Every refused call, in any test, leaves every agent as it was, bit for bit."""
    before = {name: bits(agent, contexts) for name, (contexts, agent) in AGENTS.items()}
    yield
    assert {name: bits(agent, contexts) for name, (contexts, agent) in AGENTS.items()} == before


def episode(data, low, high):
    """Return the fields of a good trajectory; one draw, for speed."""
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    states = rng.integers(S, size=H + 1).tolist()
    actions = [int(rng.choice(np.flatnonzero(SPACE.admissible[s]))) for s in states[:-1]]
    return {"states": states, "actions": actions, "rewards": rng.uniform(low, high, H).tolist()}


def is_listed(junk):
    try:
        return junk in LABELS
    except (TypeError, ValueError):
        return False


def malformed_contexts(data):
    """What is not one of the labels, or not a vector of three numbers of norm at most 1."""
    name = data.draw(st.sampled_from(list(AGENTS)))
    contexts, agent = AGENTS[name]
    if name == "vectors":
        context = data.draw(JUNK.filter(lambda junk: not is_vector(junk)))
        spoilt = np.array(contexts[0])
        spoilt[data.draw(st.integers(0, 2))] = data.draw(st.sampled_from([math.nan, math.inf, -math.inf, 1e300, 2.0]))
        context = data.draw(st.sampled_from([context, spoilt]))
    else:
        context = data.draw(JUNK.filter(lambda c: not is_listed(c)))
    before = bits(agent, [])
    refused(agent.policy, context)
    good = episode(data, *agent.reward_range)
    refused(agent.update, Trajectory(context=context, **good))
    assert bits(agent, []) == before


def is_vector(junk):
    try:
        array = np.asarray(junk)
    except ValueError:
        return False
    return array.dtype.kind in "biuf" and array.shape == (3,)


def malformed_trajectories(data):
    """One field of a good episode is spoilt: the trajectory is refused when it is made."""
    fields = {"context": "a", **episode(data, 0.0, 1.0)}
    name = data.draw(st.sampled_from(["states", "actions", "rewards"]))
    good = fields[name]
    place = data.draw(st.integers(0, len(good) - 1))
    never = st.one_of(st.text(max_size=2), st.sampled_from([math.nan, math.inf, -math.inf]), st.just(1j))
    # Rewards may follow, and nobody need know where the last action led; any other gap is refused.
    gap = min(place, len(good) - 2) if name == "states" else place
    nothing = [] if name == "rewards" else [None, [*good[:gap], None, *good[gap + 1 :]]]
    spoilt = data.draw(
        st.sampled_from(
            [
                [*good[:place], data.draw(never), *good[place + 1 :]],
                good[:-1],
                [*good, good[-1]],
                [],
                [good],
                good[0],
                np.array(good)[:, None],
                *nothing,
                data.draw(st.text(max_size=4)),
                {0: good},
                [*good[:place], [good[place]], *good[place + 1 :]],
                np.array(good) * 1j,
            ]
        )
    )
    refused(Trajectory, **{**fields, name: spoilt})


def malformed_episodes(data):
    """Trajectories that can be made, but are none of this space."""
    contexts, agent = AGENTS[data.draw(st.sampled_from(list(AGENTS)))]
    low, high = agent.reward_range
    fields = episode(data, low, high)
    place = data.draw(st.integers(0, H - 1))
    outside = st.integers(-(2**62), 2**62)
    how = data.draw(st.sampled_from(["long", "state", "action", "inadmissible", "reward", "not one"]))
    if how == "long":
        more = data.draw(st.integers(1, 4))
        fields = {name: [*values, *[values[-1]] * more] for name, values in fields.items()}
    elif how == "state":
        fields["states"][place + 1] = data.draw(outside.filter(lambda i: not 0 <= i < S))
    elif how == "action":
        fields["actions"][place] = data.draw(outside.filter(lambda i: not 0 <= i < A))
    elif how == "inadmissible":
        state, action = data.draw(st.sampled_from(np.argwhere(~SPACE.admissible).tolist()))
        fields["states"][place], fields["actions"][place] = state, action
    elif how == "reward":
        beyond = st.one_of(st.floats(min_value=math.nextafter(high, math.inf), allow_infinity=False), st.just(-1e-300))
        below = st.floats(max_value=math.nextafter(low, -math.inf), allow_infinity=False)
        reward = data.draw(st.one_of(beyond, below).filter(lambda r: not low <= r <= high))
        fields["rewards"][place] = reward
    before = bits(agent, [])
    context = data.draw(st.sampled_from(contexts))
    given_up = data.draw(JUNK) if how == "not one" else Trajectory(context=context, **fields)
    refused(agent.update, given_up)
    assert bits(agent, []) == before


BATTERIES = {malformed_contexts: 3000, malformed_trajectories: 3500, malformed_episodes: 3500}


@pytest.mark.parametrize("share", [1.0 / 30.0, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("check", BATTERIES, ids=lambda check: check.__name__)
def test_malformed(check, share):
    assert sum(BATTERIES.values()) == 10_000
    examples = settings(
        max_examples=int(share * BATTERIES[check]),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    examples(given(st.data())(lambda data: check(data)))()


def test_the_agents_accept_what_is_well_formed():
    """The batteries would be worth nothing if all was refused."""
    for contexts, agent in (build("float"), build("float", "linear and softmax")):
        for context in contexts:
            fields = {"states": [0] * (H + 1), "actions": [0] * H, "rewards": [0.5] * H}
            agent.update(Trajectory(context=context, **fields))
        assert agent.episodes_seen == len(contexts) == len(LABELS) == len(VECTORS)


@pytest.mark.parametrize("wrong", ["rewards", "dynamics"])
def test_both_oracles_learn_or_neither(wrong):
    """Functions say their sizes with the first context only."""
    size, functions = {"states": 3, "actions": 2, "horizon": 2}, {"horizon": 2}
    small = oracles.KnownRewards(lambda _: np.zeros((2, 2)), **functions)
    rewards = small if wrong == "rewards" else oracles.CountRewards(**size)
    small_rows = oracles.KnownDynamics(lambda _: np.full((2, 2, 2), 0.5), **functions)
    dynamics = small_rows if wrong == "dynamics" else oracles.CountDynamics(**size)
    agent = OMG(Space(**size), rewards, dynamics)
    before = bits(agent, [])
    refused(agent.update, Trajectory(context=0, states=[0, 2, 1], actions=[0, 1], rewards=[1.0, 0.0]))
    assert bits(agent, []) == before


SMALL = {"states": 2, "actions": 2, "horizon": 2}
OF_ANOTHER_SIZE = {
    "counts": lambda: oracles.CountRewards(**SMALL),
    "linear": lambda: oracles.LinearRewards(**SMALL, dimension=1),
    "a table": lambda: oracles.KnownRewards(np.zeros((2, 2, 2)), horizon=2),
    "tables by context": lambda: oracles.FiniteRewards({"a": np.zeros((5, 2, 2))}, horizon=2),
    "one of several": lambda: oracles.EpochRewards(
        oracles.AggregateRewards([oracles.CountRewards(**SMALL)], horizon=2)
    ),
}


@pytest.mark.parametrize("kind", OF_ANOTHER_SIZE)
def test_oracles_of_another_size_are_refused_when_the_agent_is_made(kind):
    space = Space(**{**SMALL, "states": 3})
    with pytest.raises(
        ValueError, match=r"`reward_oracle` must have the \(states, actions\) of the space, \(3, 2\), got \(2"
    ):
        OMG(space, OF_ANOTHER_SIZE[kind](), oracles.CountDynamics(**{**SMALL, "states": 3}))
    counts = oracles.CountRewards(**{**SMALL, "states": 3})
    with pytest.raises(ValueError, match="`oracles` must be made for the same sizes, got 2 states and 2 actions and 3"):
        oracles.AggregateRewards([OF_ANOTHER_SIZE[kind](), counts], horizon=2)
