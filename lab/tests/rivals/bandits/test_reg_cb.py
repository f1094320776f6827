"""RegCB: bounds that hold while the truth is plausible, and what it becomes with counts."""

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import one_state, rounds, still, taught, with_class
from omg_cmdp import oracles
from omg_lab.rivals import RegCB
from omg_lab.rivals.bandits.plausible import plausible

CONTEXTS = ("a", "b", "c")


@pytest.mark.parametrize("optimistic", [True, False])
def test_regret_is_within_the_widths_while_the_truth_is_plausible(optimistic, rng):
    tables = {c: rng.random((16, 1, 4)) for c in CONTEXTS}
    truth = {c: tables[c][5, 0] for c in CONTEXTS}
    agent, checked = with_class(RegCB, tables, 3.0, optimistic=optimistic), 0
    for played in rounds(agent, truth, CONTEXTS, 150, rng):
        seen = plausible(agent.reward_oracle, played.context, 3.0, agent.space.admissible)
        true = truth[played.context]
        losses = agent.reward_oracle.forecasters.class_losses
        if len(losses) and losses[5] > losses.min() + 3.0:
            continue
        checked += 1
        regrets = true.max() - true[played.policy > 0.0]
        widths = (seen.highs - seen.lows)[0]
        assert (seen.highs[0] >= true - 1e-12).all()
        if optimistic:
            assert np.count_nonzero(played.policy) == 1
            assert seen.highs.max() >= true.max() - 1e-12
            assert regrets[0] <= widths[played.policy > 0.0][0] + 1e-12
        else:
            np.testing.assert_allclose(played.policy[seen.survivors[0]], 1.0 / seen.survivors.sum())
            assert seen.survivors[0, true.argmax()]
            assert regrets.max() <= 2.0 * widths[seen.survivors[0]].max() + 1e-12
    assert checked > 100


def test_with_counts_the_optimistic_one_is_an_upper_confidence_bound(rng):
    space = one_state(5)
    agent = RegCB(space, oracles.CountRewards(states=1, actions=5, horizon=1), still(space), 0.05)
    for _ in range(60):
        oracle = agent.reward_oracle
        bound = oracle.predict("c") + np.sqrt(0.2 * oracle.uncertainty("c"))
        action = int(agent.policy("c")[0, 0].argmax())
        assert action == int(np.minimum(bound, 1.0)[0].argmax())
        taught(agent, "c", action, float(rng.random() < 0.2 * action))


def test_a_wide_set_eliminates_nobody_and_a_narrow_one_all_but_the_leader(rng):
    tables = {"c": rng.random((9, 1, 3))}
    tables["c"][:3, 0] = np.eye(3)
    for radius, shares in ((1e6, [1 / 3] * 3), (1e-9, [0.0, 1.0, 0.0])):
        agent = with_class(RegCB, tables, radius, optimistic=False)
        for _ in range(4):
            taught(agent, "c", 1, 1.0)
            taught(agent, "c", 0, 0.0)
        np.testing.assert_allclose(agent.policy("c")[0, 0], shares)


def test_what_is_refused():
    with pytest.raises(ValueError, match="`radius` must be a positive"):
        with_class(RegCB, {"c": np.zeros((1, 1, 2))}, -1.0)
    with pytest.raises(ValueError, match="`optimistic` must be a bool"):
        with_class(RegCB, {"c": np.zeros((1, 1, 2))}, optimistic="no")
