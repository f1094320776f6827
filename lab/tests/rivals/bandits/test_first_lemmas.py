"""The lemmas from which the regret of FALCON and of FastCB follows, as their papers state them."""

import itertools

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import one_state, rounds, still, with_class
from omg_cmdp.oracles import KnownRewards
from omg_lab.rivals import FALCON, FastCB

CONTEXTS = tuple("abcd")


@pytest.mark.parametrize("gamma", [0.5, 10.0, 1e4])
def test_falcon_solves_the_program_of_iltcb_without_solving_anything(gamma, rng):
    """E_p regret <= (A - 1)/γ and E 1/p(π(c)|c) <= A + γ·regret(π) for every policy, regrets by the fit."""
    tables = {c: rng.random((16, 1, 3)) for c in CONTEXTS}
    agent = with_class(FALCON, tables, gamma, offline=True)
    for t, _ in enumerate(rounds(agent, {c: tables[c][2, 0] for c in CONTEXTS}, CONTEXTS, 34, rng)):
        if t not in (0, 5, 33):
            continue
        decisions = [agent.decide(c) for c in CONTEXTS]
        chances = np.array([each.policy[0, 0] for each in decisions])
        gaps = np.array([each.model.rewards[0].max() - each.model.rewards[0] for each in decisions])
        assert (chances * gaps).sum(axis=1).mean() <= 2.0 / gamma + 1e-12
        for policy in itertools.product(range(3), repeat=len(CONTEXTS)):
            places = np.arange(len(CONTEXTS)), list(policy)
            assert (1.0 / chances[places]).mean() <= 3.0 + gamma * gaps[places].mean() + 1e-6


def test_fastcb_pays_in_proportion_to_the_loss_in_every_round(rng):
    """⟨p, l⟩ - min l <= (5A/γ)·⟨p, l⟩ + 7γ·Σ p·(l - l̂)²/(l + l̂) for losses l = 1 - f* and γ >= 2A."""
    for _ in range(500):
        actions = int(rng.integers(2, 7))
        gamma = 2.0 * actions * np.exp(rng.exponential(2.0))
        guess = np.clip(np.exp(-rng.choice([0.3, 1.0, 4.0]) * rng.exponential(size=actions)), 1e-4, 1.0)
        truth = rng.random(actions) if rng.random() < 0.3 else guess.copy()
        truth[rng.integers(actions)] *= rng.random() ** 3  # one is better than it looks
        space = one_state(actions)
        agent = FastCB(space, KnownRewards(1.0 - guess[None], horizon=1), still(space), gamma)
        p = agent.policy("c")[0, 0]
        error = p @ ((truth - guess) ** 2 / (truth + guess))
        assert p @ truth - truth.min() <= 5.0 * actions / gamma * (p @ truth) + 7.0 * gamma * error + 1e-12
