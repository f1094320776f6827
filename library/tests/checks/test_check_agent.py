"""`check_agent` passes an honest third party's agent, and catches one that breaks a rule."""

import numpy as np
import pytest

from omg_cmdp import Space
from omg_cmdp.agents import Agent, Decision, Greedy
from omg_cmdp.checks import check_agent
from omg_cmdp.oracles import CountDynamics, CountRewards, FiniteRewards, LinearRewards, SoftmaxDynamics

SIZE = {"states": 2, "actions": 3, "horizon": 3}
MASK = np.array([[True, True, False], [True, True, True]])


class Softmax(Agent):
    """A third party's agent: plays what paid, more or less, whatever the context."""

    def __init__(self):
        self.space = Space(**SIZE, admissible=MASK)
        self.paid = np.zeros((2, 3))

    def policy(self, context):
        weights = np.exp(np.clip(self.paid, -50.0, 50.0)) * MASK
        return np.repeat((weights / weights.sum(axis=1, keepdims=True))[None], 3, axis=0)

    def update(self, trajectory):
        if not hasattr(trajectory, "check"):
            raise ValueError(f"`trajectory` must be a Trajectory, got {trajectory!r}")
        trajectory.check(self.space)
        np.add.at(self.paid, (trajectory.states[:-1], trajectory.actions), trajectory.rewards - 0.5)


class Saved(Softmax):
    """The same, and it can be saved."""

    def state(self):
        return {"paid": self.paid.copy()}

    def load_state(self, state):
        if "paid" not in state or state["paid"].shape != (2, 3):
            raise ValueError(f"`state` must hold 'paid', got {sorted(state)}")
        self.paid = np.array(state["paid"])


@pytest.mark.parametrize("agent", [Softmax(), Saved()])
@pytest.mark.parametrize("contexts", [None, [0], ["a", "b", ("c", 1)]])
def test_a_third_party_needs_two_methods_only(agent, contexts):
    check_agent(agent, contexts)
    assert (agent.paid == 0.0).all()


class Unnormalised(Softmax):
    def policy(self, context):
        return 2.0 * super().policy(context)


class Reckless(Softmax):
    def policy(self, context):
        return np.full((3, 2, 3), 1.0 / 3.0)


class Flat(Softmax):
    def policy(self, context):
        return super().policy(context)[0]


class UselessAfterData(Softmax):
    def policy(self, context):
        return super().policy(context) * (np.nan if self.paid.any() else 1.0)


class TwoFaced(Softmax):
    def decide(self, context):
        return Decision(policy=np.roll(self.policy(context), 1, axis=2))


class Restless(Softmax):
    def policy(self, context):
        self.paid[0, 0] += 0.01
        return super().policy(context)


class Aliased(Softmax):
    answer = None

    def policy(self, context):
        self.answer = super().policy(context).copy() if self.answer is None else self.answer
        return self.answer

    def update(self, trajectory):
        super().update(trajectory)
        self.answer = None


class Nosy(Softmax):
    asked = False

    def policy(self, context):
        self.asked = True
        return super().policy(context)

    def update(self, trajectory):
        super().update(trajectory)
        self.paid[1] += 0.1 * self.asked * np.arange(3)


class Hoarder(Softmax):
    last = None

    def update(self, trajectory):
        super().update(trajectory)
        self.last = trajectory.rewards

    def policy(self, context):
        plain = super().policy(context)
        return plain if self.last is None or self.last.any() else plain[:, ::-1] * 0.0 + MASK / MASK.sum(1)[:, None]


class Orderly(Softmax):
    awaited = ()

    def policy(self, context):
        self.awaited = (*self.awaited, context)
        return super().policy(context)

    def update(self, trajectory):
        if self.awaited and trajectory.context != self.awaited[-1]:
            raise ValueError("`trajectory` must be of the context asked for last")
        super().update(trajectory)


class Gullible(Softmax):
    def update(self, trajectory):
        if hasattr(trajectory, "check") and (trajectory.rewards > 1.0).any():
            return
        super().update(trajectory)


