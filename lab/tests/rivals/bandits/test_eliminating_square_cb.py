"""SquareCB among survivors: a distribution for every input, its inequality, and what Vowpal Wabbit returns instead."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.tests.rivals.bandits.games import rounds, taught, with_class
from omg_lab.rivals import EliminatingSquareCB, SquareCB
from omg_lab.rivals.bandits.eliminating_square_cb import square_cb_among
from omg_lab.rivals.bandits.plausible import Plausible, plausible

UNIT = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0])  # ties are likely


@given(st.lists(st.tuples(UNIT, UNIT, UNIT), min_size=1, max_size=8), st.floats(1e-300, 1.7e308))
@settings(max_examples=150, deadline=None)
def test_it_is_a_distribution_over_the_survivors_for_every_input(actions, gamma):
    rewards = np.array([[each[0] for each in actions]])
    lows, highs = (np.array([[kind(each[1:]) for each in actions]]) for kind in (min, max))
    survivors = Plausible(lows, highs, highs >= 0.0).survivors
    p, n = square_cb_among(survivors, rewards, gamma)[0], int(survivors.sum())
    assert n >= 1
    assert (p >= 0.0).all()
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert (p[~survivors[0]] == 0.0).all()
    best = np.where(survivors, rewards, -1.0)[0].argmax()
    assert p[best] >= 1.0 / n - 1e-12
    assert (np.delete(p, best) <= 1.0 / n + 1e-15).all()
    if n == len(actions) == np.count_nonzero(rewards == rewards[0, 0]):
        np.testing.assert_allclose(p, 1.0 / n)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1])
def test_what_is_no_reward_is_refused(bad):
    with pytest.raises(ValueError, match=r"`rewards` must lie in \[0, 1\]"):
        square_cb_among(np.ones((1, 2), dtype=bool), np.array([[0.5, bad]]), 1.0)
    with pytest.raises(ValueError, match="`gamma` must be a positive"):
        square_cb_among(np.ones((1, 2), dtype=bool), np.array([[0.5, 0.5]]), bad if bad < 0 else math.nan)
    with pytest.raises(ValueError, match="`candidates` must have an action in every state"):
        square_cb_among(np.zeros((1, 2), dtype=bool), np.array([[0.5, 0.5]]), 1.0)


def test_where_vowpal_wabbit_knows_nothing_it_returns_what_is_no_distribution():
    """It divides by the number of actions that are better than all before them: one of four equals."""
    package = pytest.importorskip("vowpalwabbit")
    workspace = package.Workspace("--cb_explore_adf --squarecb --elim --quiet")
    theirs = workspace.predict(["shared |s x", *(f"|a a{i}" for i in range(4))])
    assert theirs == [-2.0, 1.0, 1.0, 1.0]
    agent = with_class(EliminatingSquareCB, {"c": np.full((1, 1, 4), 0.5)})
    np.testing.assert_allclose(agent.policy("c")[0, 0], 0.25)


def test_with_all_survivors_it_is_squarecb_and_with_one_it_plays_that(rng):
    tables = {"c": np.concatenate([rng.random((5, 2, 3)), np.zeros((1, 2, 3)), np.ones((1, 2, 3))])}
    wide, plain = with_class(EliminatingSquareCB, tables, 30.0, 100.0), with_class(SquareCB, tables, 30.0)
    np.testing.assert_array_equal(wide.policy("c"), plain.policy("c"))
    alone = {"c": np.array([[[0.2, 0.8, 0.5]]])}
    np.testing.assert_array_equal(with_class(EliminatingSquareCB, alone, 1e-3).policy("c")[0, 0], [0.0, 1.0, 0.0])


def test_regret_is_within_the_price_of_the_survivors_and_the_error(rng):
    """max f* - ⟨p, f*⟩ <= (n·(1 + p_b) - 2)/γ + (γ/4)·Σ p·(f* - f̂)² if the best action survives."""
    for _ in range(500):
        gamma, actions = float(10.0 ** rng.uniform(-1, 4)), int(rng.integers(2, 7))
        guess, truth = rng.random((2, actions))
        if rng.random() < 0.5:
            truth = np.clip(guess + rng.normal(size=actions) / gamma, 0.0, 1.0)
        alive = rng.random(actions) < 0.6
        alive[truth.argmax()] = True
        p = square_cb_among(alive[None], guess[None], gamma)[0]
        best = np.where(alive, guess, -1.0).argmax()
        price = (alive.sum() * (1.0 + p[best]) - 2.0) / gamma
        assert truth.max() - p @ truth <= price + 0.25 * gamma * p @ (truth - guess) ** 2 + 1e-9


def test_on_a_run_it_drops_actions_and_never_the_best(rng):
    tables = {"c": rng.random((30, 1, 6))}
    truth, agent = {"c": tables["c"][7, 0]}, with_class(EliminatingSquareCB, tables, 5.0, 4.0)
    left = []
    for played in rounds(agent, truth, ["c"], 200, rng):
        seen = plausible(agent.reward_oracle, "c", 4.0, agent.space.admissible)
        assert seen.survivors[0, truth["c"].argmax()]
        np.testing.assert_array_equal(played.policy > 0.0, seen.survivors[0])
        left.append(int(seen.survivors.sum()))
    assert left[-1] < left[0]


def test_gamma_and_radius_may_change_with_the_episode():
    tables = {"c": np.array([[[0.9, 0.1]], [[0.1, 0.9]]])}
    agent = with_class(EliminatingSquareCB, tables, lambda t: 7.0 * t, lambda t: 10.0 if t == 1 else 1e-9)
    assert agent.decide("c").gamma == 7.0
    assert (agent.policy("c") > 0.0).all()
    taught(agent, "c", 0, 1.0)
    assert agent.decide("c").gamma == 14.0
    np.testing.assert_array_equal(agent.policy("c")[0, 0], [1.0, 0.0])
