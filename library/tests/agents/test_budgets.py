"""Agents with budgets: what their policies cost in their models, and what budgets that do not bind change."""

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.agents import EpsilonGreedy, Greedy, Informed, PosteriorSampling
from omg_cmdp.agents.caution import _at_worst
from omg_cmdp.checks import check_agent
from omg_cmdp.contexts import keyed
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


SAFE = np.tile(np.eye(3)[0], (4, 3, 1))
TOTAL = {"budgets": None, "total_budget": [5.0], "episodes": 5}
PAIRS = [
    ({}, {"budgets": [1.3]}),
    ({}, {"costs": np.ones((1, 3, 3))}),
    ({}, {"costs": None, "budgets": None}),
    ({}, {"cautious": True}),
    ({"cautious": True}, {"cautious": True, "safe_policy": SAFE}),
    ({"cautious": True}, {"cautious": True, "delta": 0.1}),
    (TOTAL, TOTAL | {"total_budget": [6.0]}),
    (TOTAL, {"budgets": [5.0], "episodes": 5}),
]


@pytest.mark.parametrize(("own", "other"), PAIRS, ids=str)
def test_a_state_of_an_agent_with_other_budgets_is_refused(own, other, seed):
    world = Reminders(seed)
    agent = made(omg.OMG, world, gamma=9.0, **own)
    agent.load_state(made(omg.OMG, world, gamma=9.0, **own).state())
    with pytest.raises(ValueError, match="`state` must"):
        agent.load_state(made(omg.OMG, world, gamma=9.0, **other).state())


def test_a_state_of_costs_learned_in_another_range_is_refused(seed):
    one, other = (made(Greedy, Reminders(seed), costs=cost_oracle(), cost_range=(0.0, most)) for most in (1.0, 2.0))
    with pytest.raises(ValueError, match="`state` must"):
        one.load_state(other.state())


def test_an_agent_with_budgets_is_loaded_from_its_file_alone(seed, tmp_path):
    world = Reminders(seed)
    agent = made(omg.OMG, world)
    trained(agent, world)
    agent.save(tmp_path / "agent")
    again = omg.load(tmp_path / "agent")
    assert again.policy(0).tobytes() == agent.policy(0).tobytes()


def cost_oracle(**more):
    return omg.oracles.CountRewards(**SIZE, contexts=(0, 1), **more)


