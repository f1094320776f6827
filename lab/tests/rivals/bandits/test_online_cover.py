"""Online cover: its leader is the best by doubly robust estimates, the others go where those before them do not."""

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import rounds, taught, taught_late, with_class
from omg_lab.rivals import OnlineCover


def test_the_first_policy_is_the_best_by_doubly_robust_rewards(rng):
    tables = {c: rng.random((20, 1, 3)) for c in "ab"}
    agent, totals = with_class(OnlineCover, tables, size=3), np.zeros(20)
    for played in rounds(agent, {c: tables[c][2, 0] for c in "ab"}, "ab", 80, rng):
        if totals.any():
            leader = tables[played.context][totals.argmax(), 0].argmax()
            assert agent.votes(played.context)[0, 0, leader] == 1.0
        guess = agent.model(played.context).rewards[0].copy()
        guess[played.action] += (played.reward - guess[played.action]) / played.policy[played.action]
        totals += guess[tables[played.context][:, 0].argmax(axis=1)]


def test_policies_are_the_votes_with_a_least_probability(rng):
    tables = {"c": rng.random((20, 1, 4))}
    agent = with_class(OnlineCover, tables, size=5, psi=1.0)
    for t, played in enumerate(rounds(agent, {"c": tables["c"][2, 0]}, ["c"], 60, rng), start=1):
        least = min(0.25, 1.0 / np.sqrt(4.0 * t))
        assert agent.least == pytest.approx(least)
        votes = agent.votes("c")[:, 0].mean(axis=0)
        np.testing.assert_allclose(played.policy, (1.0 - 4.0 * least) * votes + least, atol=1e-12)


def test_a_large_psi_covers_all_actions_and_a_small_one_none():
    """Three equal policies: with a large ψ the three members choose three actions."""
    tables = {"c": np.stack([np.roll([0.6, 0.5, 0.5], k)[None] for k in range(3)])}
    for psi, actions in ((10.0, 3), (1e-9, 1)):
        agent = with_class(OnlineCover, tables, size=3, psi=psi)
        for t in range(30):
            taught(agent, "c", t % 3, 0.9 if t % 3 == 0 else 0.5)
        assert len(set(agent.votes("c")[:, 0].argmax(axis=1).tolist())) == actions


def test_a_late_reward_is_divided_by_the_probability_with_which_its_action_was_played():
    agent = with_class(OnlineCover, {"c": np.eye(2)[:, None]}, size=2)
    played = agent.policy("c")[0, 0]
    for _ in range(100):
        taught(agent, "c", 0, 1.0)
    assert agent.policy("c")[0, 0, 1] < 0.5 * played[1]
    guess, before, least = agent.model("c").rewards[0].copy(), agent.state()["scores"], agent.least
    leader = int(before[0].argmax())
    taught_late(agent, "c", 1, 0.6, chance=played[1])
    guess[1] += (0.6 - guess[1]) / played[1]
    first, second = agent.state()["scores"] - before
    np.testing.assert_allclose(first, guess, atol=1e-9)
    chances = np.where(np.arange(2) == leader, 1.0 - least, least)  # of what the first votes for, smoothed
    np.testing.assert_allclose(second - first, agent.psi * least / chances, atol=1e-9)


def test_a_single_policy_is_follow_the_leader():
    agent = with_class(OnlineCover, {"c": np.eye(2)[:, None]}, size=1)
    for _ in range(50):
        taught(agent, "c", 1, 1.0)
    assert agent.policy("c")[0, 0].argmax() == 1


def test_what_is_refused():
    with pytest.raises(ValueError, match="`size` must be an integer of at least 1"):
        with_class(OnlineCover, {"c": np.zeros((2, 1, 2))}, size=0)
    with pytest.raises(ValueError, match="`reward_oracle` must be a FiniteRewards"):
        with_class(OnlineCover, {"c": np.zeros((2, 1, 2))}, offline=True)
