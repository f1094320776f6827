"""Calls and their answers: once each, exact, and nothing changes on a refusal."""

import dataclasses
import itertools
import json

import numpy as np
import pytest

from omg_trial import learning
from omg_trial.contract import OlderLog, Refusal
from omg_trial.desk import Desk
from omg_trial.learning import Trainer, model_digest
from omg_trial.log.database import Database, StoreError
from omg_trial.log.events import FIRST_HASH, BrokenChainError, canonical
from omg_trial.replay import replay
from omg_trial.state import State
from trial.tests.trials import TEXT, Clock, Trialist, desk, digest, person, trial, without

LIMITS = """
[actions.most_per_week]
call = 1
"""


def opened(at, name="p1", number=1):
    return json.loads(at.call("open", {"person": name, "context": person(number)}).text)


def test_an_answer_is_made_once():
    """The same key and body get the same bytes, and nothing happens twice; another body is refused."""
    at = desk()
    body = {"person": "p1", "context": person(1)}
    first = at.call("open", body, "key")
    events = at.state.number
    assert at.call("open", body, "key") == first
    assert at.state.number == events
    mark = at.store.keys.mark("key", "another")
    at.call("learn", {}, "another")
    assert at.store.answered([mark])[mark].kind == "learning"
    with pytest.raises(Refusal, match="used for another call") as refused:
        at.call("open", {"person": "p2", "context": person(1)}, "key")
    assert refused.value.status == 422
    assert at.state.number == events + 1


def test_a_caller_who_has_seen_an_event_that_the_log_does_not_have_is_refused():
    """Or another event under its number: then an older backup was restored, and nothing may be done on it."""
    at = desk()
    asked = at.prepare("open", {"person": "p1", "context": person(1)}, "key")
    head, other = at.chain.head, desk().chain.head
    for seen in (f"{at.state.number + 1}:{at.state.hash}", other):
        [refused] = at.answer([asked._replace(seen=seen)])
        assert isinstance(refused, OlderLog)
        assert (refused.status, refused.head, at.chain.head) == (409, head, head)
    [answer] = at.answer([asked._replace(seen=head)])
    assert answer.mark == at.chain.head


def test_a_step_is_decided_once_under_any_key():
    at = desk()
    episode = opened(at)["episode"]
    answers = [
        json.loads(at.call("decide", {"episode": episode, "step": 0, "state": "took it"}).text) for _ in range(5)
    ]
    assert len({(answer["action"], answer["probability"], answer["version"]) for answer in answers}) == 1
    assert sum(event.kind == "decided" for event in at.store.read()) == 1
    with pytest.raises(Refusal, match="step 0 was decided for the state took it"):
        at.call("decide", {"episode": episode, "step": 0, "state": "missed it"})


def test_a_draw_depends_on_nothing_but_the_trial_person_episode_and_step():
    """An episode's table of drawn actions says before what each decision will be, whoever else decides meanwhile."""
    at = desk()
    one, other = opened(at, "p1", 1), opened(at, "p2", 2)
    for step in range(4):
        for answer in (other, one)[:: 1 if step % 2 else -1]:
            state = ("took it", "missed it")[step % 2]
            told = json.loads(at.call("decide", {"episode": answer["episode"], "step": step, "state": state}).text)
            row = answer["policy"][step][answer["states"].index(state)]
            assert told["action"] == answer["drawn"][step][answer["states"].index(state)]
            assert told["probability"] == row[answer["actions"].index(told["action"])]


def test_drawn_actions_have_their_probabilities():
    """Over many people, an action is drawn as often as its logged probability says: within five standard errors."""
    at = desk()
    table = [opened(at, f"p{number}", 1) for number in range(400)]
    rows = np.array([answer["policy"][0][0] for answer in table])
    drawn = np.array([answer["actions"].index(answer["drawn"][0][0]) for answer in table])
    for action in range(3):
        expected, spread = rows[:, action].sum(), np.sqrt((rows[:, action] * (1 - rows[:, action])).sum())
        assert abs((drawn == action).sum() - expected) < 5 * spread


