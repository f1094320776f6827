"""Advice against its definitions: what is played, what is best, what comes next and by how much, and how sure."""

import json

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.random_mdps import by_step
from library.tests.runs.worlds import AGENTS, HORIZON, LABELS, SIZE, Own, make_run
from omg_cmdp import oracles
from omg_cmdp.agents import Agent, Decision, Greedy, Mixture
from omg_cmdp.runs.advice import Advice, advise


@pytest.fixture(scope="module", params=list(AGENTS))
def agent(request):
    run = make_run(request.param)
    run.advance(10)
    return run.agent, AGENTS[request.param][0][1]


def test_advice_is_what_it_says(agent):
    agent, context = agent
    advice, model = advise(agent, context), agent.model(context)
    decision = agent.decide(context)
    np.testing.assert_array_equal(advice.policy, decision.policy)
    np.testing.assert_array_equal(advice.best, agent.best_policy(context).argmax(axis=2))
    np.testing.assert_allclose(advice.visits, omg.occupancy_measure(model, decision.policy).sum(axis=2), atol=1e-15)
    kernel, rewards = by_step(model)
    values = np.zeros((HORIZON + 1, SIZE["states"]))
    for h in reversed(range(HORIZON)):
        action_values = rewards[h] + kernel[h] @ values[h + 1]
        values[h] = action_values.max(axis=1)
        ordered = np.sort(action_values, axis=1)
        np.testing.assert_allclose(advice.lead[h], ordered[:, -1] - ordered[:, -2], atol=1e-12)
    assert (advice.best != advice.runner_up).all()
    assert ((advice.sure >= 0.0) & (advice.sure <= 1.0)).all()


def test_asking_for_advice_changes_nothing(agent):
    agent, context = agent
    before = agent.state()
    first, second = (advise(agent, context, seed=3).record() for _ in range(2))
    assert first == second
    after = agent.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def two_models(weights=(1, 1), **ranges):
    """Return an agent that holds `weights` hypotheses of each kind: in the first, action 0 pays .8, else action 1."""
    functions = np.repeat([[[0.8, 0.3]], [[0.2, 0.7]]], weights, axis=0)
    rewards = oracles.FiniteRewards({"a": functions}, horizon=1)
    dynamics = oracles.KnownDynamics(lambda _: np.ones((1, 2, 1)), horizon=1)
    return Greedy(omg.Space(states=1, actions=2, horizon=1), rewards, dynamics, **ranges)


@pytest.mark.parametrize("weights", [(1, 1), (3, 1), (1, 9)])
def test_an_agent_is_as_sure_as_the_hypotheses_that_agree(weights):
    agreeing = max(weights) / sum(weights)
    advice = advise(two_models(weights), "a")
    assert advice.best.item() == (0 if weights[0] >= weights[1] else 1)
    assert advice.sure.item() == pytest.approx(agreeing, abs=4.0 * np.sqrt(agreeing * (1.0 - agreeing) / 100))


def test_a_lead_is_in_the_units_of_the_rewards():
    plain, scaled = (advise(two_models((3, 1), reward_range=each), "a") for each in ((0.0, 1.0), (-5.0, 15.0)))
    first, second = two_models((3, 1)).model("a").rewards[0]
    assert plain.lead.item() == pytest.approx(first - second)
    assert scaled.lead.item() == pytest.approx(20.0 * plain.lead.item())


def test_who_knows_the_truth_is_sure():
    world = Own()
    agent = omg.agents.Informed(world.space, world.mdp)
    assert (advise(agent, "a").sure == 1.0).all()


def test_only_states_with_a_choice_are_advised_on():
    world = Own(admissible=[[True, False], [True, True], [True, True]])
    advice = advise(omg.agents.Informed(world.space, world.mdp), "a")
    assert advice.states.tolist() == [1, 2]
    chosen = advise(omg.agents.Informed(world.space, world.mdp), "a", steps=[2, 0], states=[2])
    np.testing.assert_array_equal(chosen.policy, advice.policy[[2, 0]][:, [1]])
    np.testing.assert_array_equal(chosen.lead, advice.lead[[2, 0]][:, [1]])
    with pytest.raises(ValueError, match="`states` must list at least one number, each a state with two admissible"):
        advise(omg.agents.Informed(world.space, world.mdp), "a", states=[0])


