"""Budgets of an episode: plans keep them beside the floor, and what was planned is shown."""

import datetime
import json

import numpy as np
import pytest

from omg_cmdp import Trajectory, occupancy_measure
from omg_cmdp.documents import FileError
from omg_trial.decisions import make_plan
from omg_trial.desk import Desk
from omg_trial.export.decisions import decisions, dictionary
from omg_trial.log.database import Database
from omg_trial.trial_file import EXAMPLE
from omg_trial.trial_file.explain import explain_trial
from omg_trial.trial_file.trial import Trial
from omg_trial.watching.course import budgets
from omg_trial.watching.view import Process, TrialView

BUDGET = "\n[budgets.messages]\nmost = 0.7\ncosts = { reminder = 1.0 }\n"
CONTEXT = '"alone"'


def cost(trial, agent, policy):
    """Return what a policy costs in the model, the floor being a part of the policy."""
    rewards, dynamics = agent.reward_oracle, agent.dynamics_oracle
    tables = (each.oracle.predict(trial.context(CONTEXT)) for each in (dynamics, rewards))
    mdp = trial.space.mdp(**dict(zip(("transitions", "rewards"), tables, strict=True)))
    return (occupancy_measure(mdp, policy) * trial.budgets.costs[:, None]).sum(axis=(1, 2, 3))


@pytest.mark.parametrize("most", [0.45, 0.7, 1.2])
def test_a_plan_keeps_the_budget_with_the_floor_in_it(most):
    trial = Trial.parse(EXAMPLE + BUDGET.replace("0.7", str(most)))
    agent = trial.agent()
    rng = np.random.default_rng(0)
    for _ in range(40):
        actions = rng.integers(2, size=2)
        agent.update(Trajectory(context="alone", states=[0, 1, 1], actions=actions, rewards=actions.astype(float)))
    chosen = make_plan(trial, agent, CONTEXT)
    assert chosen.policy.min() >= 0.2 - 1e-12
    assert cost(trial, agent, chosen.policy)[0] == pytest.approx(most, abs=1e-3)  # reminders pay, so that all is spent
    assert cost(trial, agent, chosen.policy)[0] <= most + 1e-9


def test_a_budget_that_does_not_bind_changes_nothing():
    """All reminders of an episode cost 2: no plan needs more."""
    free, wide = (Trial.parse(text) for text in (EXAMPLE, EXAMPLE + BUDGET.replace("0.7", "2.5")))
    plans = [make_plan(trial, trial.agent(), CONTEXT).policy for trial in (free, wide)]
    np.testing.assert_allclose(*plans, atol=1e-6)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (BUDGET.replace("0.7", "0.4"), "the floor and the cheapest actions may cost 0.4 in an episode"),
        (BUDGET.replace("reminder", "remind"), "there is no 'remind'; did you mean 'reminder'"),
        (BUDGET.replace("0.7", "-1"), "budgets.messages.most"),
        ("\n[budgets.messages]\nmost = 1.0\n", "budgets.messages.costs"),
    ],
)
def test_a_budget_that_no_plan_can_keep_is_refused_at_its_line(budget, message):
    with pytest.raises(FileError, match=message) as caught:
        Trial.parse(EXAMPLE + budget)
    assert "line" in str(caught.value)


def test_the_file_is_explained():
    told = explain_trial(Trial.parse(EXAMPLE + BUDGET))
    assert any("budgets.messages.most = 0.7. The expected cost of an episode, floor included." in each for each in told)
    assert any("budgets.messages.costs = reminder 1." in each for each in told)
    assert any("may cost 1 messages" in each for each in told)  # fixed probabilities of one half, twice
    assert not any("messages" in each for each in explain_trial(Trial.parse(EXAMPLE)))


def test_export_and_page_show_what_was_planned_beside_the_budget():
    trial = Trial.parse(EXAMPLE + BUDGET)
    desk = Desk(trial, Database(":memory:"))
    for number in range(5):
        episode = json.loads(desk.call("open", {"person": f"p{number}", "context": "alone"}).text)["episode"]
        for step in range(2):
            desk.call("decide", {"episode": episode, "step": step, "state": "took it"})
    table = decisions(trial, desk.store.read())
    expected = table["expected_messages"].to_numpy().reshape(5, 2)
    np.testing.assert_allclose(expected, table["probability_reminder"].to_numpy().reshape(5, 2))
    assert "expected messages, by all probabilities; an episode may have 0.7" in dictionary(trial, 0)
    now = datetime.datetime.now(datetime.UTC)
    view = TrialView.of(trial, desk.state, now, Process(desk.clock))
    (shown,) = budgets(view)
    assert shown["planned"] == pytest.approx(np.sum(expected, axis=1).mean())
    assert (shown["most"], shown["episodes"]) == (0.7, 5)
    assert budgets(TrialView.of(Trial.parse(EXAMPLE), desk.state, now, Process(desk.clock))) == []
