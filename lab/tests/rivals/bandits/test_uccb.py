"""UCCB: counts are of what would have been played, in contexts that never came too."""

import math

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import one_state, rounds, taught, with_class
from omg_lab.rivals import UCCB

CONTEXTS = ("a", "b", "never")


def test_counterfactual_actions_are_those_that_the_bounds_of_their_round_would_have_chosen(rng):
    tables = {c: rng.random((16, 1, 4)) for c in CONTEXTS}
    agent = with_class(UCCB, tables, contexts=CONTEXTS, scale=0.2, offline=True)
    chosen = {c: [] for c in CONTEXTS}
    for t, _ in enumerate(rounds(agent, {c: tables[c][3, 0] for c in CONTEXTS}, CONTEXTS[:2], 120, rng), start=1):
        for c in CONTEXTS:
            if t <= 4:
                expected = t - 1
            else:
                counts = np.bincount(chosen[c], minlength=4)
                bounds = agent.reward_oracle.predict(c)[0] + 0.2 * math.sqrt(t) / counts
                expected = int(bounds.argmax())
                np.testing.assert_array_equal(agent.counts(c)[0], counts)
            assert agent.policy(c)[0, 0].tolist() == np.eye(4)[expected].tolist()
            chosen[c].append(expected)
    assert len(set(chosen["never"][4:])) > 1


def test_bonuses_sum_to_a_logarithm(rng):
    """Σ 1/N_t(ã_t) <= A·(1 + log T), for contexts that come and for others."""
    tables = {c: rng.random((16, 1, 4)) for c in CONTEXTS}
    agent, sums, episodes = with_class(UCCB, tables, contexts=CONTEXTS, offline=True), dict.fromkeys(CONTEXTS, 0.0), 200
    for _ in rounds(agent, {c: tables[c][3, 0] for c in CONTEXTS}, CONTEXTS[:2], episodes, rng):
        for c in CONTEXTS:
            sums[c] += float(agent.policy(c)[0, 0] @ (1.0 / agent.counts(c)[0]))
    assert max(sums.values()) <= 4.0 * (1.0 + math.log(episodes)) + 4.0  # the first four rounds are not counted


def test_the_first_rounds_play_each_admissible_action_once():
    mask = [[True, False, True, True], [False, True, False, False]]
    space = one_state(4, 2, start=[0.5, 0.5], admissible=mask)
    agent, played = with_class(UCCB, {"c": np.full((1, 2, 4), 0.5)}, contexts=["c"], space=space), []
    for _ in range(3):
        played.append(agent.policy("c")[0].argmax(axis=1).tolist())
        taught(agent, "c", played[-1][0], 0.5)
    assert played == [[0, 1], [2, 1], [3, 1]]


def test_a_large_scale_plays_in_turns_and_a_tiny_one_follows_the_fit(rng):
    tables = {"c": np.array([[[0.9, 0.5, 0.1]], [[0.2, 0.6, 0.4]]])}
    for scale, shares in ((1e6, [20, 20, 20]), (1e-9, [58, 1, 1])):
        agent, counts = with_class(UCCB, tables, contexts=["c"], scale=scale, offline=True), np.zeros(3)
        for _ in range(60):
            action = int(agent.policy("c")[0, 0].argmax())
            counts[action] += 1
            taught(agent, "c", action, float(tables["c"][0, 0, action]))
        assert counts.tolist() == shares


@pytest.mark.parametrize("scale", [1e-3, 0.1, 10.0])
def test_an_adversary_makes_the_regret_linear_whatever_the_bonus(scale):
    """The fit says the same of both contexts, hence both would play alike; the one where that is wrong is shown.

    A safe arm has .5. The risky one has .1 in "bad"; in "good" one function says .1, and the truth .9.
    """
    tables = {"bad": [[[0.5, 0.1]]] * 2, "good": [[[0.5, 0.1]], [[0.5, 0.9]]]}
    truth = {"bad": np.array([0.5, 0.1]), "good": np.array([0.5, 0.9])}
    agent = with_class(UCCB, tables, contexts=list(tables), scale=scale, offline=True)
    for _ in range(200):
        lost = {c: truth[c].max() - agent.policy(c)[0, 0] @ truth[c] for c in tables}
        shown = max(lost, key=lost.get)
        assert lost[shown] == pytest.approx(0.4)
        action = int(agent.policy(shown)[0, 0].argmax())
        taught(agent, shown, action, truth[shown][action])


def test_a_context_that_is_not_listed_is_refused_and_changes_nothing():
    agent = with_class(UCCB, {c: np.zeros((1, 1, 2)) for c in "ab"}, contexts=["a"])
    with pytest.raises(ValueError, match="`context` must be one of the 1 in `contexts`, got 'b'"):
        taught(agent, "b", 0, 1.0)
    assert agent.episodes_seen == agent.reward_oracle.episodes == 0