def test_the_runner_up_is_admissible_though_nothing_is_worth_anything():
    space = omg.Space(states=1, actions=3, horizon=1, admissible=[[False, True, True]])
    nothing = space.mdp(transitions=np.ones((1, 3, 1)), rewards=np.zeros((1, 3)))
    advice = advise(omg.agents.Informed(space, lambda _: nothing), "a")
    assert (advice.best.item(), advice.runner_up.item(), advice.lead.item()) == (1, 2, 0.0)


def test_where_there_is_nothing_to_choose_there_is_no_advice():
    sizes = {"states": 2, "actions": 1, "horizon": 2}
    agent = omg.OMG(omg.Space(**sizes), oracles.CountRewards(**sizes), oracles.CountDynamics(**sizes))
    assert advise(agent, None).table().empty


class Blind(Agent):
    """An agent without a model, or with one and a mixture of policies."""

    def __init__(self, space, model=None):
        self.space, self.known = space, model
        policies = np.random.default_rng(5).dirichlet([1.0, 4.0], (2, HORIZON, SIZE["states"]))
        self.mixture = Mixture(policies, np.array([0.75, 0.25]))

    def policy(self, context):
        return self.mixture.policies[0]

    def decide(self, context):
        return Decision(policy=self.policy(context), mixture=self.mixture if self.known else None, model=self.known)

    def update(self, trajectory):
        pass


def test_without_a_model_the_likely_action_is_the_best_and_nothing_is_said_of_its_lead():
    advice = advise(Blind(Own().space), "a")
    np.testing.assert_array_equal(advice.best, advice.policy.argmax(axis=2))
    np.testing.assert_array_equal(advice.runner_up, advice.policy.argmin(axis=2))
    assert (advice.lead, advice.sure, advice.visits) == (None, None, None)
    assert advice.table()[["lead", "sure", "visits"]].isna().all(axis=None)


def test_of_a_mixture_the_policy_is_as_good_as_all_of_it():
    world = Own()
    agent = Blind(world.space, world.mdp("a"))
    values = [omg.policy_value(world.mdp("a"), policy) for policy in agent.mixture.policies]
    played = advise(agent, "a").policy
    assert omg.policy_value(world.mdp("a"), played) == pytest.approx(agent.mixture.probabilities @ values, abs=1e-12)


def test_large_models_are_not_drawn(monkeypatch):
    world = Own()
    monkeypatch.setattr("omg_cmdp.runs.advice.MOST_DRAWN", 9 * HORIZON * 3 * 2 * 3)
    assert advise(omg.agents.Informed(world.space, world.mdp), "a").sure is None


@pytest.mark.parametrize("context", LABELS)
def test_a_record_is_plain_data_and_comes_back(context):
    world = Own()
    advice = advise(omg.agents.Informed(world.space, world.mdp), context)
    record = json.loads(json.dumps(advice.record()))
    again = Advice.of_record(record)
    assert again.context == context
    for name in ("steps", "states", "best", "runner_up"):
        np.testing.assert_array_equal(getattr(again, name), getattr(advice, name))
    for name in ("policy", "lead", "visits", "sure"):
        np.testing.assert_allclose(getattr(again, name), getattr(advice, name), atol=5e-7)
    assert again.record() == record


def test_a_table_has_names_where_they_are_given():
    world = Own()
    advice = advise(omg.agents.Informed(world.space, world.mdp), "a")
    table = advice.table("xyz", ["wait", "act"])
    assert table["state"].tolist() == list("xyz") * HORIZON
    assert set(table["action"]) <= {"wait", "act"}
    assert (table["action"] != table["runner_up"]).all()
    assert table["step"].tolist() == [0] * 3 + [1] * 3 + [2] * 3
    with pytest.raises(ValueError, match=r"`state_names` must name all of 0\.\.2, got 2 names"):
        advice.table("xy")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": [3]}, r"`steps` must list .* below the horizon, got \[3\]"),
        ({"steps": []}, "`steps` must list at least one number"),
        ({"steps": [True]}, "`steps` must list"),
        ({"steps": [1.0]}, "`steps` must list"),
        ({"steps": np.zeros((1, 2), dtype=int)}, "`steps` must list"),
        ({"states": 1}, "`states` must be a list, got int"),
        ({"seed": -1}, "`seed` must be an integer of at least 0, got -1"),
        ({"agent": None}, "`agent` must be"),
    ],
)
def test_what_cannot_be_advised_on_is_refused(given, message):
    world = Own()
    call = {"agent": omg.agents.Informed(world.space, world.mdp), "context": "a", **given}
    with pytest.raises(ValueError, match=message):
        advise(**call)
