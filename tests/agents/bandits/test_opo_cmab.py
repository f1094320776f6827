"""OPO-CMAB: exponential weights in every context, and both inequalities that its bonuses live by."""

import math

import numpy as np
import pytest

from omg_cmdp.agents import OPOCMAB
from tests.agents.bandits.games import one_state, rounds, with_class

CONTEXTS = ("a", "b", "never")


def test_policies_are_exponential_weights_on_all_fits_and_bonuses(rng):
    tables = {c: rng.random((16, 1, 4)) for c in CONTEXTS}
    agent = with_class(OPOCMAB, tables, lambda t: 2.0 / math.sqrt(t), contexts=CONTEXTS, scale=0.3, offline=True)
    gains, visits = ({c: start * np.ones(4) for c in CONTEXTS} for start in (0.0, 1.0))
    for t, _ in enumerate(rounds(agent, {c: tables[c][3, 0] for c in CONTEXTS}, CONTEXTS[:2], 80, rng), start=1):
        for c in CONTEXTS:
            weights = np.exp(2.0 / math.sqrt(t) * (gains[c] - gains[c].max()))
            policy = agent.policy(c)[0, 0]
            np.testing.assert_allclose(policy, weights / weights.sum(), rtol=1e-9)
            np.testing.assert_allclose(agent.visits(c)[0], visits[c])
            bonus = np.minimum(1.0, 0.3 * math.sqrt(t) / (2.0 * visits[c]))
            np.testing.assert_allclose(agent.bonus(c)[0], bonus)
            gains[c] += agent.reward_oracle.predict(c)[0] + bonus
            visits[c] += policy


@pytest.mark.parametrize("eta", [0.02, 0.3])
def test_regret_against_hopeful_rewards_is_that_of_exponential_weights(eta, rng):
    """max Σ g - Σ ⟨π, g⟩ <= (log A)/η + η·T/2 and Σ π/W <= 2A·log(1 + T), in every context."""
    tables, episodes = {c: rng.random((16, 1, 4)) for c in CONTEXTS}, 150
    agent = with_class(OPOCMAB, tables, eta, contexts=CONTEXTS, scale=1.0, offline=True)
    sums, earned, hope = ({c: np.zeros(size) for c in CONTEXTS} for size in (4, 1, 1))
    for _ in rounds(agent, {c: tables[c][3, 0] for c in CONTEXTS}, CONTEXTS[:2], episodes, rng):
        for c in CONTEXTS:
            policy, gains = agent.policy(c)[0, 0], agent.reward_oracle.predict(c)[0] + agent.bonus(c)[0]
            sums[c] += gains
            earned[c] += policy @ gains
            hope[c] += policy @ (1.0 / agent.visits(c)[0])
    for c in CONTEXTS:
        assert sums[c].max() - earned[c][0] <= math.log(4.0) / eta + eta * episodes / 2.0
        assert hope[c][0] <= 8.0 * math.log1p(episodes)


def test_it_begins_uniform_among_admissible_actions():
    space = one_state(3, 2, start=[0.5, 0.5], admissible=[[True, True, False], [True, True, True]])
    agent = with_class(OPOCMAB, {"c": np.full((1, 2, 3), 0.2)}, contexts=["c"], space=space)
    np.testing.assert_allclose(agent.policy("c")[0], [[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]])


def test_what_is_refused():
    with pytest.raises(ValueError, match="`eta` must be a positive"):
        with_class(OPOCMAB, {"c": np.zeros((1, 1, 2))}, 0.0, contexts=["c"])
    with pytest.raises(ValueError, match="`scale` must be a positive"):
        with_class(OPOCMAB, {"c": np.zeros((1, 1, 2))}, contexts=["c"], scale=-1.0)