CONTRACTS = {
    "adaptive": lambda world: made(omg.OMG, world),
    "a barrier": lambda world: made(omg.OMG, world, gamma=30.0),
    "greedy": lambda world: made(Greedy, world),
    "posterior sampling": lambda world: made(PosteriorSampling, world),
    "epsilon-greedy": lambda world: made(EpsilonGreedy, world),
    "learned costs": lambda world: made(omg.OMG, world, costs=[cost_oracle()], cost_range=(-1.0, 2.0)),
    "greedy with learned costs": lambda world: made(Greedy, world, costs=cost_oracle()),
    "a total": lambda world: made(omg.OMG, world, budgets=None, total_budget=[20.0], episodes=10),
    "cautious": lambda world: made(omg.OMG, world, gamma=30.0, cautious=True),
    "cautious with learned costs": lambda world: made(omg.OMG, world, costs=cost_oracle(), cautious=True),
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_agents_with_budgets_keep_the_contract(name, seed):
    check_agent(CONTRACTS[name](Reminders(seed)), contexts=[0, 1])


@pytest.mark.parametrize("name", ["learned costs", "a total", "cautious with learned costs"])
def test_an_agent_is_loaded_with_what_it_knows_of_costs(name, seed, tmp_path):
    world = Reminders(seed)
    agent = CONTRACTS[name](world)
    trained(agent, world)
    agent.save(tmp_path / "agent")
    again = omg.load(tmp_path / "agent")
    for each in (agent, again):
        trained(each, world, 3)
    assert again.policy(0).tobytes() == agent.policy(0).tobytes()


def test_learned_costs_come_near_the_true_ones(seed):
    world = Reminders(seed)
    agent = made(omg.OMG, world, costs=cost_oracle())
    trained(agent, world, 150)
    occupancy = world.truth(0).occupancy(agent.policy(0))
    assert agent.limits(0).charged(occupancy) == pytest.approx(world.truth(0).limits.charged(occupancy), abs=0.1)


def test_costs_are_paid_as_the_table_says(seed, rng):
    world = Reminders(seed)
    episode = world.sample(0, np.full((4, 3, 3), 1.0 / 3.0), rng)
    assert np.array_equal(episode.costs[0], world.costs[0, episode.states[:-1], episode.actions])


def test_an_agent_that_learns_costs_must_be_told_them(seed):
    agent, steps = made(Greedy, Reminders(seed), costs=cost_oracle()), {"states": [0, 1], "actions": [0]}
    before = agent.policy(0)
    for costs in (None, [[0.5], [0.5]], [1.5]):
        with pytest.raises(ValueError, match="costs"):
            agent.update(omg.Trajectory(context=0, **steps, rewards=[0.5], costs=costs))
    assert np.array_equal(agent.policy(0), before)


@pytest.mark.parametrize("order", ["sorted", "mixed"])
def test_a_total_is_never_exceeded_whatever_happens(order, seed):
    """The first action costs nothing, so that there is always a way to stop."""
    world, total = Reminders(seed), 30.0
    agent = made(omg.OMG, world, gamma=1e6, budgets=None, total_budget=total, episodes=60)
    contexts = [0] * 30 + [1] * 30 if order == "sorted" else [0, 1] * 30
    spent = []
    order = omg.adversaries.Sequence(contexts)
    omg.simulate(world, order, agent, 60, observe=lambda seen: spent.append(seen.played.costs.sum()))
    assert agent.purse.left == pytest.approx(total - sum(spent))
    assert agent.purse.left >= 0.0
    assert sum(spent) >= 0.75 * total  # and it is used


def test_prices_of_a_total_rise_when_too_much_is_spent(seed):
    world = Reminders(seed)
    agent = made(omg.OMG, world, budgets=None, total_budget=100.0, episodes=100)
    dear = omg.Trajectory(context=0, states=[0] * 5, actions=[2] * 4, rewards=[0.5] * 4, costs=[5.0] * 4)
    agent.update(dear)
    first = agent.purse.prices[0]
    agent.update(dear)
    assert 0.0 < first < agent.purse.prices[0] <= 4.0  # the horizon, over a budget of 1 an episode
    assert agent.purse.left == pytest.approx(60.0)
    for _ in range(3):
        agent.update(dear)
    decision = agent.decide(0)
    assert decision.status is Status.SPENT
    assert decision.costs == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("costs", [None, "learned"])
def test_a_cautious_agent_keeps_the_budget_in_the_truth(costs, seed):
    world = Reminders(seed)
    more = {} if costs is None else {"costs": cost_oracle()}
    agent = made(omg.OMG, world, cautious=True, gamma=1e4, **more)
    ledger = trained(agent, world, 60)
    assert ledger.column("violation").max() <= 1e-9
    assert ledger.column("cost")[-10:].mean() > 0.0


def test_the_worst_plausible_cost_bounds_that_of_the_truth(seed, rng):
    world = Reminders(seed)
    agent = made(omg.OMG, world, cautious=True)
    trained(agent, world, 40)
    model, limits, rows = agent.model(0), agent.limits(0), agent._caution._versions[0].plausible(keyed(0)).rows
    costs = np.array(np.broadcast_to(limits.costs, (1, 4, 3, 3)))
    for _ in range(5):
        policy = rng.dirichlet(np.ones(3), (4, 3))
        worst, marked = _at_worst(model, rows, costs, policy)
        in_truth, in_model = (limits.spent(omg.occupancy_measure(each, policy)) for each in (world.mdp(0), model))
        assert worst >= np.maximum(in_truth, in_model) - 1e-12
        assert limits._replace(costs=marked).spent(omg.occupancy_measure(model, policy)) == pytest.approx(worst)


def test_a_cautious_agent_says_when_nothing_is_known_to_be_safe(seed):
    world, safe = Reminders(seed, budgets=[0.01]), np.tile(np.eye(3)[0], (4, 3, 1))
    world.costs = world.costs + np.array([0.002, 0.0, 0.0])
    learned = {"costs": cost_oracle(), "cautious": True}
    assert made(omg.OMG, world, **learned).decide(0).status is Status.UNSAFE
    decision = made(omg.OMG, world, **learned, safe_policy=safe).decide(0)
    assert decision.status is Status.SAFE_POLICY
    assert np.array_equal(decision.policy, safe)


def test_a_larger_budget_is_worth_no_more_than_its_price(seed):
    """The value of the best policy is concave in the budget, and its price is the slope."""
    world = Reminders(seed)
    agents = [made(Greedy, world, budgets=[budget]) for budget in (0.6, 0.9, 1.2)]
    decisions = [agent.decide(0) for agent in agents]
    values = [omg.policy_value(each.model, each.policy) for each in decisions]
    for k in range(2):
        low, high = (0.3 * decisions[place].prices[0] for place in (k + 1, k))
        assert low - 1e-9 <= values[k + 1] - values[k] <= high + 1e-9


@pytest.mark.parametrize(
    "wrong",
    [
        {"budgets": None},
        {"total_budget": [5.0], "episodes": 5},
        {"budgets": None, "total_budget": [5.0]},
        {"budgets": None, "total_budget": [0.0], "episodes": 5},
        {"safe_policy": np.full((4, 3, 3), 1.0 / 3.0)},
        {"budgets": None, "total_budget": [5.0], "episodes": 5, "cautious": True},
        {"cost_range": (1.0, 0.0)},
    ],
)
def test_wrong_arguments_are_refused(wrong, seed):
    with pytest.raises(ValueError, match="`"):
        made(omg.OMG, Reminders(seed), **wrong)
