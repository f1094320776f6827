"""Costs outside of simulations: `info["cost"]`, logs and their files, estimates of what policies cost, and advice."""

import gymnasium
import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.agents.test_budgets import Reminders, cost_oracle, made, trained

SIZES = {"states": 3, "actions": 2, "horizon": 3}
"""One state more than the environment has: that of ended episodes."""


class Messages(gymnasium.Env):
    """The second action pays the context, and costs 2 in state 0 and 1 in state 1."""

    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)
    told = True

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.pays, self.state = options["context"], 0
        return 0, {}

    def step(self, action):
        cost, self.state = float(action * (2 - self.state)), int(action)
        info = {"cost": cost} if self.told else {}
        return self.state, self.pays * action, False, False, info


def counted(**more):
    oracles = (kind(**SIZES, contexts=(0.2, 0.9)) for kind in (omg.oracles.CountRewards, omg.oracles.CountDynamics))
    return omg.OMG(omg.environments.gymnasium_space(Messages(), horizon=3), *oracles, **more)


def paid(log):
    return [(each.actions * (2 - each.states[:-1])).tolist() for each in log.episodes]


def test_costs_of_an_environment_are_logged_and_learned():
    learned = omg.oracles.CountRewards(**SIZES)
    agent = counted(costs=learned, cost_range=(0.0, 2.0), budgets=[1.5])
    log = omg.play(Messages(), agent, [0.2, 0.9] * 30)
    assert log.costs[0].tolist() == paid(log)
    assert agent.cost_oracles[0].predict(None)[0, 1] > 0.7  # of 2, scaled to [0, 1]
    assert agent.decide(0.9).costs <= 1.5 + 1e-9


def test_an_environment_that_says_nothing_of_costs_has_none():
    env = Messages()
    env.told = False
    assert omg.play(env, counted(), [0.2, 0.9]).costs is None


@pytest.mark.parametrize("cost", ["much", np.inf])
def test_a_cost_that_is_no_number_is_refused(cost):
    env = Messages()
    env.step = lambda action: (0, 0.0, False, False, {"cost": cost})
    with pytest.raises(ValueError, match=r'info\["cost"\]'):
        omg.play(env, counted(), [0.2])


def test_files_keep_costs_to_the_bit(tmp_path, rng):
    episodes = [
        omg.Episode(context="c", states=[0, 1, 1], actions=[0, 1], rewards=[0.0, 1.0], costs=rng.normal(size=(2, 2)))
        for _ in range(4)
    ]
    log = omg.logs.Log(omg.Space(states=2, actions=2, horizon=2), episodes)
    again = omg.logs.read_log(log.write(tmp_path / "log.jsonl"), log.space)
    assert np.array_equal(again.costs, log.costs)


def test_a_table_says_what_steps_cost():
    log = omg.play(Messages(), counted(), [0.2, 0.9])
    frame = log.table().rename(columns={"cost_0": "burden"})
    again = omg.logs.read_table(frame, space=log.space, cost="burden")
    assert np.array_equal(again.costs, log.costs)
    assert omg.logs.read_table(frame, space=log.space).costs is None


def test_what_a_policy_costs_is_estimated_as_what_it_earns_is(seed):
    world = Reminders(seed)
    log = omg.logs.Log(world.space, [world.sample(0, np.full((4, 3, 3), 1 / 3), rng) for rng in streams(400)])
    cheap = np.tile([0.8, 0.1, 0.1], (4, 3, 1))
    estimate = omg.logs.improvement(log.of_costs(), lambda context: cheap)
    low, high = estimate.interval(0.99)
    (truth,) = world.truth(0).limits.charged(omg.occupancy_measure(world.mdp(0), cheap))
    (logged,) = world.truth(0).limits.charged(omg.occupancy_measure(world.mdp(0), np.full((4, 3, 3), 1 / 3)))
    assert low <= truth - logged <= high < 0.0
    with pytest.raises(ValueError, match="`kind`"):
        log.of_costs(1)


def streams(count):
    return map(np.random.default_rng, np.random.SeedSequence(5).spawn(count))


def test_advice_has_the_price_of_the_budget_in_units_of_reward(seed):
    world = Reminders(seed)
    agent = made(omg.agents.Greedy, world)
    trained(agent, world)
    advice, (price,) = omg.advise(agent, 0), agent.decide(0).prices
    assert advice.prices == pytest.approx([price])
    assert price > 0.0
    assert f"one unit more of the budget would be worth {price:.2g} in rewards" in repr(advice)
    assert omg.advise(made(omg.agents.Greedy, world, costs=None, budgets=None), 0).prices is None
    assert "one unit" in repr(omg.advise(made(omg.OMG, world, costs=cost_oracle(), budgets=[3.0]), 0))
    # No policy keeps the budget where each of four steps costs a half: there prices only prove that.
    assert omg.advise(made(omg.OMG, world, costs=cost_oracle(), budgets=[1.2]), 0).prices is None


def test_the_ledger_says_what_was_spent(seed):
    world = Reminders(seed)
    ledger = trained(made(omg.agents.EpsilonGreedy, world), world, 5)
    assert "Policies cost" in str(ledger)
    assert (ledger.column("cost") - ledger.column("budget") <= ledger.column("violation")).all()


def test_the_ledger_says_if_the_world_declares_no_budgets(seed):
    world, free = Reminders(seed), Reminders(seed)
    free.costs = free.budgets = None
    ledger = trained(made(omg.agents.Greedy, world), free, 3)
    assert "The world declares no budgets" in str(ledger)
    assert np.isnan(ledger.column("cost")).all()
    assert "declares no budgets" not in str(trained(made(omg.agents.Greedy, free), free, 3))
