"""Every agent of the room learns what each of two contexts wants, and keeps them apart."""

import numpy as np
import pytest

from omg_cmdp import ContextualMDP, Space, TabularMDP, adversaries, oracles, simulate
from omg_lab.rivals import MVP, RLSVI, UCBVIBF, VIDS, PerContext, RegularisedIDS

SIZES = {"states": 2, "actions": 2, "horizon": 2}
CONTEXTS = ["left", "right"]
STEP = 0.4 * SIZES["horizon"]
"""What is lost in an episode, on average over contexts, by an agent that cannot tell them apart."""


class TwoMinds(ContextualMDP):
    """What earns .9 in one context earns .1 in the other, in every state."""

    space = Space(**SIZES)

    def mdp(self, context):
        rewards = [[0.9, 0.1]] * 2 if context == "left" else [[0.1, 0.9]] * 2
        return TabularMDP(transitions=np.full((2, 2, 2), 0.5), rewards=rewards, horizon=2)


def with_oracles(kind, *more):
    def make():
        counts = (each(**SIZES, contexts=CONTEXTS) for each in (oracles.CountRewards, oracles.CountDynamics))
        return kind(TwoMinds.space, *counts, *more)

    return make


AGENTS = {
    "VIDS": with_oracles(VIDS),
    "regularised IDS": with_oracles(RegularisedIDS, 0.3),
    "RLSVI": lambda: RLSVI(TwoMinds.space, PerContext(), scale=0.003),
    "MVP": lambda: MVP(TwoMinds.space, PerContext(), scale=0.003),
    "UCBVI-BF": lambda: UCBVIBF(TwoMinds.space, PerContext(), scale=0.01),
}


@pytest.mark.parametrize("name", AGENTS)
def test_regret_stops_growing(name, seed):
    ledger = simulate(TwoMinds(), adversaries.Sequence(CONTEXTS), AGENTS[name](), episodes=400, seed=seed)
    assert ledger.regret[-100:].mean() < 0.05 * STEP
    assert ledger.regret[:50].sum() > 0.0


def test_with_the_constants_of_the_theory_little_is_learned_in_short_runs():
    """Why constants are tuned: with scale 1, RLSVI and UCBVI-BF lose more than half of what a uniform policy does."""
    for agent in (RLSVI(TwoMinds.space, PerContext()), UCBVIBF(TwoMinds.space, PerContext())):
        ledger = simulate(TwoMinds(), adversaries.Sequence(CONTEXTS), agent, episodes=200)
        assert ledger.regret.mean() > 0.5 * STEP
