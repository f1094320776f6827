"""Save, change one thing, restore: a state is refused by a rival with another argument, or the change is harmless.

Every argument of every constructor, found by introspection, is changed in every way that its kind allows: numbers,
texts, flags, functions of the episode, functions of contexts, covers, lists of contexts, spaces, oracles. A rival that
takes the state nevertheless must be in `HARMLESS`, and answer and go on to the bit like the one that was saved.
"""

import inspect

import numpy as np
import pytest

from lab.tests.rivals.catalogue import BANDITS, KINDS, ONE_STEP, OWN_STATISTICS
from library.tests.agents.catalogue import DIMENSION, HORIZON, LABELS, MASK, REWARDS, SIZE, SPACES, TRANSITIONS
from library.tests.agents.test_contract import find_agents
from library.tests.varying import flat_call
from omg_cmdp import Space, Trajectory, oracles
from omg_lab import rivals
from omg_lab.rivals import Blind, Cover, PerBall, PerContext

HARMLESS = {
    "the same function under another name": "a function is known by what it says",
    "the same oracle by a function": "a class of functions is known by what it says",
    "what None stands for": "the number is the one that is used without it",
    "a range that says no more than rewards": "it is kept as None",
    **dict.fromkeys(
        [("OLIVE", "another smoothing"), ("witness rank", "another smoothing")],
        "its hypotheses are the functions of the class, and smoothing is the forecaster's",
    ),
}
"""Changes that a state need not notice, of all rivals or of one, with the reason."""

USUAL = {
    "return_range": (0.0, 0.9),
    "episodes": 50,
    "threshold": 0.3,
    "strong_convexity": 0.1,
    "smoothness": 0.4,
    "features": lambda context: np.roll(np.asarray(context, dtype=float), 1),
    "known_rewards": lambda context: np.full((SIZE["states"], SIZE["actions"]), 0.5),
    "known_transitions": lambda context: np.full((SIZE["states"], SIZE["actions"], SIZE["states"]), 1 / SIZE["states"]),
}
"""Something for arguments that are None by default."""


def of_rewards(kind, horizon, turn=lambda tables: tables):
    tables = {label: turn(each) for label, each in REWARDS.items()}
    return kind(tables, horizon=horizon)


def parts_of(kind):
    """Return the parts of a rival with labels as contexts: the space, and oracles of dictionaries if it has some."""
    if kind in BANDITS:
        return Space(**ONE_STEP), of_rewards(BANDITS[kind][0], 1), oracles.CountDynamics(**ONE_STEP)
    if kind in KINDS:
        return (
            SPACES["plain"],
            of_rewards(oracles.FiniteRewards, HORIZON),
            oracles.FiniteDynamics(TRANSITIONS, horizon=HORIZON, smoothing=0.01),
        )
    return (SPACES["plain"],)


LINES = KINDS | {kind: line for kind, (_, line) in (OWN_STATISTICS | BANDITS).items()}
CONTEXTS = {kind: OWN_STATISTICS[kind][0] if kind in OWN_STATISTICS else LABELS for kind in LINES}


def call_of(kind):
    """Return the class, and a call of it: all arguments by name, oracles fresh."""
    line = LINES[kind]
    return line.made, flat_call(line.made, *parts_of(kind), *line.arguments, **line.named)


def defaults(made):
    return {each.name: each.default for each in inspect.signature(made).parameters.values()}


CASES = [(kind, argument) for kind, line in LINES.items() for argument in inspect.signature(line.made).parameters]


def changes(kind, argument):
    """Yield (what is changed, the arguments that replace those of the call), each alone."""
    made, call = call_of(kind)
    value = call.get(argument, defaults(made)[argument])
    usual = {"dimension": DIMENSION} if argument == "features" and kind in OWN_STATISTICS else {}
    if value is None:
        yield "something for nothing", {argument: USUAL[argument], **usual}
        if argument == "return_range":
            yield "a range that says no more than rewards", {argument: (0.0, float(call["space"].horizon))}
        if argument in ("strong_convexity", "smoothness"):
            yield "what None stands for", {argument: getattr(made(**call), argument)}
    for name, other in changed(kind, argument, value):
        yield name, {argument: other}


