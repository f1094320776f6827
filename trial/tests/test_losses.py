"""What a trial has lost at most: judged from its log, as a ceiling judges the same episodes."""

import json

import numpy as np
import pytest

import omg_cmdp as omg
from omg_trial.desk import Desk
from omg_trial.export import live_log
from omg_trial.log.database import Database
from omg_trial.replay import replay
from omg_trial.trial_file import EXAMPLE, Trial
from omg_trial.watching.losses import LossWatch, losses, watch
from omg_trial.watching.overview import overview
from omg_trial.watching.process import Process
from trial.tests.test_watching import Scene
from trial.tests.trials import Clock


def begun():
    clock = Clock()
    desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"), clock=clock)
    return desk, clock, Process(clock)


def played(desk, person, action=None, first=0):
    """Play an episode to its end, and return its policy and its path."""
    trial = desk.trial
    opened = json.loads(desk.call("open", {"person": person, "context": trial.labels[0]}).text)
    state, states, actions, rewards = trial.states[first], [first], [], []
    for step in range(trial.space.horizon):
        more = {} if action is None else {"action": action}
        told = json.loads(
            desk.call("decide", {"episode": opened["episode"], "step": step, "state": state, **more}).text
        )
        state = trial.states[step % 2]
        outcome = {"reward": float(step % 2), "next_state": state}
        desk.call("report", {"episode": opened["episode"], "step": step, **outcome})
        states.append(step % 2)
        actions.append(trial.actions.index(told["action"]))
        rewards.append(float(step % 2))
    policy = np.array(desk.state.episodes[opened["episode"]].policy)
    desk.call("close", {"episode": opened["episode"]})
    return policy, omg.Trajectory(context=trial.labels[0], states=states, actions=actions, rewards=rewards)


def test_a_trial_is_judged_as_its_episodes_are():
    desk, clock, process = begun()
    rewards, dynamics = desk.trial.oracles()
    ceiling = omg.RegretCeiling(desk.trial.agent(), reward_oracle=rewards, dynamics_oracle=dynamics)
    for number in range(6):
        policy, path = played(desk, f"p{number}")
        ceiling.add(path.context, policy, path)
        if number == 3:
            clock.forward(days=8)
    found = losses(watch(desk, process))
    assert found.total == pytest.approx(ceiling.total)
    assert found.week == pytest.approx(ceiling.episodes[4:].sum())
    assert overview(watch(desk, process))["lost"].startswith("With 95% confidence the 6 closed episodes lost")


def test_who_withdraws_was_never_there_and_other_actions_count_in_full():
    desk, _, process = begun()
    for number in range(3):
        played(desk, f"p{number}")
    before = losses(watch(desk, process))
    desk.call("withdraw", {"person": "p1"})
    losses(watch(desk, process))  # begins to read again
    after = losses(watch(desk, process))
    assert (before.episodes, after.episodes) == (3, 2)
    replayed = LossWatch(desk.trial)
    found = replay(desk.trial, map(replayed.follow, desk.store.read()))
    assert replayed.conclude(found.state) == after
    [rare] = [desk.trial.actions[-1]]
    played(desk, "p9", action=rare)
    judged = losses(watch(desk, process))
    assert judged.episodes == 3
    assert judged.total <= after.total + desk.trial.space.horizon


def test_an_episode_that_began_in_an_impossible_state_stops_nothing():
    """An app may say any state: no model has such an episode, and so all of it may have been lost."""
    desk, _, process = begun()
    for number, first in enumerate((0, 1, 0)):
        played(desk, f"p{number}", first=first)
    assert not desk.trial.space.start[1]
    found = losses(watch(desk, process))
    assert found.episodes == 3
    assert found.total > desk.trial.space.horizon
    assert overview(watch(desk, process))["lost"].startswith("With 95% confidence the 3 closed episodes lost")
    watched = LossWatch(desk.trial)
    assert watched.conclude(replay(desk.trial, map(watched.follow, desk.store.read())).state) == found
    assert len(live_log(desk.trial, desk.store.read())) == 2


def test_where_nothing_can_be_said_the_page_says_why():
    scene = Scene()
    scene.day()
    told = losses(watch(scene.desk, scene.process))
    assert "cannot be bounded" in told.text()
    assert told.total == float("inf")
    assert LossWatch(scene.desk.trial).read == 0


def test_an_episode_that_an_older_view_does_not_know_is_judged_by_the_next():
    """The checks look while the page does: an episode may be over before the first of the two has looked."""
    desk, _, process = begun()
    older = watch(desk, process)
    played(desk, "p1")
    newer = watch(desk, process)
    assert [losses(view).episodes for view in (older, newer, newer)] == [0, 1, 1]
