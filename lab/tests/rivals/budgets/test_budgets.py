"""Rivals within budgets: what each of them rests on."""

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.mdp.budgets import checked_budgets
from omg_cmdp.mdp.occupancy import flow
from omg_lab.rivals import Clipped, LagrangianGreedy, OptCMDP, OptPess, OptPrimalDual, PerContext
from omg_lab.rivals.budgets.clipped import clip
from omg_lab.worlds import Maintenance, Reminders, SideEffects

WORLDS = (Maintenance, Reminders, SideEffects)
each_world = pytest.mark.parametrize("kind", WORLDS, ids=lambda kind: kind.__name__)


def known(world):
    """Return the truth as oracles."""
    horizon = world.space.horizon
    return {
        "reward_oracle": omg.oracles.KnownRewards(lambda context: world.mdp(context).rewards, horizon=horizon),
        "dynamics_oracle": omg.oracles.KnownDynamics(lambda context: world.mdp(context).transitions, horizon=horizon),
    }


def taught(world, agent, episodes, seed=0):
    """Teach an agent episodes of uniform play."""
    rng = np.random.default_rng(seed)
    policy = omg.agents.Uniform(world.space).policy(0)
    for number in range(episodes):
        context = world.contexts[number % len(world.contexts)]
        played = world.sample(context, policy, rng)
        agent.update(
            omg.Trajectory(context=context, states=played.states, actions=played.actions, rewards=played.rewards)
        )
    return agent


@each_world
def test_clipping_keeps_the_budget_and_loses_to_the_plan(kind, seed):
    world = kind(seed=seed)
    agent = Clipped.for_world(world, **known(world))
    lost = []
    for context in world.contexts:
        truth = world.truth(context)
        policy = agent.policy(context)
        assert (truth.limits.charged(truth.occupancy(policy)) <= world.budgets + 1e-9).all()
        lost.append(truth.regret(policy))
    assert min(lost) >= -1e-9
    assert max(lost) > 0.05


def test_clipping_changes_no_bit_of_a_policy_that_fits(seed):
    world = Reminders(seed=seed, budget=100.0)
    mdp = world.mdp(0)
    policy, _ = omg.optimal_policy(mdp)
    np.testing.assert_array_equal(clip(mdp, checked_budgets(mdp, world.costs(0), [100.0]), policy), policy)
    idle = clip(mdp, checked_budgets(mdp, world.costs(0), [0.0]), policy)
    assert flow(mdp, idle)[0][..., 1:].sum() == pytest.approx(0.0, abs=1e-9)


def test_lagrangian_prices_follow_what_episodes_have_cost(seed):
    world = Reminders(seed=seed)
    agent = LagrangianGreedy.for_world(world, **known(world), step=0.25)
    price = 0.0
    for actions in ([2] * 7, [1] * 7, [0] * 7, [0] * 7):
        assert agent.decide(0).prices == pytest.approx([price])
        states = np.zeros(8, dtype=int)
        agent.update(omg.Trajectory(context=0, states=states, actions=actions, rewards=np.zeros(7)))
        scale = agent.limits(0).scales[0]  # prices move in the scale of the costs
        price = max(0.0, price + 0.25 * (sum(actions) - 2.0) / scale**2)
    assert agent.decide(1).prices == pytest.approx([0.0]), "another context has prices of its own"


def test_lagrangian_greedy_spends_the_budget_on_average(seed):
    world = Reminders(seed=seed, context_count=1)
    agent = LagrangianGreedy.for_world(world, **known(world), step=0.02)
    ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=600).table()
    assert ledger["cost"].iloc[200:].mean() == pytest.approx(2.0, abs=0.3)


@each_world
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_opt_cmdp_is_optimistic(kind, scale, seed):
    """Its program is worth at least V*, and the best policy of the truth is feasible in it."""
    world = kind(seed=seed)
    agent = taught(world, OptCMDP(world.space, PerContext(), scale=scale, costs=world.costs, budgets=world.budgets), 80)
    for context in world.contexts:
        decision, truth = agent.decide(context), world.truth(context)
        bonus = agent.bonus(agent.tally(context).counts.sum(axis=2))
        occupancy, _ = flow(decision.model, decision.policy)
        assert (occupancy * (decision.model.rewards + bonus)).sum() >= truth.best[1]
        own, costs = flow(decision.model, truth.best[0])[0], world.costs(context)
        largest = costs.max(axis=(1, 2))
        assert ((own * (costs - bonus * largest[:, None, None])[:, None]).sum(axis=(1, 2, 3)) <= world.budgets).all()


@each_world
def test_opt_pess_never_passes_a_budget_and_begins_with_what_is_cheapest(kind, seed):
    world = kind(seed=seed)
    agent = OptPess.for_world(world, scale=0.3)
    assert (agent.policy(world.contexts[0])[..., 0] == 1.0).all()
    ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=40).table()
    assert (ledger["violation"] == 0.0).all()
    sure = taught(world, OptPess.for_world(world, scale=0.0003), 4000)
    assert sum(world.truth(context).regret(sure.policy(context)) for context in world.contexts) < 0.5


def test_a_step_of_the_primal_dual_rival_is_that_of_the_formula():
    """One step, one state: logits are η times optimistic rewards, less what the next price charges."""
    space = omg.Space(states=1, actions=2, horizon=1)
    options = {"costs": [[[0.0, 1.0]]], "budgets": [0.2], "scale": 1e-9, "policy_step": 0.5, "price_step": 0.1}
    agent = OptPrimalDual(space, PerContext(), **options)
    assert agent.policy("a") == pytest.approx(0.5)
    for action, reward in ((0, 0.0), (1, 1.0)):
        agent.update(omg.Trajectory(context="a", states=[0, 0], actions=[action], rewards=[reward]))
    # Before the first update of action 1 its bonus makes it worth 1 and free, at most; then it is worth 1 and costs 1.
    first = np.exp(0.5 * np.array([0.0, 1.0]))
    spent = first[1] / first.sum()
    price = max(0.0, 0.1 * (0.0 - 0.2))
    logits = 0.5 * np.array([0.0, 1.0]) + 0.5 * np.array([0.0, 1.0 - price])
    assert agent.policy("a")[0, 0] == pytest.approx(np.exp(logits) / np.exp(logits).sum(), abs=1e-6)
    assert agent.decide("a").prices == pytest.approx([0.1 * (spent - 0.2)], abs=1e-6)


@pytest.mark.parametrize("kind", [Clipped, LagrangianGreedy, OptCMDP, OptPess, OptPrimalDual])
def test_a_world_without_budgets_is_refused(kind):
    from omg_lab.worlds import Decoy

    with pytest.raises(ValueError, match=f"`budgets` must be given to {kind.__name__}"):
        kind.for_world(Decoy())
