"""Epochs: what is predicted changes after 1, 2, 4, 8, ... episodes only."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.oracles import CountDynamics, CountRewards, EpochRewards
from omg_cmdp.oracles.combined.epochs import epoch_starts

SIZE = {"states": 3, "actions": 2, "horizon": 4}


def random_episode(rng):
    return "any", rng.integers(3, size=4), rng.integers(2, size=4), rng.random(4)


def test_an_epoch_knows_the_episodes_before_it(rng):
    """After t episodes it predicts, bit for bit, what the oracle predicts after the largest power of two up to t."""
    oracle, plain = EpochRewards(CountRewards(**SIZE)), CountRewards(**SIZE)
    after = [plain.predict("any")]
    for t in range(40):
        known = 0 if t == 0 else 2 ** int(math.log2(t))
        assert np.array_equal(oracle.predict("any"), after[known])
        episode = random_episode(rng)
        oracle.update(*episode)
        plain.update(*episode)
        after.append(plain.predict("any"))
    assert oracle.best_loss() == plain.best_loss()


def test_a_thousand_episodes_are_predicted_by_eleven_fits(rng):
    oracle = EpochRewards(CountRewards(**SIZE))
    predictions = set()
    for _ in range(1000):
        predictions.add(oracle.predict("any").tobytes())
        oracle.update(*random_episode(rng))
    assert len(predictions) == len(epoch_starts(999)) == 11


def test_the_loss_is_that_of_what_was_said(rng):
    oracle, total = EpochRewards(CountRewards(**SIZE)), 0.0
    for _ in range(20):
        context, states, actions, rewards = random_episode(rng)
        total += ((oracle.predict(context)[states, actions] - rewards) ** 2).sum()
        oracle.update(context, states, actions, rewards)
    assert oracle.loss == pytest.approx(total)


def test_what_is_not_an_oracle_or_cannot_be_saved_is_refused():
    class Forgetful(omg.RewardOracle):
        horizon = 4

        def predict(self, context):
            return np.zeros((3, 2))

        def update(self, context, states, actions, rewards):
            pass

        def uncertainty(self, context):
            return np.zeros((3, 2))

        def regret_bound(self, episodes, horizon):
            return math.inf

    for oracle in (Forgetful(), CountDynamics(**SIZE), None):
        with pytest.raises(ValueError, match="`oracle"):
            EpochRewards(oracle)


def test_draws_come_from_the_posterior_of_the_epoch(rng):
    tables = {"c": np.linspace(0.1, 0.9, 6).reshape(6, 1, 1)}
    rewards = EpochRewards(omg.oracles.FiniteRewards(tables, horizon=1))
    for reward in [0.26] * 256 + [0.9] * 200:  # the last 200 are not known yet
        rewards.update("c", [0], [0], [reward])
    draws = set(rewards.draws("c", 50, rng).ravel())
    assert draws == {tables["c"][1].item()}
