"""Epochs: what is predicted changes after 1, 2, 4, 8, ... episodes only; with H = 1 it is FALCON's schedule."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import PosteriorSampling
from omg_cmdp.oracles import (
    CountDynamics,
    CountRewards,
    EpochDynamics,
    EpochRewards,
    OfflineFiniteDynamics,
    OfflineFiniteRewards,
)
from omg_cmdp.oracles.combined.epochs import epoch_starts
from omg_lab.rivals import EpochGamma, epoch_omg, epoch_pc_igw
from omg_lab.worlds import Decoy

SIZE = {"states": 3, "actions": 2, "horizon": 4}


def random_episode(rng, dynamics):
    outcomes = rng.integers(3, size=4) if dynamics else rng.random(4)
    return "any", rng.integers(3, size=4), rng.integers(2, size=4), outcomes


@pytest.mark.parametrize(("wrap", "make"), [(EpochRewards, CountRewards), (EpochDynamics, CountDynamics)])
def test_an_epoch_knows_the_episodes_before_it(wrap, make, rng):
    """After t episodes it predicts, bit for bit, what the oracle predicts after the largest power of two up to t."""
    oracle, plain = wrap(make(**SIZE)), make(**SIZE)
    after = [plain.predict("any")]
    for t in range(40):
        known = 0 if t == 0 else 2 ** int(math.log2(t))
        assert np.array_equal(oracle.predict("any"), after[known])
        episode = random_episode(rng, wrap is EpochDynamics)
        oracle.update(*episode)
        plain.update(*episode)
        after.append(plain.predict("any"))
    assert oracle.best_loss() == plain.best_loss()


def test_a_thousand_episodes_are_predicted_by_eleven_fits(rng):
    oracle = EpochRewards(CountRewards(**SIZE))
    predictions = set()
    for _ in range(1000):
        predictions.add(oracle.predict("any").tobytes())
        oracle.update(*random_episode(rng, False))
    assert len(predictions) == len(epoch_starts(999)) == 11


def test_the_loss_is_that_of_what_was_said(rng):
    oracle, total = EpochRewards(CountRewards(**SIZE)), 0.0
    for _ in range(20):
        context, states, actions, rewards = random_episode(rng, False)
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
    """So that posterior sampling by epochs is another composition."""
    tables = {"c": np.linspace(0.1, 0.9, 6).reshape(6, 1, 1)}
    rewards = EpochRewards(omg.oracles.FiniteRewards(tables, horizon=1))
    dynamics = EpochDynamics(omg.oracles.KnownDynamics(np.ones((1, 1, 1)), horizon=1))
    PosteriorSampling(omg.Space(states=1, actions=1, horizon=1), rewards, dynamics).policy("c")
    for reward in [0.26] * 256 + [0.9] * 200:  # the last 200 are not known yet
        rewards.update("c", [0], [0], [reward])
    draws = set(rewards.draws("c", 50, rng).ravel())
    assert draws == {tables["c"][1].item()}


def test_gamma_grows_with_the_root_of_what_is_known():
    gamma = EpochGamma(3.0)
    for episode in range(1, 300):
        assert gamma(episode) == 3.0 * math.sqrt(max(1, epoch_starts(episode - 1)[-1]))
        assert gamma(episode) ** 2 < 9.0 * max(2, episode)
        assert gamma(episode) ** 2 >= 9.0 * max(1, episode - 1) / 2


class Arms(omg.ContextualMDP):
    """A contextual bandit, H = 1, with a class of ten functions."""

    space = omg.Space(states=1, actions=4, horizon=1)
    contexts = tuple(range(6))

    def __init__(self, rng):
        self.tables = rng.random((6, 10, 1, 4))

    def mdp(self, context):
        return self.space.mdp(transitions=np.ones((1, 4, 1)), rewards=self.tables[context, 7])

    def oracles(self):
        return (
            OfflineFiniteRewards(lambda context: self.tables[context], horizon=1),
            OfflineFiniteDynamics(lambda context: np.ones((1, 1, 4, 1)), horizon=1),
        )


def test_with_one_step_it_is_inverse_gap_weighting_by_falcons_epochs(rng):
    """p_a = 1/(λ + γ_m·gap_a) in the least-squares fit of all data before the epoch; FALCON has A in the place of λ."""
    world = Arms(rng)
    agent, log = epoch_omg(world.space, *world.oracles(), scale=5.0, episodes=10**9), []
    run = omg.Run(world, IID(world.contexts), agent, observe=lambda this: log.append(this.played))
    for t in range(1, 50):
        known = epoch_starts(t - 1)[-1]
        losses = np.zeros(10)
        for episode in log[:known]:
            losses += (world.tables[episode.context][:, 0, episode.actions[0]] - episode.rewards[0]) ** 2
        for context in world.contexts:
            fit = world.tables[context, np.argmin(losses), 0]
            gaps = 5.0 * math.sqrt(max(1, known)) * (fit.max() - fit)
            low, high = 1.0, 4.0
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if (1.0 / (middle + gaps)).sum() > 1.0 else (low, middle)
            np.testing.assert_allclose(agent.policy(context)[0, 0], 1.0 / (low + gaps), atol=1e-5)
        run.advance(1)


@pytest.mark.parametrize("make", [epoch_omg, epoch_pc_igw])
def test_regret_is_sublinear_if_contexts_are_drawn(make):
    world = Decoy(seed=1, horizon=2, context_count=6)
    oracles = (
        OfflineFiniteRewards(world.reward_functions, horizon=2),
        OfflineFiniteDynamics(world.transition_functions, horizon=2),
    )
    regret = omg.simulate(world, IID(world.contexts), make(world.space, *oracles, scale=30.0), 600).regret
    assert regret[:8].mean() > 0.1
    assert regret[300:].mean() < 0.3 * regret[:60].mean()
