"""The rule with an account: today's plan while nothing speaks against it, and a bound where its posterior is wrong."""

import functools
import math

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.agents.catalogue import build
from omg_cmdp.agents import GainWeighted
from omg_cmdp.contexts import keyed
from omg_cmdp.theory import bounds

PAID = {
    "left": np.array([[[0.5, 0.95, 0.1]], [[0.5, 0.1, 0.1]], [[0.5, 0.1, 0.95]]]),
    "right": np.array([[[0.5, 0.1, 0.95]], [[0.5, 0.1, 0.1]], [[0.5, 0.95, 0.1]]]),
}
"""What three functions say of three arms. The first is true; the second says that nothing beats the safe arm."""


class Tempting(omg.ContextualMDP):
    """A safe arm, and a better one in each context."""

    def __init__(self, horizon):
        self.space = omg.Space(states=1, actions=3, horizon=horizon)
        self.contexts = tuple(PAID)

    def mdp(self, context):
        return self.space.mdp(transitions=np.ones((1, 3, 1)), rewards=PAID[context][0])


class Sure(omg.oracles.FiniteRewards):
    """An oracle whose posterior is wrong with confidence: all draws are the second function, if it fits nearly best."""

    def draws_from(self, context, streams):
        functions = self.forecasters.prepare(context)
        losses = self.forecasters.losses_of(functions)
        chosen = 1 if losses[1] <= losses.min() + 1.0 else int(losses.argmin())
        return np.repeat(functions.tables[[chosen]], streams.count, axis=0)


def deceived(gamma, horizon, oracle=Sure):
    world = Tempting(horizon)
    dynamics = omg.oracles.KnownDynamics(lambda context: np.ones((1, 3, 1)), horizon=horizon)
    return world, omg.OMG(world.space, oracle(PAID.__getitem__, horizon=horizon), dynamics, gamma)


def play(world, agent, episodes):
    return omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=episodes).regret


def budget(agent, context="left"):
    return agent.account.budget(agent._situation(keyed(context)))


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_posterior_that_is_wrong_with_confidence_costs_no_more_than_the_bound(horizon):
    """The gain-weighted plan alone loses .45 a step for ever. The account fills, and the barrier finds the truth."""
    episodes = {1: 3000, 3: 2000}[horizon]
    alone = play(*deceived(GainWeighted(), horizon), 600)
    assert alone[-300:].mean() == pytest.approx(0.45 * horizon, rel=1e-3)
    world, agent = deceived("adaptive", horizon)
    regret = play(world, agent, episodes)
    assert regret[-300:].sum() < 0.1
    assert 0 < agent.account.touched < 50
    assert agent.account.risked <= budget(agent)
    error = omg.theory.errors.reward_error(
        horizon=horizon, delta=0.05, reward_regret=agent.reward_oracle.regret_bound(episodes, horizon)
    )
    most = bounds.accounted(tuples=3 * horizon, horizon=horizon, episodes=episodes, error=error)
    assert regret.sum() <= most < 3.0 * episodes * alone.mean()


def test_while_the_budget_lasts_it_is_the_gain_weighted_plan_to_the_bit():
    policies = []
    for gamma in (GainWeighted(), "adaptive"):
        world, agent = deceived(gamma, 1, omg.oracles.FiniteRewards)
        seen = []
        observed = functools.partial(lambda kept, this: kept.append(this.decision.policy), seen)
        omg.simulate(world, omg.adversaries.IID(world.contexts), agent, 60, observe=observed)
        policies.append(seen)
    np.testing.assert_array_equal(*policies)
    assert agent.account.kept
    assert agent.account.touched == 0


def test_the_account_is_saved_with_the_agent():
    """In the middle of the barrier's episodes, and before the account is kept."""
    for before in (1, 560):
        world, agent = deceived("adaptive", 1)
        play(world, agent, before)
        other = deceived("adaptive", 1)[1]
        other.load_state(agent.state())
        for each in (agent, other):
            each.update(world.sample("left", each.policy("left"), np.random.default_rng(7)))
        np.testing.assert_array_equal(agent.policy("right"), other.policy("right"))
        assert all(np.isfinite(array).all() for array in agent.state().values() if array.dtype.kind == "f")
        assert (agent.account.risked, agent.account.touched) == (other.account.risked, other.account.touched)


def test_only_actions_of_plausible_optima_are_tried_in_the_place_of_the_plan():
    """The third arm of "left" is the best in one function; once that is refuted, the barrier leaves it out."""
    world, agent = deceived("adaptive", 1)
    play(world, agent, 100)
    agent.account.risked = math.inf
    tried = agent.decide("left")
    assert tried.regulariser == "restricted"
    assert tried.certificate <= 1.0 / (16.0 * 101**2)
    assert (tried.policy > 0.0).all()
    for _ in range(30):
        played = omg.Trajectory(context="left", states=[0, 0], actions=[2], rewards=[0.0])
        agent.update(played)
    assert agent.decide("left").policy[0, 0, 2] == 0.0


@pytest.mark.parametrize("oracle", ["linear and softmax", "finite"])
def test_it_says_where_nothing_is_proven(oracle):
    contexts, agent = build("adaptive", oracle)
    agent.policy(contexts[0])
    proven = oracle == "finite"
    assert (agent.account.reason == "") is proven
