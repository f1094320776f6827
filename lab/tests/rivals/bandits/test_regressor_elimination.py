"""Regressor Elimination: its program, the inequality behind its regret, and regret that is constant."""

import math

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import one_state, rounds, taught, with_class
from omg_lab.rivals import RegressorElimination
from omg_lab.rivals.bandits.iltcb import action_shares
from omg_lab.rivals.bandits.policies import smoothed
from omg_lab.rivals.bandits.regressor_elimination import FACTOR, even_weights

CONTEXTS = tuple("abcd")


@pytest.mark.parametrize("least", [1e-9, 0.01, 0.1])
def test_no_policy_has_more_variance_than_there_are_disputed_actions(least, rng):
    """E 1/P'(π(c)|c) <= ρ·E|A(c)|; some policy needs nearly as much, because Σ P·V is that without μ."""
    for size in (1, 2, 7, 60):
        actions, shares = rng.integers(5, size=(size, 8)), rng.dirichlet(np.ones(8))
        disputed = action_shares(np.ones(size), actions, 5) > 0.0
        weights = even_weights(actions, shares, disputed, least)
        assert weights.sum() == pytest.approx(1.0)
        assert weights.min() >= 0.0
        chances = smoothed(action_shares(weights, actions, 5), least, disputed)
        variances = (1.0 / chances[np.arange(8), actions]) @ shares
        most = shares @ disputed.sum(axis=1)
        assert variances.max() <= FACTOR * most + 1e-9
        if least < 1e-6:
            assert variances.max() >= most - 1e-4


def test_all_that_are_left_are_as_good_as_what_was_seen_of_them_says(rng):
    """t·regret(π_f) <= 2·√(ρ·K·t·Σ e_s(f)), in expectation over contexts, for every f that is left."""
    tables = {c: rng.random((20, 1, 9)) for c in CONTEXTS}
    for table in tables.values():  # f_i is the truth, f_4, but for one action of its own, which only π_i plays
        table[:9, 0] = np.where(np.eye(9), 1.0, 0.9 * np.eye(9)[4])
    true = np.array([tables[c][4, 0] for c in CONTEXTS])
    functions = np.array([tables[c][:, 0] for c in CONTEXTS])  # (C, N, A)
    regrets = np.mean(true.max(axis=1)[:, None] - np.take_along_axis(true, functions.argmax(axis=2), axis=1), axis=0)
    agent, seen = with_class(RegressorElimination, tables, 4.0, contexts=CONTEXTS), np.zeros(20)
    for t, _ in enumerate(rounds(agent, dict(zip(CONTEXTS, true, strict=True)), CONTEXTS, 200, rng)):
        assert agent.left[4]
        if t:
            assert (t * regrets <= 2.0 * np.sqrt(FACTOR * 9 * t * seen) + 1e-9)[agent.left].all()
        policies = np.array([agent.policy(c)[0, 0] for c in CONTEXTS])
        seen += np.einsum("ca,cna->n", policies, (functions - true[:, None]) ** 2) / len(CONTEXTS)
    assert agent.left.sum() < 20


def test_only_policies_of_what_is_left_are_played_and_what_is_dropped_stays_dropped(rng):
    tables = {c: rng.random((12, 1, 4)) for c in CONTEXTS}
    agent, before = with_class(RegressorElimination, tables, 0.5, contexts=CONTEXTS), np.ones(12, dtype=bool)
    for played in rounds(agent, {c: tables[c][0, 0] for c in CONTEXTS}, CONTEXTS, 120, rng):
        assert not (agent.left & ~before).any()
        before = agent.left
        chosen = set(tables[played.context][agent.left, 0].argmax(axis=1))
        assert set(np.flatnonzero(played.policy)) == chosen
        assert played.policy[list(chosen)].min() >= min(1 / 8, 1 / math.sqrt(agent.episodes_seen + 1))
    assert before.sum() < 12


def test_for_any_policies_there_are_rewards_of_constant_regret(seed):
    """A function says .9 of what its policy plays, and .1 of all else: soon one is left, and regret is zero."""
    rng = np.random.default_rng(seed)
    policies = rng.integers(4, size=(16, len(CONTEXTS)))
    tables = {c: np.where(np.eye(4)[policies[:, k]], 0.9, 0.1)[:, None] for k, c in enumerate(CONTEXTS)}
    truth = {c: tables[c][3, 0] for c in CONTEXTS}
    radius = 0.5 * math.log(16 / 0.001)
    agent = with_class(RegressorElimination, tables, radius, contexts=CONTEXTS)
    lost = [truth[p.context].max() - p.policy @ truth[p.context] for p in rounds(agent, truth, CONTEXTS, 400, rng)]
    assert lost[0] > 0.1
    assert max(lost[200:]) <= 1e-12
    assert (policies[agent.left] == policies[3]).all()


def test_states_are_weighed_by_how_often_they_are_met():
    """In a state two functions dispute with a third; that they dispute in another counts as often as that is met.

    Σ log P is largest at weights (¼, ¼, ½) for the first state alone, and at (.3, .3, .4) for both; Kμ is ½.
    """
    tables = {"c": np.eye(3)[[[0, 0], [0, 1], [1, 2]]]}
    for start, share in (([1.0, 0.0], 0.5), ([0.5, 0.5], 0.6)):
        space = one_state(3, states=2, start=start)
        agent = with_class(RegressorElimination, tables, contexts=["c"], space=space)
        expected = 0.5 * np.array([share, 1.0 - share]) + 0.25
        np.testing.assert_allclose(agent.policy("c")[0, 0, :2], expected, atol=0.015)


def test_a_context_that_is_not_listed_is_refused_and_changes_nothing():
    agent = with_class(RegressorElimination, {"c": np.zeros((2, 1, 2)), "d": np.ones((2, 1, 2))}, contexts=["c"])
    with pytest.raises(ValueError, match="`context` must be one of the 1 in `contexts`"):
        taught(agent, "d", 0, 1.0)
    assert agent.episodes_seen == 0
    assert agent.left.all()
    state = agent.state() | {"left": np.zeros(2)}
    with pytest.raises(ValueError, match="`state` must hold 1 for each function that is left"):
        agent.load_state(state)