class Boundless(Softmax):
    return_range = (0.5, 2.0)


class Crashing(Softmax):
    def update(self, trajectory):
        trajectory.check(self.space)
        super().update(trajectory)


class Careless(Softmax):
    def update(self, trajectory):
        self.paid[0, 0] += 0.25
        super().update(trajectory)


class Forgetful(Saved):
    def state(self):
        return {"paid": np.round(self.paid)}


class Drifting(Saved):
    drift = 0.0

    def update(self, trajectory):
        super().update(trajectory)
        self.drift += 0.1
        self.paid[1, 1] += self.drift


class Trusting(Saved):
    def load_state(self, state):
        self.paid = np.array(state["paid"])


class Hasty(Saved):
    def load_state(self, state):
        self.paid = np.zeros((2, 3))
        super().load_state(state)


class Everything(Saved):
    def restore(self, path):
        self.paid = np.zeros((2, 3))


class Opaque(Saved):
    def state(self):
        return {"paid": np.array([self], dtype=object)}


@pytest.mark.parametrize(
    ("agent", "rule"),
    [
        (Unnormalised, "a policy must be a distribution.*sum to 1"),
        (Reckless, "a policy must be a distribution.*inadmissible"),
        (Flat, r"a policy must be a distribution.*shape \(3, 2, 3\)"),
        (UselessAfterData, "a policy must be a distribution"),
        (TwoFaced, r"`decide\(context\).policy` must be `policy\(context\)`"),
        (Restless, r"`decide\(context\).policy` must be|asking must change nothing"),
        (Aliased, "asking must change nothing"),
        (Nosy, "asking between updates must teach nothing"),
        (Hoarder, "`update` must keep no reference"),
        (Orderly, "`update` must take any episode, in any order"),
        (Gullible, "a reward above its range must be refused"),
        (Boundless, "a return below its range must be refused"),
        (Crashing, "what is not a Trajectory must be refused with a ValueError, got AttributeError"),
        (Careless, "a refused `update` must change nothing"),
        (Forgetful, "a restored agent must equal the saved one"),
        (Drifting, "a restored agent must continue bit for bit"),
        (Trusting, "a state without 'paid' must be refused with a ValueError, got KeyError"),
        (Hasty, "a refused `load_state` must change nothing"),
        (Everything, "a restored agent must equal the saved one"),
        (Opaque, "`state` must be arrays of numbers and text"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_an_agent_that_breaks_a_rule_is_caught(agent, rule):
    with pytest.raises((AssertionError, ValueError), match=rule):
        check_agent(agent(), [0, 1])


def test_contexts_are_found_without_help():
    """Listed ones, labels, and vectors of the right dimension."""
    space = Space(**SIZE)
    listed = Greedy(space, CountRewards(**SIZE, contexts=["x", "y"]), CountDynamics(**SIZE, contexts=["y", "z"]))
    vectors = Greedy(space, LinearRewards(**SIZE, dimension=7), SoftmaxDynamics(**SIZE, dimension=7))
    for agent in (listed, vectors):
        check_agent(agent)


def test_contexts_that_cannot_be_found_are_asked_for():
    def tables(patient):
        if not isinstance(patient, dict):
            raise RuntimeError("whatever a user's function raises")
        return patient["tables"]

    agent = Greedy(Space(**SIZE), FiniteRewards(tables, horizon=3), CountDynamics(**SIZE))
    with pytest.raises(ValueError, match="`contexts` must be given"):
        check_agent(agent)


def test_other_objects_are_refused():
    with pytest.raises(AssertionError, match="an agent must have a `space`"):
        check_agent(object(), [0])


def test_an_agent_that_accepts_vectors_of_any_dimension_is_caught():
    """For vectors it is known which contexts are none: those with a NaN, those of another dimension."""
    with pytest.raises(AssertionError, match="a context with a NaN must be refused"):
        check_agent(Softmax(), [np.array([0.5, 0.5])])
