"""Agents with budgets: what their policies cost in their models, and what budgets that do not bind change."""

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.agents import EpsilonGreedy, Greedy, Informed, PosteriorSampling
from omg_cmdp.planning.solution import Status

SIZE = {"states": 3, "actions": 3, "horizon": 4}
KINDS = [(omg.OMG, {"gamma": each}) for each in ("adaptive", "uncertainty", "anytime", 100.0)]


class Reminders(omg.ContextualMDP):
    """Random tables in which the costly actions pay more."""

    space = omg.Space(**SIZE)
    contexts = (0, 1)

    def __init__(self, seed, budgets=(1.2,)):
        generator = np.random.default_rng(seed)
        self.transitions = generator.dirichlet(np.ones(3), (2, 3, 3))
        self.rewards = (generator.random((2, 3, 3)) + np.array([0.0, 0.3, 0.6])) / 2.0
        self.costs = generator.uniform(0.5, 1.0, (1, 3, 3)) * [0.0, 0.5, 1.0]
        self.budgets = list(budgets)

    def mdp(self, context):
        return self.space.mdp(transitions=self.transitions[context], rewards=self.rewards[context])


def made(kind, world, **more):
    counts = omg.oracles.CountRewards(**SIZE, contexts=(0, 1)), omg.oracles.CountDynamics(**SIZE, contexts=(0, 1))
    return kind.for_world(world, reward_oracle=counts[0], dynamics_oracle=counts[1], **more)


def trained(agent, world, episodes=6):
    return omg.simulate(world, omg.adversaries.Sequence([0, 1] * episodes), agent, episodes=episodes)


@pytest.mark.parametrize(("kind", "more"), [*KINDS, (Greedy, {})])
def test_plans_keep_the_budget_in_the_model(kind, more, seed):
    world = Reminders(seed)
    agent = made(kind, world, **more)
    trained(agent, world)
    for context in world.contexts:
        decision = agent.decide(context)
        assert decision.status is Status.SOLVED
        assert decision.costs <= 1.2 + 1e-9
        assert decision.prices >= 0.0


@pytest.mark.parametrize(("kind", "more"), [*KINDS, (Greedy, {}), (EpsilonGreedy, {})])
def test_a_budget_that_does_not_bind_changes_no_bit(kind, more, seed):
    free, loose = Reminders(seed), Reminders(seed, budgets=[100.0])
    free.costs = free.budgets = None
    agents = made(kind, free, **more), made(kind, loose, **more)
    for agent, world in zip(agents, (free, loose), strict=True):
        trained(agent, world)
    for context in (0, 1):
        assert np.array_equal(*(agent.policy(context) for agent in agents))


def test_the_informed_agent_has_no_regret_and_keeps_the_budget(seed):
    world = Reminders(seed)
    ledger = trained(Informed.for_world(world), world)
    assert np.abs(ledger.regret).max() <= 1e-9
    assert ledger.column("violation").max() <= 1e-9
    free = Reminders(seed)
    free.costs = free.budgets = None
    assert all(free.optimal_value(context) > world.optimal_value(context) for context in (0, 1))


def test_regret_below_zero_is_paid_by_a_violation(seed):
    world = Reminders(seed)
    agent = made(PosteriorSampling, world)
    ledger = trained(agent, world, 20)
    assert (ledger.column("violation")[ledger.regret < -1e-9] > 0.0).all()


@pytest.mark.parametrize("kind", [omg.OMG, Greedy])
def test_budgets_that_nobody_can_keep_are_a_status(kind, seed):
    world = Reminders(seed, budgets=[-1.0])
    agent = made(kind, world)
    trained(agent, world, 2)
    decision = agent.decide(0)
    assert decision.status is Status.INFEASIBLE
    assert decision.costs == pytest.approx(0.0, abs=1e-9)  # the first action costs nothing


def test_costs_and_budgets_scaled_together_change_nothing(seed):
    world, doubled = Reminders(seed), Reminders(seed, budgets=[2.4])
    doubled.costs = 2.0 * doubled.costs
    for gamma in (100.0, "adaptive"):
        one, two = (made(omg.OMG, each, gamma=gamma).decide(0) for each in (world, doubled))
        assert np.array_equal(one.policy, two.policy)
        assert np.array_equal(one.prices, 2.0 * two.prices)


@pytest.mark.parametrize("other", [{"budgets": [1.3]}, {"costs": np.ones((1, 3, 3))}, {"costs": None, "budgets": None}])
def test_a_state_of_an_agent_with_other_budgets_is_refused(other, seed):
    world = Reminders(seed)
    agent = made(Greedy, world)
    agent.load_state(made(Greedy, world).state())
    with pytest.raises(ValueError, match="`state` must"):
        agent.load_state(made(Greedy, world, **other).state())


def test_an_agent_with_budgets_is_loaded_from_its_file_alone(seed, tmp_path):
    world = Reminders(seed)
    agent = made(omg.OMG, world)
    trained(agent, world)
    agent.save(tmp_path / "agent")
    again = omg.load(tmp_path / "agent")
    assert again.policy(0).tobytes() == agent.policy(0).tobytes()
