"""An episode that one part of an oracle refuses is learned by none of them."""

import math

import numpy as np
import pytest

from library.tests.oracles.catalogue import ACTIONS, SIZE, STATES
from library.tests.oracles.test_state import bits
from omg_cmdp.oracles import (
    AggregateRewards,
    CountRewards,
    KnownRewards,
    RefittedRewards,
    RewardOracle,
    StepwiseRewards,
)

HORIZON = 3
EPISODE = [0, 1, 2], [0, 1, 0], [0.2, 0.9, 0.4]


class Fussy(RewardOracle):
    """An oracle of one's own that learns a mean, and refuses rewards of exactly 1."""

    horizon = None

    def __init__(self, *, saves=True):
        self.saves, self.sums = saves, np.zeros(2)

    def predict(self, context):
        return np.full((STATES, ACTIONS), self.sums[0] / max(self.sums[1], 1.0))

    def update(self, context, states, actions, rewards):
        if max(rewards) == 1.0:
            raise ValueError("`rewards` must be below 1")
        self.sums = self.sums + np.array([sum(rewards), len(rewards)])

    def uncertainty(self, context):
        return np.full((STATES, ACTIONS), 0.25)

    def regret_bound(self, episodes, horizon):
        return math.inf

    def state(self):
        return {"sums": self.sums.copy()} if self.saves else super().state()

    def load_state(self, state):
        self.sums = np.array(state["sums"])


class Proud:
    """A model that refuses to be fitted to a reward of 1."""

    def fit(self, inputs, rewards):
        if rewards.max() == 1.0:
            raise OverflowError("a reward of 1")

    def predict(self, inputs):
        return np.zeros(len(inputs))


def count(horizon):
    return CountRewards(**SIZE, horizon=horizon)


def proud(horizon):
    return RefittedRewards(Proud(), every=1, members=1, **SIZE, horizon=horizon, features=lambda context: [1.0])


MIXED = {
    "one that refuses, last": lambda h: [count(h), KnownRewards(np.ones((STATES, ACTIONS)), horizon=h), Fussy()],
    "one that refuses, first": lambda h: [Fussy(), count(h)],
    "two that refuse": lambda h: [Fussy(), count(h), proud(h)],
    "two that refuse, the other way round": lambda h: [proud(h), count(h), Fussy()],
    "two that refuse, one of which cannot be saved": lambda h: [proud(h), count(h), Fussy(saves=False)],
}


@pytest.mark.parametrize("name", MIXED)
def test_what_one_expert_refuses_no_other_has_learned(name):
    oracle = AggregateRewards(MIXED[name](HORIZON), horizon=HORIZON)
    parts = oracle.forecasters.oracles
    oracle.update("any", *EPISODE)
    before = [(part.predict("any").tobytes(), part.uncertainty("any").tobytes(), part.episodes) for part in parts]
    for _ in range(3):
        with pytest.raises((ValueError, OverflowError)):
            oracle.update("any", [0, 1, 2], [0, 1, 0], [0.1, 0.2, 1.0])
    after = [(part.predict("any").tobytes(), part.uncertainty("any").tobytes(), part.episodes) for part in parts]
    assert after == before
    assert oracle.episodes == 1


def test_what_the_oracle_of_one_step_refuses_no_other_has_learned():
    parts = [count(1), count(1), Fussy()]
    oracle = StepwiseRewards(parts)
    oracle.update("any", *EPISODE)
    before = [bits(part.state()) for part in parts]
    with pytest.raises(ValueError, match="below 1"):
        oracle.update("any", [0, 1, 2], [0, 1, 0], [0.1, 0.2, 1.0])
    assert [bits(part.state()) for part in parts] == before
    oracle.update("any", [0, 1], [0, 1], [0.1, 0.2])  # a truncated episode does not reach the third step


def test_oracles_that_never_refuse_make_one_that_never_refuses():
    assert AggregateRewards([count(HORIZON), count(HORIZON)], horizon=HORIZON).surely_learns
    assert not AggregateRewards([count(HORIZON), Fussy()], horizon=HORIZON).surely_learns