def changed(kind, argument, value):
    """Yield (what is changed, another value)."""
    if isinstance(value, bool):
        yield "the other flag", not value
    elif isinstance(value, (int, float)):
        yield from ((f"number {factor}", type(value)(value * factor) or 1) for factor in (2, 3))
        yield "a little more", value + type(value)(1) if isinstance(value, int) else value * (1.0 + 1e-9)
        if argument in ("gamma", "radius", "worth"):
            yield "a function for a number", lambda t: 2.0 * t
    elif isinstance(value, str):
        yield from ((f"text {text}", text) for text in ("logit", "linear") if text != value)
    elif isinstance(value, Space):
        sizes = {name: getattr(value, name) for name in ("states", "actions", "horizon")}
        yield "another start", Space(**sizes, start=[0.5, 0.5, 0.0])
        yield "fewer actions", Space(**sizes, admissible=MASK)
        yield from ((f"one more of {name}", Space(**sizes | {name: sizes[name] + 1})) for name in sizes)
    elif isinstance(value, Cover):
        yield from (
            ("another cover", each) for each in (Blind(), PerContext(), PerBall(0.7)) if str(each) != str(value)
        )
    elif isinstance(value, tuple) and argument == "contexts":
        yield "another order", value[::-1]
        yield "fewer contexts", value[:-1]
        yield "other types", tuple(float(each) if each == 1 else each for each in value)
    elif isinstance(value, tuple):
        yield from (
            (
                f"entry {place}",
                tuple(number * 1.5 - 0.1 * (number == 0.0) if i == place else number for i, number in enumerate(value)),
            )
            for place in range(len(value))
        )
    elif isinstance(value, np.ndarray):
        yield "another number", value + np.eye(1, value.size).reshape(value.shape)
    elif isinstance(value, oracles.RewardOracle):
        horizon = value.horizon
        yield "functions in another order", of_rewards(type(value), horizon, lambda tables: tables[::-1])
        yield "other functions", of_rewards(type(value), horizon, lambda tables: 0.9 * tables)
        yield "another oracle", oracles.CountRewards(**SIZE | {"horizon": horizon}, contexts=LABELS)
        yield "the same oracle by a function", type(value)(REWARDS.__getitem__, horizon=horizon)
    elif isinstance(value, oracles.DynamicsOracle):
        yield "a rate", oracles.CountDynamics(**SIZE | {"horizon": value.horizon}, rate="proven")
        if value.horizon > 1:
            turned = {label: tables[::-1] for label, tables in TRANSITIONS.items()}
            yield "functions in another order", oracles.FiniteDynamics(turned, horizon=HORIZON, smoothing=0.01)
            yield "another smoothing", oracles.FiniteDynamics(TRANSITIONS, horizon=HORIZON, smoothing=0.02)
    elif callable(value) and argument == "features":
        yield "another function", lambda context: [0.9 * float(each) for each in value(context)]
        yield "the same function under another name", lambda context: value(context)
    elif callable(value) and argument.startswith("known"):
        yield "another function", lambda context: value(context)[::-1]
        yield "the same function under another name", lambda context: value(context)
    elif callable(value):
        yield "another function", lambda t: 1.001 * value(t)
        yield "another at one episode only", lambda t: value(t) + (t == 3)
        yield "a number for a function", 7.0
        if not hasattr(value, "scale"):
            yield "the same function under another name", lambda t: value(t)


def episode(rng, space, context, low):
    """Return a random episode that begins where the space starts; it earns as little as rewards allow, and some."""
    states = [0, *rng.integers(space.states, size=space.horizon)]
    actions = [int(rng.choice(np.flatnonzero(space.admissible[state]))) for state in states[:-1]]
    rewards = low + 0.25 * rng.random(space.horizon)
    return Trajectory(context=context, states=states, actions=actions, rewards=rewards)


def taught(agent, contexts, count, seed):
    rng = np.random.default_rng(seed)
    for number in range(count):
        agent.update(episode(rng, agent.space, contexts[number % len(contexts)], agent.reward_range[0]))
    return agent


def bits(agent):
    return {name: array.tobytes() for name, array in agent.state().items()}


def is_refused(agent, state):
    try:
        agent.load_state(state)
    except ValueError as error:
        return "`state`" in str(error) or f"another error: {error}"
    return False


