"""UC³RL: the lemmas of its analysis, its regret, and the adversary that makes it linear."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.rivals.small_world import HORIZON, LABELS, Small
from omg_cmdp.adversaries import IID, WorstRegret
from omg_cmdp.mdp import occupancy_measure
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.oracles import FiniteDynamics, FiniteRewards, OfflineFiniteDynamics, OfflineFiniteRewards
from omg_lab.rivals import RMUCDD, UC3RL
from omg_lab.worlds import Decoy


@pytest.mark.parametrize("scale", [1e-4, 0.1])
def test_the_plan_is_optimistic_up_to_the_in_sample_error(scale, rng):
    """V* - Ṽ <= Σ d*·W·[(f* - f̂)²/(2β_R) + H·‖P* - P̂‖₁²/(2β_P)], in every round and context."""
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS, scale=scale, episodes=80)
    run, beta, gaps = omg.Run(world, IID(LABELS), agent), scale * math.sqrt(80), []
    for _ in range(80):
        for context in LABELS:
            model, truth = agent.model(context), world.truth(context)
            _, values = best_response(model, model.reward_steps + agent.bonus(context), bounds=agent.value_bounds)
            best_policy, best = truth.best
            squares = (truth.mdp.reward_steps - model.reward_steps) ** 2
            moved = np.abs(truth.mdp.transition_steps - model.transition_steps).sum(axis=-1) ** 2
            errors = (squares + HORIZON * moved) / (2.0 * beta)
            gaps.append(best - world.space.start @ values[0])
            weights = occupancy_measure(truth.mdp, best_policy) * agent.visits(context)
            assert gaps[-1] <= (weights * errors).sum() + 1e-9
        run.advance(1)
    assert scale > 1e-3 or max(gaps) > 0.0  # with next to no bonus it is not optimistic by itself


def test_potential_lemma(rng):
    """Σ x_t/(1 + Σ_{i<t} x_i) <= log(1 + T)/log 2 for x in [0, 1]: so much bonus is handed out, for each tuple."""
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS, scale=0.3)
    run, before, handed_out = omg.Run(world, IID(LABELS), agent), {c: agent.visits(c) for c in LABELS}, 0.0
    for _ in range(100):
        run.advance(1)
        after = {c: agent.visits(c) for c in LABELS}
        steps = np.stack([after[c] - before[c] for c in LABELS])
        assert steps.min() >= 0.0
        assert steps.max() <= 1.0 + 1e-12
        handed_out += steps / np.stack([before[c] for c in LABELS])
        before = after
    assert handed_out.max() <= math.log1p(100) / math.log(2.0)
    drawn = np.concatenate([np.ones((500, 1)), rng.random((500, 20)) ** 10, rng.random((500, 20))], axis=1)
    sums = 1.0 + np.cumsum(drawn, axis=0) - drawn
    assert (drawn / sums).sum(axis=0).max() <= math.log1p(500) / math.log(2.0)


@pytest.mark.parametrize("kind", [UC3RL, RMUCDD])
def test_regret_is_sublinear_if_contexts_are_drawn(kind):
    world = Decoy(seed=1)
    oracles = (
        OfflineFiniteRewards(world.reward_functions, horizon=4),
        OfflineFiniteDynamics(world.transition_functions, horizon=4),
    )
    agent = kind(world.space, *oracles, contexts=world.contexts, scale=(0.1, 0.0), episodes=800)
    regret = omg.simulate(world, IID(world.contexts), agent, 800).regret
    assert regret[:200].sum() > 5.0
    assert regret[400:].sum() < 0.2 * regret[:400].sum()


class Twins(omg.ContextualMDP):
    """H = 1, a safe arm of mean .5 and a risky one: .1 in context "bad"; in "good" either .1, or in truth .9."""

    space = omg.Space(states=1, actions=2, horizon=1)
    contexts = ("bad", "good")
    kernel = np.ones((1, 1, 2, 1))

    def __init__(self):
        says_bad, says_good = [[0.5, 0.1]], [[0.5, 0.9]]
        self.rewards = {"bad": [says_bad, says_bad], "good": [says_bad, says_good]}

    def mdp(self, context):
        return self.space.mdp(transitions=self.kernel[0], rewards=self.rewards[context][1])

    def oracles(self, rewards, dynamics):
        return rewards(self.rewards, horizon=1), dynamics(lambda context: self.kernel, horizon=1)


@pytest.mark.parametrize("kind", [UC3RL, RMUCDD])
@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0, 10.0])
def test_an_adversary_makes_the_regret_linear_whatever_the_bonus(scale, kind):
    """Why contexts must be drawn: in `Twins` an adversary takes .4 in every round, and teaches nothing.

    The first function is the fit until the risky arm is tried on "good". The fit says the same of both contexts, hence
    so do the counts, which grow whether or not a context is shown, and both would play alike. While that is the safe
    arm, "good" is shown: .4 lost, nothing learned. As soon as it is the risky arm, "bad" is: .4 lost, nothing learned.
    """
    world = Twins()
    offline = world.oracles(OfflineFiniteRewards, OfflineFiniteDynamics)
    agent = kind(world.space, *offline, contexts=world.contexts, scale=(scale, 0.0))
    regret = omg.simulate(world, WorstRegret(world.contexts), agent, 400).regret
    np.testing.assert_allclose(regret, 0.4)


@pytest.mark.parametrize("adversary", [WorstRegret, IID])
def test_where_that_adversary_meets_omg_it_takes_little(adversary):
    """OMG plays both arms with some probability, and a context that it is shown for its regret teaches it."""
    world = Twins()
    online = world.oracles(FiniteRewards, FiniteDynamics)
    for gamma in ("adaptive", lambda t: 10.0 * math.sqrt(t)):
        agent = omg.OMG(world.space, *online, gamma)
        assert omg.simulate(world, adversary(world.contexts), agent, 400).regret.sum() < 10.0


def test_in_the_same_world_drawn_contexts_do_no_harm():
    world = Twins()
    offline = world.oracles(OfflineFiniteRewards, OfflineFiniteDynamics)
    agent = UC3RL(world.space, *offline, contexts=world.contexts, scale=(0.3, 0.0))
    assert omg.simulate(world, IID(world.contexts), agent, 400).regret.sum() < 10.0
