"""The statements of docs/budgets.md, each on random instances."""

import dataclasses

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.agents.purse import Purse
from omg_cmdp.mdp.budgets import best_within, checked_budgets, least_costs
from omg_cmdp.mdp.occupancy import reachable_states
from omg_cmdp.theory.budgets import priced_round

INSTANCES = 12


@dataclasses.dataclass
class Instance:
    """A truth, a model of it, budgets that bind in the model, and a plan within them."""

    truth: omg.TabularMDP
    model: omg.TabularMDP
    paid: object
    believed: object
    weights: np.ndarray
    plan: omg.planning.solution.Solution

    @property
    def prices(self):
        return self.plan.prices

    def cost(self, mdp, costs, policy):
        return costs.charged(omg.occupancy_measure(mdp, policy))


def instance(rng, *, known_dynamics=False, known_costs=False):
    states, actions, horizon = (int(rng.integers(*ends)) for ends in ((1, 5), (2, 5), (1, 6)))
    kinds = int(rng.integers(1, 3))

    def tables():
        transitions = rng.dirichlet(np.full(states, 0.5), (states, actions))
        return transitions, rng.random((states, actions))

    (rows, means), (guessed, estimates) = tables(), tables()
    truth = omg.TabularMDP(transitions=rows, rewards=means, horizon=horizon)
    model = omg.TabularMDP(transitions=rows if known_dynamics else guessed, rewards=estimates, horizon=horizon)
    costs = rng.random((kinds, states, actions)) * rng.uniform(0.5, 3.0)
    guess = costs if known_costs else np.clip(costs + rng.normal(0.0, 0.2, costs.shape), 0.0, None)
    none = checked_budgets(model, guess, np.zeros(kinds))
    uniform = np.full((horizon, states, actions), 1.0 / actions)
    spent = none.charged(omg.occupancy_measure(model, uniform))
    budgets = spent * rng.uniform(0.7, 1.1)
    believed, paid = (checked_budgets(model, each, budgets) for each in (guess, costs))
    gamma, weights = 10.0 ** rng.uniform(0.0, 3.0), rng.uniform(0.5, 2.0, (horizon, states, actions))
    plan = omg.plan(model, gamma, weights=weights, costs=guess, budgets=budgets, tolerance=1e-12)
    held = reachable_states(model)[:, :, None] & model.admissible
    return Instance(truth, model, paid, believed, np.where(held, weights / gamma, 0.0), plan)


@pytest.fixture
def instances(rng):
    def make(**known):
        found = []
        while len(found) < INSTANCES:
            made = instance(rng, **known)
            if made.plan.status.name == "SOLVED" and made.prices.any():
                found.append(made)
        return found

    return make


def any_policy(rng, mdp):
    return rng.dirichlet(np.full(mdp.actions, 0.3), (mdp.horizon, mdp.states))


def test_the_identity_holds_with_prices(instances, rng):
    """Σ m·d/q̂ = Σ m - (V̂^d - V̂^q̂) + λ·(cost of d - b)."""
    for each in instances():
        policy, m, held = any_policy(rng, each.model), each.weights, each.weights > 0.0
        d = omg.occupancy_measure(each.model, policy)
        gain = omg.policy_value(each.model, policy) - omg.policy_value(each.model, each.plan.policy)
        excess = each.prices @ (each.believed.charged(d) - each.believed.given)
        left = (m[held] * d[held] / each.plan.occupancy[held]).sum()
        assert left == pytest.approx(m.sum() - gain + excess, abs=1e-5, rel=1e-5)


@pytest.mark.parametrize("known", [(True, True), (True, False), (False, True), (False, False)])
def test_theorem_h_holds_for_any_comparator(known, instances, rng):
    for each in instances(known_dynamics=known[0], known_costs=known[1]):
        best = best_within(each.truth, each.paid).policy
        for comparator in (best, any_policy(rng, each.truth)):
            regret = omg.policy_value(each.truth, comparator) - omg.policy_value(each.truth, each.plan.policy)
            sides = (each.truth, each.paid), (each.model, each.believed)
            right = priced_round(*sides, each.prices, each.weights, each.plan.policy, comparator)
            assert regret <= right + 1e-5