def test_the_floor_is_kept_exactly():
    at = desk()
    policy = np.array(opened(at)["policy"])
    assert policy.min() >= 0.1 - 1e-15
    np.testing.assert_allclose(policy.sum(axis=2), 1.0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "body", "status", "message"),
    [
        ("open", {"person": "p1"}, 422, "`context`: this field is required"),
        ("open", {"person": "", "context": {"age": 3}}, 422, "`person`: use up to 100 letters"),
        ("open", {"person": "p\n1", "context": {"age": 3}}, 422, "`person`: use up to 100 letters"),
        ("open", {"person": "p1", "context": {"weight": 3}}, 422, "`context.weight`: there is no such field"),
        ("open", {"person": "p1", "context": {}}, 422, "at least one of the columns age, lives"),
        (
            "open",
            {"person": "p1", "context": {"age": float("inf")}},
            422,
            "`context.age`: give a finite number",
        ),
        ("open", {"person": "p1", "context": "alone"}, 422, "`context`: Input should be a valid dictionary"),
        ("open", {"person": "p1", "context": person(1), "more": 1}, 422, "`more`: there is no such field"),
        ("decide", {"episode": 999, "step": 0, "state": "took it"}, 404, "there is no episode 999"),
        ("decide", {"episode": 3, "step": 4, "state": "took it"}, 422, "`step`: Input should be less than 4"),
        ("decide", {"episode": 3, "step": True, "state": "took it"}, 422, "`step`: Input should be a valid integer"),
        (
            "decide",
            {"episode": 3, "step": 0, "state": "dead"},
            422,
            "`state`: Input should be 'took it' or",
        ),
        (
            "decide",
            {"episode": 3, "step": 0, "state": "took it", "action": "x"},
            422,
            "`action`: Input should be",
        ),
        ("report", {"episode": 3, "step": 0}, 422, "give `reward`, `next_state` or both"),
        ("report", {"episode": 3, "step": 0, "reward": 1.5}, 422, "`reward`: Input should be less than or equal to 1"),
        ("report", {"episode": 3, "step": 0, "reward": float("nan")}, 422, "`reward`: Input should be a finite number"),
        (
            "report",
            {"episode": 3, "step": 0, "reward": 1.0, "revision": -1},
            422,
            "`revision`: Input should be",
        ),
        ("close", {"episode": 3, "cause": "bored"}, 422, "`cause`: Input should be 'finished'"),
        ("withdraw", {"person": "nobody"}, 404, "there is no such person"),
        ("roll back", {"version": 7}, 409, "`version`: only versions before"),
        ("dance", {}, 404, "there are open, decide"),
    ],
)
def test_a_wrong_call_is_refused_and_changes_nothing(name, body, status, message):
    at = desk()
    assert opened(at, "p9")["episode"] == 3
    before, number = digest(at.state), at.state.number
    with pytest.raises(Refusal, match=message) as refused:
        at.call(name, body)
    assert refused.value.status == status
    assert (digest(at.state), at.state.number) == (before, number)


@pytest.mark.slow
def test_outcomes_in_any_order_come_to_the_same():
    """Late, repeated and corrected reports, in every permutation: the same state."""
    reports = [
        {"step": 0, "reward": 0.0},
        {"step": 0, "next_state": "missed it"},
        {"step": 0, "reward": 1.0, "revision": 2},
        {"step": 1, "reward": 1.0, "next_state": "took it"},
        {"step": 0, "reward": 0.5, "revision": 1},
    ]
    digests = set()
    for order in itertools.permutations(reports):
        at = desk(store=Database(":memory:"))
        at.state.secret = "the same"
        episode = opened(at)["episode"]
        for step, state in enumerate(("took it", "missed it")):
            at.call("decide", {"episode": episode, "step": step, "state": state})
        half = len(order) // 2
        for report in (*order[:half], *order[:1]):
            at.call("report", {"episode": episode, **report})
        at.call("close", {"episode": episode})
        for report in (*order[half:], *order[-1:]):
            at.call("report", {"episode": episode, **report})
        [example] = at.state.dataset()[0]
        assert example.states == (0, 1, 0)
        assert example.rewards == (1.0, 1.0)
        digests.add(digest(at.state))
    assert len(digests) == 1


