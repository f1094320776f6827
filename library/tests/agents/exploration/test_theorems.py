"""The γ of the theorems: by hand, in time, and what it needs."""

import math

import numpy as np
import pytest

from library.tests.agents.catalogue import LABELS, MASK, REWARDS, SIZE, SPACES, TRANSITIONS, build
from library.tests.agents.exploration.situations import after, finite
from omg_cmdp import OMG, Space, oracles
from omg_cmdp.theory import errors

H = SIZE["horizon"]


def test_theory_by_hand():
    """S = 2, A = 3, H = 2, T = 1000, δ = 0.1, |F| = 4, |P| = 8, proven rates: R_sq = ln 4, R_log = 2·ln 8."""
    space = Space(states=2, actions=3, horizon=2)
    rewards = oracles.FiniteRewards(lambda _: np.full((4, 2, 3), 0.5), horizon=2, rate="proven")
    dynamics = oracles.FiniteDynamics(lambda _: np.full((8, 2, 3, 2), 0.5), horizon=2, rate="proven")
    agent = OMG(space, rewards, dynamics, "theory", episodes=1000, delta=0.1)
    errors = 2.0 * math.log(4.0) + 2.0 * math.log(8.0) + 36.0 * math.log(40.0)
    assert agent.decide("c").gamma == pytest.approx(math.sqrt(6000.0 / (62.0 * 8.0 * errors)))
    assert agent.decide("c").weights is None


def test_theory_is_the_same_in_every_episode():
    _, agent = build("theory")
    assert len({after(agent, t).decide(LABELS[0]).gamma for t in (0, 1, 10, 999)}) == 1


def test_theory_grows_like_the_root_of_the_episodes():
    """The bounds of finite classes do not depend on T (those of smoothed ones do)."""
    rewards, dynamics = oracles.FiniteRewards(REWARDS, horizon=H), oracles.FiniteDynamics(TRANSITIONS, horizon=H)
    made = (OMG(SPACES["plain"], rewards, dynamics, "theory", episodes=t) for t in (1000, 4000))
    one, four = (agent.decide("a").gamma for agent in made)
    assert four == pytest.approx(2.0 * one)


def test_anytime_by_hand():
    """n counts the first layer's start states, then all: 2 + 3·5 under the mask, from state 0."""
    agent = OMG(SPACES["restricted"], *finite(), "anytime", delta=0.1)
    assert MASK.sum() == 5
    agent.model("a")
    squares, logs = agent.reward_oracle.regret_bound(7, H), agent.dynamics_oracle.regret_bound(7, H)
    rewards = errors.reward_error(horizon=H, delta=0.1, reward_regret=squares)
    dynamics = logs + 2.0 * H * math.log(2.0 * H / 0.1)
    expected = math.sqrt(17 * 7 / (1.36 * rewards + (4.42 * H**2 + 6.12 * H**4) * dynamics))
    assert after(agent, 6).decide("a").gamma == pytest.approx(expected)


@pytest.mark.parametrize("oracle", ["finite", "counts"])
def test_anytime_increases(oracle):
    contexts, agent = build("anytime", oracle)
    gammas = [after(agent, t).decide(contexts[0]).gamma for t in range(50)]
    assert (np.diff(gammas) > 0.0).all()


@pytest.mark.parametrize("gamma", ["theory", "anytime"])
def test_a_bound_is_needed_where_the_theorem_needs_it(gamma):
    rewards = oracles.FiniteRewards(REWARDS, horizon=H, rate="realizable")
    dynamics = oracles.FiniteDynamics(TRANSITIONS, horizon=H)
    with pytest.raises(ValueError, match="`reward_oracle` must have a finite `regret_bound`"):
        OMG(SPACES["plain"], rewards, dynamics, gamma, episodes=10).policy("a")
