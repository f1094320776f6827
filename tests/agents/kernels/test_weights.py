"""The compiled gains against plain numpy, and what Theorem C of docs/theory.md says of the default rule's decisions."""

import math

import numpy as np
import pytest

from omg_cmdp import OMG, oracles, policy_value
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import ExplorationRule, GainWeighted
from omg_cmdp.agents.kernels import weights as compiled
from omg_cmdp.environments import NoisyRoom
from omg_cmdp.planning.certificate import slacks
from omg_cmdp.runs import simulate
from omg_cmdp.theory.constants import most_tuples
from tests.random_mdps import by_step, random_mdp, with_tables
from tests.theory.draws import gain, promised, seen_by


def stacked(drawn):
    """Return rewards (K, H, S, A) and kernels (K, H, S, A, S)."""
    kernels, rewards = zip(*(by_step(each) for each in drawn), strict=True)
    return np.array(rewards), np.array(kernels)


@pytest.mark.parametrize("clipped", [False, True])
def test_gains_of_drawn_models(rng, clipped):
    for _ in range(30):
        plain = {"kernel": "dense", "rewards": "uniform"}  # without ties, which rounding would break
        model = random_mdp(rng, kernel_steps=True, reward_steps=True, **plain)
        sizes = {"states": model.states, "actions": model.actions, "horizon": model.horizon}
        drawn = [random_mdp(rng, **sizes, **plain, masked=False) for _ in range(4)]
        drawn = [with_tables(each, start=model.start, admissible=model.admissible) for each in drawn]
        least, most = sorted(rng.uniform(0.0, model.horizon, size=2)) if clipped else (0.0, np.inf)
        behind = np.arange(model.horizon + 1.0)
        lows, highs = np.clip(least - behind, 0.0, model.horizon - behind), np.minimum(model.horizon - behind, most)
        found = np.zeros((model.horizon, model.states, model.actions))
        compiled.add_gains(*model.raw, *stacked(drawn), lows, highs, found)
        np.testing.assert_allclose(found, gain(seen_by(model, drawn, least, most)), atol=1e-12)


class Watched(ExplorationRule):
    """A rule that notes what it was asked and what it answered."""

    def __init__(self, rule):
        self.rule, self.seen = rule, []

    def decide(self, situation):
        decision = self.rule.decide(situation)
        self.seen.append((situation, self.rule.gains(situation), drawn_by(self.rule, situation), decision))
        return decision


def test_decisions_are_the_plans_of_their_own_weights(seed):
    """m = ½·√(q̂v) + m₀; with x = q̂z/m the draws promise at most Σ √(q̂v) + m₀·Σ x + Σ ½√(q̂v)·(x - 1)²/x more."""
    world, watched = NoisyRoom(seed=seed), Watched(GainWeighted(floor=1e-3, seed=seed))
    sizes = {"states": world.space.states, "actions": world.space.actions, "horizon": world.space.horizon}
    agent = OMG(world.space, oracles.CountRewards(**sizes), oracles.CountDynamics(**sizes), watched)
    simulate(world, IID(world.contexts), agent, 20, seed=seed)
    assert len(watched.seen) >= 20
    for situation, v, drawn, decision in watched.seen:
        model, held = situation.model, decision.occupancy > 0.0
        floor = 1e-3 / math.sqrt(most_tuples(world.space) * situation.episode)
        q, z = decision.occupancy[held], slacks(model, decision.values)[held]
        m, root = (decision.weights / decision.gamma)[held], 0.5 * np.sqrt(q * v[held])
        np.testing.assert_allclose(m, root + floor, rtol=1e-9)
        x = q * z / m
        np.testing.assert_allclose(x, 1.0, atol=0.5)
        spent = float((2.0 * root + floor * x + root * (x - 1.0) ** 2 / x).sum())
        assert promised(model, seen_by(model, drawn)) - policy_value(model, decision.policy) <= spent + 1e-9


def drawn_by(rule, situation):
    """Return the models that the rule draws."""
    generator = np.random.default_rng((rule.seed, situation.episode))
    rewards = situation.reward_oracle.draws(situation.context, rule.draws, generator)
    kernels = situation.dynamics_oracle.draws(situation.context, rule.draws, generator)
    return [
        situation.model.space.mdp(transitions=kernel, rewards=paid)
        for paid, kernel in zip(rewards, kernels, strict=True)
    ]