def test_states_that_contradict_each_other_end_what_is_learned():
    at = desk()
    episode = opened(at)["episode"]
    for step in range(3):
        at.call("decide", {"episode": episode, "step": step, "state": "took it"})
    at.call("report", {"episode": episode, "step": 0, "reward": 1.0})
    at.call("report", {"episode": episode, "step": 1, "reward": 1.0, "next_state": "missed it"})
    at.call("close", {"episode": episode, "cause": "dropped out"})
    [example] = at.state.dataset()[0]
    assert example.states == (0, 0)


def test_a_cap_is_kept_and_its_probabilities_are_exact():
    """After one call in a week no more calls; what is logged sums to 1 and is what was drawn from."""
    clock = Clock()
    at = desk(LIMITS, clock=clock)
    taken = []
    for number in range(12):
        episode = opened(at)["episode"]
        told = [
            json.loads(at.call("decide", {"episode": episode, "step": h, "state": "took it"}).text) for h in range(4)
        ]
        at.call("close", {"episode": episode})
        taken += [(clock.now.isocalendar().week, answer["action"]) for answer in told]
        clock.forward(hours=20)
        assert all(0 < answer["probability"] <= 1 for answer in told)
        assert opened_drawn_is_none(at, f"q{number}")
    for week in {week for week, _ in taken}:
        assert taken.count((week, "call")) <= 1
    rows = [event.body["probabilities"] for event in at.store.read() if event.kind == "decided"]
    np.testing.assert_allclose(np.sum(rows, axis=1), 1.0, atol=1e-12)
    assert any(event.body["rules"] == ["most per week"] for event in json_events(at))


def opened_drawn_is_none(at, name):
    return opened(at, name)["drawn"] is None


def json_events(at):
    return [event for event in at.store.read() if event.kind == "decided"]


def test_outside_the_window_the_action_is_the_files():
    clock = Clock()
    at = desk('[window]\nbegin = "08:00"\nend = "20:00"\noutside = "nothing"\n', clock=clock)
    episode = opened(at)["episode"]
    clock.forward(hours=14)  # 00:00 in Berlin
    told = json.loads(at.call("decide", {"episode": episode, "step": 0, "state": "took it"}).text)
    assert (told["action"], told["probability"], told["fallback"]["rules"]) == ("nothing", 1.0, ["window"])


def test_without_a_plan_the_ladder_goes_down(monkeypatch):
    """The last certified plan for that context, or the trial's fixed probabilities; always with its cause."""
    at = desk()
    before = opened(at, "p1", 1)
    at.call("close", {"episode": before["episode"]})
    monkeypatch.setattr(type(at.agent), "decide", lambda *_: (_ for _ in ()).throw(ValueError("no")))
    again, fresh = opened(at, "p1", 1), opened(at, "p2", 2)
    assert (again["source"], again["policy"]) == ("last plan", before["policy"])
    assert fresh["source"] == "fixed"
    np.testing.assert_allclose(np.array(fresh["policy"]), np.broadcast_to([0.5, 0.3, 0.2], (4, 2, 3)))
    assert "no certified plan" in fresh["cause"]


def test_who_has_withdrawn_was_never_there():
    """After a withdrawal the state is, to the bit, a fold of the log without that person; so is the model."""
    at = desk()
    Trialist(at, seed=1).play(30)
    at.call("withdraw", {"person": "p3"})
    assert at.learning_due()
    at.call("learn", {})
    at.learn_here()
    alone = State(at.trial.missing_reward)
    for event in without(at.store.read(), "p3"):
        alone.apply(event)
    assert digest(alone) == digest(at.state)
    assert model_digest(Trainer(at.trial).train(alone.version.dataset)) == model_digest(at.agent)
    assert not replay(at.trial, at.store.read()).differences
    with pytest.raises(Refusal, match="withdrawn") as refused:
        opened(at, "p3")
    assert refused.value.status == 410


