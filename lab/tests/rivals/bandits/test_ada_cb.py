"""AdaCB: exploration only where plausible functions disagree, by epochs, more where disagreement is rare."""

import math

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import rounds, taught, with_class
from omg_lab.rivals import FALCON, AdaCB

AGREED = np.array([[[0.9, 0.8, 0.3]], [[0.6, 0.5, 0.1]]])  # though their ranges overlap
DISPUTED = np.array([[[0.9, 0.2, 0.3]], [[0.5, 0.8, 0.1]]])
TABLES = {"agreed": AGREED, "disputed": DISPUTED}


def test_it_explores_only_where_functions_disagree():
    agent = with_class(AdaCB, TABLES, 10.0, offline=True)
    np.testing.assert_array_equal(agent.policy("agreed")[0, 0], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(
        agent.policy("disputed")[0, 0], [1.0 - 1.0 / 9.0, 1.0 / 9.0, 0.0]
    )  # the fit is the first
    for _ in range(64):
        taught(agent, "disputed", 1, 0.8)
    np.testing.assert_array_equal(agent.candidates("disputed"), [[False, True, False]])
    np.testing.assert_array_equal(agent.policy("disputed")[0, 0], [0.0, 1.0, 0.0])


def test_candidates_change_at_doubling_epochs_only():
    agent, seen = with_class(AdaCB, TABLES, 10.0, 0.5, offline=True), []
    for _ in range(32):
        seen.append(agent.policy("disputed").tolist())
        taught(agent, "disputed", 1, 0.8)
    for first, end in ((1, 2), (2, 4), (4, 8), (8, 16), (16, 32)):
        assert seen[first:end] == [seen[first]] * (end - first)
    assert len({str(each) for each in seen}) >= 2


def test_gamma_falls_with_the_root_of_the_share_of_disagreement():
    agent = with_class(AdaCB, TABLES, 10.0, 1e9, offline=True)
    for t in range(64):
        taught(agent, "disputed" if t % 4 == 0 else "agreed", 0, 0.5)
        if t + 1 in (8, 16, 32, 64):
            assert agent.disagreement == pytest.approx(0.25)
            decision = agent.decide("disputed")
            assert decision.gamma == pytest.approx(10.0 * math.sqrt(0.25))
            gap = abs(np.subtract(*decision.model.rewards[0, :2]))
            assert decision.policy[0, 0, :2].min() == pytest.approx(1.0 / (2.0 + 5.0 * gap))


def test_where_all_actions_are_disputed_it_is_falcon(rng):
    tables = {"c": np.concatenate([rng.random((5, 1, 3)), np.eye(3)[:, None]])}
    ada, falcon = (with_class(kind, tables, 20.0, offline=True) for kind in (AdaCB, FALCON))
    ada.radius = with_class(AdaCB, tables, 20.0, 1e9, offline=True).radius
    for _ in range(20):
        np.testing.assert_allclose(ada.policy("c"), falcon.policy("c"), rtol=1e-12)
        action, reward = int(rng.integers(3)), rng.random()
        taught(ada, "c", action, reward)
        taught(falcon, "c", action, reward)


def test_regret_is_within_the_price_of_the_candidates_and_zero_where_there_is_one(rng):
    contexts = tuple(range(6))
    tables = {c: rng.random((12, 1, 4)) for c in contexts}
    truth = {c: tables[c][3, 0] for c in contexts}
    agent, certain = with_class(AdaCB, tables, offline=True), 0
    for played in rounds(agent, truth, contexts, 300, rng):
        true, decision = truth[played.context], agent.decide(played.context)
        alive, guess, p = agent.candidates(played.context)[0], decision.model.rewards[0], played.policy
        assert alive[true.argmax()]
        regret = true.max() - p @ true
        if alive.sum() == 1:
            certain += 1
            assert regret == 0.0
            continue
        price = (alive.sum() * (1.0 + p.max()) - 2.0) / decision.gamma
        assert regret <= price + 0.25 * decision.gamma * p @ (true - guess) ** 2 + 1e-9
    assert certain > 100
