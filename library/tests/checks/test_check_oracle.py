"""Every oracle of the package keeps the contract, and a broken rule is caught."""

import inspect
import math
from pathlib import Path

import numpy as np
import pytest

from library.tests.oracles.catalogue import SAMPLED, build_oracle, each_oracle
from omg_cmdp import oracles
from omg_cmdp.checks import check_oracle
from omg_cmdp.oracles import CountDynamics, CountRewards, FiniteRewards, LinearRewards, RewardOracle
from omg_cmdp.oracles.base import Oracle

PUBLIC = [getattr(oracles, name) for name in oracles.__all__]
CLASSES = {
    kind for kind in PUBLIC if inspect.isclass(kind) and issubclass(kind, Oracle) and not inspect.isabstract(kind)
}


ADAPTERS = {getattr(oracles, name) for name in oracles.adapters.__all__}
"""Their contract is checked in oracles/adapters, with models of scikit-learn."""


def test_every_oracle_is_in_the_catalogue():
    assert len(CLASSES) >= 20
    assert {type(oracle) for _, oracle in each_oracle(4).values()} == CLASSES - ADAPTERS


def test_every_oracle_is_on_its_page():
    page = (Path(__file__).parents[3] / "docs" / "oracles.md").read_text()
    assert [kind.__name__ for kind in CLASSES if f"`{kind.__name__}`" not in page] == []


@pytest.mark.parametrize("name", SAMPLED)
def test_contract(name):
    contexts, oracle = build_oracle(name, 4)
    check_oracle(oracle, contexts)


@pytest.mark.parametrize(
    "oracle",
    [
        FiniteRewards(lambda context: np.full((2, 3, 2), 0.5) * np.ones((1, 4)).dot(context), horizon=2),
        FiniteRewards({"a": np.zeros((2, 3, 2))}, horizon=2),
        CountRewards(states=2, actions=2, horizon=3, contexts=["x", "y"]),
        LinearRewards(states=2, actions=2, dimension=7, horizon=3),
    ],
    ids=["callable of a vector", "mapping", "listed labels", "vectors"],
)
def test_contexts_are_found_without_help(oracle):
    check_oracle(oracle)


def test_contexts_that_cannot_be_found_must_be_given():
    with pytest.raises(ValueError, match="`contexts` must be given"):
        check_oracle(FiniteRewards(lambda patient: patient["tables"], horizon=2))


def test_other_objects_are_refused():
    with pytest.raises(ValueError, match="`oracle` must be a RewardOracle or a DynamicsOracle"):
        check_oracle(object(), [0])


class Mean(RewardOracle):
    """A third party's oracle: the four methods of the contract, and no more."""

    def __init__(self):
        self.total = np.full((2, 2), 0.5)
        self.visits = np.ones((2, 2))

    def predict(self, context):
        return self.total / self.visits

    def update(self, context, states, actions, rewards):
        states, actions, rewards = np.asarray(states), np.asarray(actions), np.asarray(rewards)
        if not states.shape == actions.shape == rewards.shape or len(states) not in range(1, 6):
            raise ValueError("`states` must have length 1 to 5")
        if any(a.dtype.kind != "i" or a.min() < 0 or a.max() > 1 for a in (states, actions)):
            raise ValueError("`states` must be 0 or 1")
        if not ((rewards >= 0.0) & (rewards <= 1.0)).all():
            raise ValueError("`rewards` must lie in [0, 1]")
        np.add.at(self.total, (states, actions), rewards)
        np.add.at(self.visits, (states, actions), 1.0)

    def uncertainty(self, context):
        return 0.25 / self.visits

    def regret_bound(self, episodes, horizon):
        return math.inf


def test_a_third_party_needs_four_methods_only():
    check_oracle(Mean(), [0, "b"])


class Overconfident(Mean):
    def predict(self, context):
        return 3.0 * super().predict(context)


class Aliased(Mean):
    def predict(self, context):
        self.answer = super().predict(context) if not hasattr(self, "answer") else self.answer
        return self.answer


class Hoarder(Mean):
    given = None

    def update(self, context, states, actions, rewards):
        super().update(context, states, actions, rewards)
        self.given = rewards

    def predict(self, context):
        return super().predict(context) * (1.0 if self.given is None else np.mean(self.given))


class Careless(Mean):
    def update(self, context, states, actions, rewards):
        self.total += 0.01
        super().update(context, states, actions, rewards)


class Gullible(Mean):
    def update(self, context, states, actions, rewards):
        super().update(context, states, actions, np.clip(np.nan_to_num(rewards), 0.0, 1.0))


class Negative(Mean):
    def uncertainty(self, context):
        return -super().uncertainty(context)


class Single(Mean):
    def draws(self, context, count, generator):
        return super().draws(context, count, generator)[0]


class Moody(Mean):
    def draws(self, context, count, generator):
        return super().draws(context, count, np.random.default_rng())


class Dreamer(Mean):
    def draws(self, context, count, generator):
        return np.ones((count, 2, 2))


class Wild(Mean):
    def draws(self, context, count, generator):
        return generator.standard_normal((count, 2, 2))


class Restless(Mean):
    def draws(self, context, count, generator):
        self.loss = np.nan_to_num(self.loss) + 1.0
        return super().draws(context, count, generator)


@pytest.mark.parametrize(
    ("oracle", "rule"),
    [
        (Single(), "`draws` must have shape"),
        (Moody(), "the same for equal generators"),
        (Dreamer(), "the mean of `draws`"),
        (Wild(), r"`draws` must lie in \[0, 1\]"),
        (Restless(), "asking must change nothing"),
        (Overconfident(), r"must lie in \[0, 1\]"),
        (Aliased(), "asking must change nothing"),
        (Hoarder(), "keep no reference"),
        (Careless(), "a refused `update` must change nothing"),
        (Gullible(), "must be refused"),
        (Negative(), "not negative"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Mean) else "",
)
def test_a_broken_rule_is_caught(oracle, rule):
    with pytest.raises((AssertionError, ValueError), match=rule):
        check_oracle(oracle, [0, 1])


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda o: setattr(o.forecasters, "bound", lambda episodes, horizon: 0.0), "above its bound"),
        (lambda o: setattr(o.forecasters, "bound", lambda episodes, horizon: 1e6 / episodes), "must grow"),
        (lambda o: setattr(o.forecasters.account, "loss", 1.0), "`loss` must be the loss incurred"),
        (lambda o: setattr(o.forecasters, "learned", ()), "continue to the bit"),
    ],
)
def test_a_false_claim_is_caught(spoil, rule):
    oracle = CountDynamics(states=3, actions=1, horizon=4, rate="proven")
    spoil(oracle)
    with pytest.raises(AssertionError, match=rule):
        check_oracle(oracle, [0])