def test_a_roll_back_uses_the_earlier_model():
    at = desk()
    player = Trialist(at, seed=2)
    player.play(5)
    version, model = at.state.version.number, model_digest(at.agent)
    player.play(5)
    assert model_digest(at.agent) != model
    at.call("roll back", {"version": version})
    assert (at.state.version.number, model_digest(at.agent)) == (version, model)
    player.play(3)
    assert at.state.version.number > version
    assert not replay(at.trial, at.store.read()).differences


@pytest.mark.parametrize("broken", ["refused", "raises"])
def test_a_model_that_fails_its_checks_is_not_published(monkeypatch, broken):
    at = desk()
    player = Trialist(at, seed=3)
    player.play(4)
    version = at.state.version.number
    if broken == "refused":
        monkeypatch.setattr(learning, "refusal", lambda *_: "because")
    else:
        monkeypatch.setattr(learning.Trainer, "train", lambda *_: 1 / 0)
    player.play(1)
    assert at.state.version.number == version
    assert at.state.changes[-1].verdict == "refused"
    assert at.state.incidents[-1].check == "model refused"
    opened(at, "somebody")


def test_a_store_that_fails_keeps_nothing_and_a_call_may_come_again():
    """A batch is on disk wholly or not at all; the same key is then answered once."""
    store = _Failing(":memory:")
    at = desk(store=store)
    Trialist(at, seed=4).play(3)
    before = at.state.number
    batch = [
        at.prepare("open", {"person": f"x{number}", "context": person(number)}, f"key-{number}") for number in range(3)
    ]
    store.fails = True
    with pytest.raises(StoreError):
        at.answer(batch)
    store.fails = False
    answers = at.answer(batch)
    kinds = [event.kind for event in store.read(before)]
    assert kinds == ["started", "opened", "opened", "opened"]
    assert at.answer(batch) == answers


@pytest.mark.parametrize(
    ("act", "kinds"),
    [
        (lambda at: opened(at), ["started", "opened"]),
        (
            lambda at: at.record("incident", {"severity": "red", "check": "disk", "message": "x"}),
            ["started", "incident"],
        ),
        (Desk.snapshot, ["started", "snapshot"]),
    ],
)
def test_whatever_comes_first_after_a_failure_follows_a_start(act, kinds):
    """From there on the log says by which software and machine its events were computed."""
    at = desk()
    number, at.lost = at.state.number, True
    act(at)
    assert [event.kind for event in at.store.read(number)] == kinds


class _Failing(Database):
    fails = False

    def append(self, events):
        if self.fails:
            raise StoreError("the disk is full")
        super().append(events)


def test_a_desk_goes_on_from_its_log_with_a_snapshot_or_without():
    """The same state and the same next answers."""
    at = desk()
    Trialist(at, seed=5).play(20)
    at.snapshot()
    plain, fast = Database(":memory:"), Database(":memory:")
    for store in (plain, fast):
        store.keys = at.store.keys
        store.append(list(at.store.read()))
    fast.keep(at.store.snapshot())
    ends = []
    for store in (plain, fast):
        again = desk(store=store)
        Trialist(again, seed=6).play(5)
        ends.append(
            (digest(again.state), [(event.kind, event.body) for event in store.read(len(list(at.store.read())) + 1)])
        )
    assert ends[0] == ends[1]


def test_a_database_belongs_to_one_trial():
    at = desk()
    with pytest.raises(ValueError, match="the database does not belong to the trial 'adherence' as its file is now"):
        Desk(trial("[learning]\nafter_episodes = 7\n"), at.store, clock=Clock())


def test_thresholds_may_change_under_way_and_the_log_says_when():
    at = desk()
    again = Desk(trial("[watch]\nstreak = 7\n"), at.store, clock=Clock())
    assert again.state.trial == at.trial.digest == again.trial.digest
    same = Desk(again.trial, at.store, clock=Clock())
    first, second, third = (event.body["file"] for event in same.store.read() if event.kind == "started")
    assert first != second == third
    assert replay(again.trial, same.store.read()).differences == []