def outcome(kind, name, replaced):
    """Return "refused", "harmless", or "not made" if the constructor refuses the change; raise for anything else."""
    made, call = call_of(kind)
    agent, contexts = taught(made(**call), CONTEXTS[kind], 9, 1), CONTEXTS[kind]
    try:
        other = made(**call_of(kind)[1] | replaced)
    except ValueError:
        return "not made"
    before = bits(other)
    if refused := is_refused(other, agent.state()):
        assert refused is True
        assert bits(other) == before, "what is refused changes nothing"
        return "refused"
    assert {name, (kind, name)} & HARMLESS.keys(), "it was taken"
    for step in range(4):
        for context in contexts:
            assert agent.policy(context).tobytes() == other.policy(context).tobytes()
        taught(agent, contexts, 1, step)
        taught(other, contexts, 1, step)
    return "harmless"


@pytest.mark.parametrize(("kind", "argument"), CASES)
def test_a_changed_argument_is_refused_or_harmless(kind, argument):
    outcomes = {name: outcome(kind, name, replaced) for name, replaced in changes(kind, argument)}
    assert set(outcomes.values()) & {"refused", "harmless"}, f"no change was tried: {outcomes}"


def test_every_rival_and_every_argument_is_changed():
    every = {thing for thing in find_agents(rivals).values() if not inspect.isabstract(thing)}
    assert every == {line.made for line in LINES.values()}
    tried = {(LINES[kind].made, argument) for kind, argument in CASES}
    assert tried == {(made, argument) for made in every for argument in inspect.signature(made).parameters}


WITH_ORACLES = [kind for kind, line in LINES.items() if kind in KINDS | BANDITS and line.made.waits_for_rewards]


@pytest.mark.parametrize("kind", WITH_ORACLES)
def test_rewards_that_come_late_are_followed_at_once(kind):
    """A rival that is restored from its state plays what the one that was saved plays."""
    made, call = call_of(kind)
    agent, rng, late = made(**call), np.random.default_rng(2), []
    for number in range(12):
        whole = episode(rng, agent.space, LABELS[number % 3], 0.0)
        parts = {"context": whole.context, "states": whole.states, "actions": whole.actions}
        agent.update(Trajectory(**parts, rewards=None))
        late.append(Trajectory(**parts, rewards=whole.rewards))
        if number % 2:
            agent.update_rewards(late.pop(0))
        restored = made(**call_of(kind)[1])
        restored.load_state(agent.state())
        assert all(agent.policy(each).tobytes() == restored.policy(each).tobytes() for each in LABELS)


def needs_of(line):
    """Return how the class of dynamics is called that a rival must have."""
    return str(inspect.signature(line.made).parameters["dynamics_oracle"].annotation)


class Refusing(oracles.DynamicsOracle):
    """Predicts as `oracle`, and learns nothing: it raises."""

    def __init__(self, oracle):
        self.horizon, self._oracle = oracle.horizon, oracle
        self.predict, self.uncertainty, self.regret_bound = oracle.predict, oracle.uncertainty, oracle.regret_bound
        self.state, self.load_state, self.draws = oracle.state, oracle.load_state, oracle.draws

    def predict(self, context):
        raise NotImplementedError

    uncertainty = regret_bound = predict

    def update(self, context, states, actions, next_states):
        raise RuntimeError("no")


TAKES_ANY = [kind for kind, line in LINES.items() if kind in KINDS | BANDITS and "FiniteDynamics" not in needs_of(line)]


@pytest.mark.parametrize("kind", TAKES_ANY)
def test_an_episode_that_an_oracle_refuses_changes_nothing(kind):
    made, call = call_of(kind)
    agent = taught(made(**call), LABELS, 0 if kind == "Epoch-Greedy" else 5, 1)  # which learns from some only
    agent.dynamics_oracle = Refusing(agent.dynamics_oracle)
    before, policies = bits(agent), [agent.policy(context).tobytes() for context in LABELS]
    for context in LABELS:
        with pytest.raises(RuntimeError, match="no"):
            agent.update(episode(np.random.default_rng(4), agent.space, context, 0.0))
    assert bits(agent) == before
    assert [agent.policy(context).tobytes() for context in LABELS] == policies