def test_a_comparator_that_overspends_is_charged_for_it(instances):
    """In a model that is the truth, what the optimum without budgets gains is paid for at the prices, up to Σ m."""
    for each in instances():
        model = each.model, each.believed
        free = omg.optimal_policy(each.model)[0]
        gain = omg.policy_value(each.model, free) - omg.policy_value(each.model, each.plan.policy)
        right = priced_round(model, model, each.prices, each.weights, each.plan.policy, free)
        excess = each.prices @ (each.cost(*model, free) - each.believed.given)
        assert gain <= right + 1e-6
        assert right <= 2.0 * each.weights.sum() + excess + 1e-6


def test_with_known_dynamics_and_costs_nothing_is_exceeded_and_nothing_is_added(instances):
    for each in instances(known_dynamics=True, known_costs=True):
        best = best_within(each.truth, each.paid).policy
        cost = each.cost(each.truth, each.paid, each.plan.policy)
        assert (cost <= each.paid.given * (1.0 + 1e-9) + 1e-9).all()
        m, held, q = each.weights, each.weights > 0.0, each.plan.occupancy
        squares = ((each.truth.rewards - each.model.rewards)[None] ** 2 * q)[held] / m[held]
        right = (m[held] * (1.0 + q[held])).sum() + 0.25 * squares.sum()
        assert omg.policy_value(each.truth, best) - omg.policy_value(each.truth, each.plan.policy) <= right + 1e-6


def test_a_budget_is_exceeded_by_no_more_than_the_cost_is_misjudged(instances):
    for each in instances():
        real, believed = (
            each.cost(mdp, costs, each.plan.policy)
            for mdp, costs in ((each.truth, each.paid), (each.model, each.believed))
        )
        assert (real - each.paid.given <= np.abs(real - believed) + 1e-9).all()


def test_prices_are_bounded_by_the_slack_of_any_policy(instances, rng):
    tightest = 0.0
    for each in instances():
        cheap = best_within(each.model, each.believed._replace(limits=-np.ones_like(each.believed.limits))).policy
        for policy in (cheap, any_policy(rng, each.model)):
            slack = (each.believed.given - each.cost(each.model, each.believed, policy)).min()
            if slack > 1e-6:
                most = (each.model.horizon + each.weights.sum()) / slack
                assert each.prices.sum() <= most * (1.0 + 1e-6)
                tightest = max(tightest, each.prices.sum() / most)
    assert tightest > 0.01


def test_prices_of_a_total_lose_no_more_than_gradient_steps_do(rng):
    """Σ (λ - λ_t)·(cost_t - B/T) <= cap·G·√T for every λ up to the cap, whatever episodes cost."""
    mdp = omg.TabularMDP(transitions=np.ones((1, 2, 1)), rewards=[[0.0, 1.0]], horizon=3)
    limits = checked_budgets(mdp, [[[0.0, 1.0]]], [1.0])
    assert least_costs(mdp, limits) == 0.0
    for episodes in (10, 100, 400):
        for costs in (rng.uniform(0.0, 3.0, episodes), np.full(episodes, 3.0), np.repeat([3.0, 0.0], episodes // 2)):
            purse, share = Purse([0.5 * episodes], episodes, span=3.0), 0.5
            prices = []
            for cost in costs:
                prices.append(purse.prices[0])
                purse.charge(np.array([cost]), limits, 3)
            cap = 3.0 / share
            assert max(prices) <= cap
            for price in (0.0, cap):
                lost = ((price - np.array(prices)) * (costs - share)).sum()
                assert lost <= cap * 3.0 * np.sqrt(episodes) + 1e-9


def test_an_adversary_of_contexts_can_cost_an_eighth_of_all_episodes():
    """Half of the budget for ½ now: if later contexts pay 1 it was too much, if they pay nothing it was too little."""
    episodes = 100
    for spent in np.linspace(0.0, episodes / 2, 21):
        later_pays = episodes / 2 - (0.5 * spent + episodes / 2 - spent)
        later_is_worthless = 0.5 * episodes / 2 - 0.5 * spent
        assert max(later_pays, later_is_worthless) >= episodes / 8 - 1e-9