class Fast:
    """A clock that goes on by hours between two looks."""

    def __init__(self):
        self.hands = Clock()

    def __call__(self):
        self.hands.forward(hours=5)
        return self.hands()


def test_a_decision_is_of_the_time_that_the_log_says():
    """Also if a window ends between the call and its event."""
    at = desk('[window]\nbegin = "08:00"\nend = "20:00"\noutside = "nothing"\n', clock=Fast())
    episode = opened(at)["episode"]
    for step in range(4):
        at.call("decide", {"episode": episode, "step": step, "state": "took it"})
    assert {choice.rules for choice in at.state.episodes[episode].choices.values()} == {(), ("window",)}
    assert replay(at.trial, at.store.read()).differences == []


def test_time_never_runs_backwards_in_the_log():
    clock = Clock()
    at = desk(clock=clock)
    opened(at)
    clock.forward(days=-1)
    opened(at, "p2")
    times = [event.time for event in at.store.read()]
    assert times == sorted(times)


def test_planning_every_step_is_another_policy_only_after_a_model_is_published():
    """Until then the decisions are those of the plan that the episode opened with: its bound holds."""
    at = desk('[learning]\nafter_episodes = 0\nreplan = "step"\n')
    Trialist(at, seed=1).play(20)
    episode = opened(at, "late", 1)["episode"]
    policy = np.array(at.state.episodes[episode].policy)

    def probabilities(step):
        at.call("decide", {"episode": episode, "step": step, "state": "took it"})
        return [event for event in at.store.read() if event.kind == "decided"][-1].body["probabilities"]

    assert [probabilities(step) for step in (0, 1)] == policy[:2, 0].tolist()
    at.call("learn", {})
    at.learn_here()
    assert probabilities(2) != policy[2, 0].tolist()


@pytest.mark.parametrize("replan", ["episode", "step"])
def test_replays_are_equal_to_the_bit_and_a_change_is_found(replan):
    at = desk(f'[learning]\nreplan = "{replan}"\n{LIMITS}')
    Trialist(at, seed=7, overlapping=3).play(25)
    found = replay(at.trial, at.store.read())
    assert not found.differences
    assert digest(found.state) == digest(at.state)
    assert found.decisions > 30
    events = list(at.store.read())
    place = next(i for i, event in enumerate(events) if event.kind == "decided")
    changed = canonical({**events[place].body, "probabilities": events[place].body["probabilities"][::-1]})
    with pytest.raises(BrokenChainError, match=f"event {place + 1} was changed after it was written"):
        replay(at.trial, [*events[:place], dataclasses.replace(events[place], text=changed), *events[place + 1 :]])
    with pytest.raises(BrokenChainError, match="missing or out of order"):
        replay(at.trial, events[1:])
    before, forged = FIRST_HASH, []
    for event in events:  # by somebody who has the key file, and chains anew
        text, called = changed if event.number == place + 1 else event.text, event.request.rpartition(":")[0]
        forged.append(dataclasses.replace(event, text=text, request=called).marked(before).chained(before))
        before = forged[-1].hash
    assert f"event {place + 1} (decided): other probabilities" in replay(at.trial, forged).differences


FORBIDDEN = TEXT.replace('"missed it"]', '"missed it"]\nforbidden = { "took it" = ["call"] }', 1)


def test_a_forbidden_action_is_refused_before_it_spoils_learning():
    at = desk(text=FORBIDDEN)
    episode = opened(at)["episode"]
    with pytest.raises(Refusal, match="`action`: call is forbidden in the state took it"):
        at.call("decide", {"episode": episode, "step": 0, "state": "took it", "action": "call"})
    window = '[window]\nbegin = "08:00"\nend = "20:00"\noutside = "call"\n'
    with pytest.raises(ValueError, match="some state forbids 'call'"):
        trial(window, text=FORBIDDEN)
