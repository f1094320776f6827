"""People: enrolment, arms, consent, their own clocks, availability, weekly budgets, pauses, publishing by hand."""

import collections
import datetime
import itertools
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from omg_trial.cli import app
from omg_trial.client import Client, RefusedError
from omg_trial.contract import OutsideConsent, Refusal
from omg_trial.contract.calls import Decide
from omg_trial.decisions import decide_step, draw_arm
from omg_trial.desk import Desk
from omg_trial.export import decisions, live_log
from omg_trial.learning import model_digest
from omg_trial.people.budgets import budget_bounds, keep_within
from omg_trial.people.participants import WeekAccount, week_of
from omg_trial.replay import replay
from omg_trial.rules import apply_rules
from omg_trial.tokens import Tokens
from omg_trial.trial_file import Trial
from omg_trial.trial_file.between import Limits
from omg_trial.verify import verify
from omg_trial.watching.incidents import tick
from omg_trial.watching.process import Process
from omg_trial.web.server import serving
from trial.tests.trials import TEXT, Clock, Trialist, desk, person, trial

FIELDS = ("number", "time", "kind", "text", "key", "request", "answer", "hash")
WINDOW = '[window]\nbegin = "08:00"\nend = "20:00"\noutside = "nothing"\n'
WEEK = WeekAccount("w")
BUDGET = TEXT.replace("fallback =", "decisions_per_week = 6\nmean_per_week = { call = 1.2 }\nfallback =", 1)


def opened(at, name="p1", **more):
    return json.loads(at.call("open", {"person": name, "context": person(1), **more}).text)


def decided(at, episode, step=0, state="took it", **more):
    return json.loads(at.call("decide", {"episode": episode, "step": step, "state": state, **more}).text)


def last(at, kind="decided"):
    return [event for event in at.store.read() if event.kind == kind][-1].body


def sound(at):
    """The log replays, and the independent verifier, which draws all arms and actions again, finds nothing."""
    assert replay(at.trial, at.store.read()).differences == []
    rows = (tuple(vars(event)[name] for name in FIELDS) for event in at.store.read())
    assert verify(rows, keys={"secret": at.store.keys.secret.encode()}).problems == []


def test_with_a_roster_a_typing_error_is_no_new_person():
    at = desk('[people]\nroster = "required"\n')
    at.call("enrol", {"person": "anna"})
    opened(at, "anna")
    for call, body in (("open", {"context": person(1)}), ("pause", {"cause": "x"})):
        with pytest.raises(Refusal) as refused:
            at.call(call, {"person": "ana", **body})
        assert refused.value.status == 404
    assert list(at.state.people) == ["anna"]
    sound(at)


def test_the_consent_and_the_end_are_days_of_the_person():
    """At 16:00 UTC it is the next day in Tokyo, and not in New York."""
    clock = Clock()
    at = desk('[people]\nroster = "required"\n', clock=clock, text=TEXT.replace("offline", "end = 2026-11-05\noffline"))
    for name, zone in (("east", "Asia/Tokyo"), ("west", "America/New_York")):
        at.call("enrol", {"person": name, "zone": zone, "consent_from": "2026-11-02", "consent_to": "2026-11-03"})
    episodes = {name: opened(at, name)["episode"] for name in ("east", "west")}
    clock.now = datetime.datetime(2026, 11, 3, 16, tzinfo=datetime.UTC)
    with pytest.raises(OutsideConsent, match="the consent ended on 2026-11-03") as refused:
        decided(at, episodes["east"])
    assert refused.value.status == 409
    decided(at, episodes["east"], action="nothing", device_time="2026-11-03T23:00:00+09:00")  # done in time
    decided(at, episodes["west"])
    at.call("report", {"episode": episodes["east"], "step": 0, "reward": 1.0})
    at.call("enrol", {"person": "west", "zone": "America/New_York", "consent_to": "2027-01-01"})
    clock.now = datetime.datetime(2026, 11, 6, 4, 59, tzinfo=datetime.UTC)
    decided(at, episodes["west"], 1)
    clock.forward(minutes=1)
    with pytest.raises(Refusal, match="the trial has ended; its last day was 2026-11-05"):
        decided(at, episodes["west"], 2)
    sound(at)


@pytest.mark.parametrize(
    ("zone", "switch"),
    [
        ("Europe/Berlin", "2026-03-29"),
        ("Europe/Berlin", "2026-10-25"),
        ("America/New_York", "2026-03-08"),
        ("America/New_York", "2026-11-01"),
    ],
)
def test_windows_and_weeks_are_of_the_persons_clock_on_the_day_it_is_changed(zone, switch):
    """The window opens at 08:00 there, a Sunday; at midnight the week begins anew, 23 or 25 hours after the last."""
    clock, day = Clock(), datetime.date.fromisoformat(switch)
    clock.now = datetime.datetime.combine(day, datetime.time(), datetime.UTC) - datetime.timedelta(days=7)
    at = desk("[actions.most_per_week]\ncall = 1\n" + WINDOW, clock=clock)
    at.call("enrol", {"person": "p1", "zone": zone})
    episode, own = opened(at)["episode"], at.state.people["p1"]
    seen = []
    for minutes in (7 * 60 + 59, 8 * 60, 19 * 60 + 59, 20 * 60):
        wall = datetime.datetime.combine(day, datetime.time(minutes // 60, minutes % 60), own.local(clock.now).tzinfo)
        clock.now = wall.astimezone(datetime.UTC)
        told = decided(at, episode, len(seen))
        seen.append("window" in ((told["fallback"] or {}).get("rules") or []))
        assert last(at)["local"].startswith(f"{switch}T{minutes // 60:02}:{minutes % 60:02}")
    assert seen == [True, False, False, True]
    monday = datetime.datetime.combine(day + datetime.timedelta(days=1), datetime.time(), own.local(clock.now).tzinfo)
    at.call("close", {"episode": episode})
    episode = opened(at)["episode"]
    for step, second in enumerate((-1, 0)):
        clock.now = monday.astimezone(datetime.UTC) + datetime.timedelta(seconds=second)
        decided(at, episode, step)
        assert len(at.state.people["p1"].accounts[-1].taken) == (5, 1)[step]
    sound(at)


CAPPED = "[people]\ncontrol = 1.0\n[actions.most_per_week]\nreminder = 2\n"


def reminders(at, episodes):
    """Decide all steps of some episodes within a minute or so, and count the reminders of each week."""
    for _ in range(episodes):
        episode = opened(at)["episode"]
        for step in range(4):
            decided(at, episode, step)
        at.call("close", {"episode": episode})
    made = [event.body for event in at.store.read() if event.kind == "decided"]
    weeks = [week_of(datetime.datetime.fromisoformat(each["local"])) for each in made if each["action"] == 1]
    return collections.Counter(weeks)


def test_a_week_that_comes_again_in_another_zone_has_had_what_it_has_had():
    """Monday in Tokyo is Sunday in Honolulu: whoever flies there and back has each week once."""
    clock = Clock()
    clock.now = datetime.datetime(2026, 11, 15, 16, tzinfo=datetime.UTC)
    at = desk(CAPPED, clock=clock)
    for zone in ("Asia/Tokyo", "Pacific/Honolulu", "Asia/Tokyo", "Pacific/Honolulu"):
        at.call("enrol", {"person": "p1", "zone": zone})
        found = reminders(at, 5)
    assert found == {"2026-W46": 2, "2026-W47": 2}
    at.snapshot()
    again = Desk(at.trial, at.store, clock=clock)
    assert again.state.people == at.state.people
    assert reminders(again, 5) == found
    sound(again)


def test_a_week_to_which_the_clock_is_set_back_has_had_what_it_has_had():
    clock = Clock()
    at = desk(CAPPED, clock=clock)
    reminders(at, 5)
    clock.forward(days=30)
    ahead = Desk(at.trial, at.store, clock=clock, correct_clock=True)
    reminders(ahead, 5)
    clock.forward(days=-30)
    back = Desk(at.trial, at.store, clock=clock, correct_clock=True)
    assert reminders(back, 5) == {"2026-W45": 2, "2026-W49": 2}
    sound(back)


def test_an_enrolment_changes_what_it_names():
    at = desk()
    at.call("enrol", {"person": "p1", "consent_from": "2026-10-01", "consent_to": "2026-11-01", "end": "2026-11-18"})
    at.call("enrol", {"person": "p1", "zone": "Asia/Tokyo"})
    with pytest.raises(OutsideConsent, match="the consent ended on 2026-11-01"):
        opened(at)
    with pytest.raises(Refusal, match="`consent_to` must not be before `consent_from`"):
        at.call("enrol", {"person": "p1", "consent_to": "2026-09-01"})
    at.call("enrol", {"person": "p1", "consent_to": None})
    own = at.state.people["p1"]
    assert (own.zone, own.consent_from, own.consent_to, own.end) == ("Asia/Tokyo", "2026-10-01", None, "2026-11-18")
    opened(at)
    sound(at)


def test_nobody_chooses_an_arm_unless_the_file_says_so():
    at = desk("[people]\ncontrol = 0.3\n")
    with pytest.raises(Refusal, match=r"`arm`: arms are drawn in this trial.* people.arms = 'given'"):
        at.call("enrol", {"person": "p1", "arm": "control"})
    at.call("enrol", {"person": "p1"})
    at.call("enrol", {"person": "p1", "arm": at.state.people["p1"].arm})


def test_the_control_group_is_drawn_and_has_the_fixed_probabilities():
    at = desk('[people]\ncontrol = 0.3\narms = "given"\n[learning]\nafter_episodes = 0\n')
    Trialist(at, seed=1, people=12).play(15)
    drawn = [draw_arm(at.inputs(), f"somebody{number}") for number in range(2000)]
    assert abs(drawn.count("control") - 600) < 5 * np.sqrt(2000 * 0.3 * 0.7)
    for record in at.state.episodes.values():
        assert (record.source == "control") == (record.arm == "control")
        for choice in record.choices.values():
            if record.arm == "control":
                np.testing.assert_allclose(choice.probabilities, [0.5, 0.3, 0.2], atol=1e-15)
    assert {at.state.people[each.person].arm for each in at.state.dataset()[0]} == {"learning"}
    table = decisions(at.trial, at.store.read())
    assert set(table["arm"]) == {"learning", "control"}
    at.call("enrol", {"person": "given", "arm": "control"})
    with pytest.raises(Refusal, match="`arm`: the person is in the arm control, for good"):
        at.call("enrol", {"person": "given", "arm": "learning"})
    sound(at)


def test_without_a_control_group_nobody_is_in_it(monkeypatch):
    """Not by the smallest of draws either: the number is below 0 with probability 0."""
    monkeypatch.setattr("omg_trial.decisions.uniform", lambda *_: 0.0)
    assert draw_arm(desk().inputs(), "p1") == "learning"


@pytest.mark.parametrize("named", [None, "nothing"])
def test_nothing_is_drawn_for_somebody_who_is_not_available(named):
    text = TEXT if named is None else TEXT.replace("fallback =", f'unavailable = "{named}"\nfallback =', 1)
    at = desk(text=text)
    episode = opened(at)["episode"]
    decided(at, episode)
    told = decided(at, episode, 1, available=False)
    assert (told["action"], told["probability"], told["available"]) == (named, None, False)
    assert (last(at)["drawn"], last(at)["probabilities"], last(at)["rules"]) == (None, None, ["unavailable"])
    assert decided(at, episode, 1, available=False)["action"] == named
    decided(at, episode, 2)
    for step in range(3):
        at.call("report", {"episode": episode, "step": step, "reward": 1.0, "next_state": "took it"})
    at.call("close", {"episode": episode})
    [example] = at.state.dataset()[0]
    assert len(example.actions) == (3 if named else 1)
    assert decisions(at.trial, at.store.read())["available"].tolist() == [True, False, True]
    # Whatever policy was in use, the action was this one: its probability is 1 to an estimator.
    [logged] = live_log(at.trial, at.store.read()).episodes
    assert [each == 1.0 for each in logged.propensities] == ([False, True, False] if named else [False])
    whole = opened(at, "p2", available=False)
    assert whole["drawn"] is None
    assert decided(at, whole["episode"])["available"] is False
    with pytest.raises(Refusal, match="`action`: is for what was drawn"):
        decided(at, whole["episode"], 1, action="call")
    sound(at)
    # An earlier version kept such a decision, without the action: its log replays.
    record = at.state.episodes[whole["episode"]]
    at.record("decided", decide_step(at.inputs(), record, Decide(step=1, state="took it", action="call")))
    sound(at)


def exact(of, wanted, account=WEEK):
    """Yield all weeks: how probable each is, the rows that were drawn from, what was closed, the actions."""
    if not wanted:
        yield 1.0, [], [], []
        return
    made = apply_rules(of, np.array(wanted[0]), 0, datetime.datetime(2026, 11, 2, 12, tzinfo=datetime.UTC), account, {})
    for action in np.flatnonzero(made.chances).tolist():
        after = account.after(action, made.chances.tolist() if made.available else None)
        for weight, rows, closed, actions in exact(of, wanted[1:], after):
            yield weight * made.chances[action], [made.chances, *rows], [made.closed, *closed], [action, *actions]


GREEDY = [[0.1, 0.1, 0.8]] * 7
SAVING = [[0.8, 0.1, 0.1]] * 3 + [[0.1, 0.1, 0.8]] * 4


@pytest.mark.parametrize("wanted", [GREEDY, SAVING])
def test_a_budget_holds_on_average_and_keeps_the_floor(wanted):
    """By enumeration of all weeks: at every time at most its part is expected, and every open action has the floor."""
    of = trial(text=BUDGET)
    weights, weeks, closed, actions = zip(*exact(of, wanted[:6]), strict=True)
    rows, calls = np.array(weeks), np.array([each.count(2) for each in actions])
    assert sum(weights) == pytest.approx(1.0)
    assert (rows[:, :, 2].cumsum(axis=1) <= 1.2 * np.arange(1, 7) / 6 + 1e-12).all()
    assert rows.min() >= 0.1 - 1e-12
    np.testing.assert_allclose(rows.sum(axis=2), 1.0, atol=1e-12)
    assert not any(itertools.chain(*closed))
    # None of it is lost: what was not wanted at first is saved.
    assert np.array(weights) @ calls == pytest.approx(1.2)
    # The file announces six decisions: in the seventh nothing is left.
    assert {each[-1] for _, _, each, _ in exact(of, wanted)} == {(2,)}


LEAST = """
[trial]
name = "least"
horizon = 7

[states]
names = ["usual", "away"]
forbidden = { away = ["call"] }

[actions]
names = ["nothing", "call", "reminder", "letter"]
decisions_per_week = 7
least_per_week = { call = 1 }

[context]
labels = ["known"]

[rewards]

[dynamics]

[exploration]
floor = 0.2

[people]
control = 1.0
"""


def test_a_least_number_that_needs_all_that_is_free_leaves_probabilities():
    """The bounds below sum to 1 but for rounding: there is nothing above them to share out."""
    for nothing in np.linspace(0.01, 0.19, 19).round(3):
        chances = {"nothing": nothing, "reminder": 0.037, "letter": 0.081}
        fixed = {**chances, "call": round(1.0 - sum(chances.values()), 3)}
        shown = ", ".join(f"{name} = {chance}" for name, chance in fixed.items())
        at = desk(text=LEAST.replace("decisions_per_week", f"fallback = {{ {shown} }}\ndecisions_per_week", 1))
        episode = json.loads(at.call("open", {"person": "p1", "context": "known"}).text)["episode"]
        for step in range(7):
            decided(at, episode, step, state="away" if step < 5 else "usual")
            assert sum(last(at)["probabilities"]) == pytest.approx(1.0, abs=1e-12)
        sound(at)


def test_bounds_are_kept_without_a_probability_below_zero(seed):
    generator = np.random.default_rng(seed)
    for _ in range(2000):
        row, lower = generator.dirichlet(np.ones(4) * 0.3), np.zeros(4)
        lower[0] = generator.choice([generator.random(), 1.0])
        kept = keep_within(row, lower, np.ones(4), np.ones(4))
        assert kept.min() >= 0.0
        assert kept.sum() == pytest.approx(1.0, abs=1e-12)
        assert (kept >= lower - 1e-12).all()


def test_an_action_that_a_least_number_raises_is_named_with_its_rule():
    limited = TEXT.replace("fallback =", "decisions_per_week = 7\nleast_per_week = { call = 2 }\nfallback =", 1)
    at = desk("[people]\ncontrol = 1.0\n", text=limited)
    told = decided(at, opened(at)["episode"])
    body = last(at)
    assert at.trial.fallback[2] < 2 / 7
    assert body["probabilities"][2] == pytest.approx(2 / 7)
    assert body["rules"] == told["fallback"]["rules"] == ["least per week"]
    sound(at)


def test_a_guard_closes_an_action_and_the_event_says_so():
    at = desk(text=BUDGET.replace("mean_per_week", "most_per_week = { call = 2 }\nmean_per_week", 1))
    episode = opened(at)["episode"]
    for step in range(2):
        decided(at, episode, step, action="call")
    told = decided(at, episode, 2)
    assert told["fallback"]["rules"][0] == "most per week"
    body = last(at)
    assert (body["closed"], body["probabilities"][2], body["available"]) == ([2], 0.0, True)
    assert min(body["probabilities"][:2]) >= 0.1
    assert decisions(at.trial, at.store.read())["closed_actions"].tolist() == ["", "", "call"]
    sound(at)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("mean_per_week = { call = 1 }", "`mean_per_week` needs `decisions_per_week`"),
        ("decisions_per_week = 20\nmost_per_week = { call = 1 }", "the floor alone makes 2 of 'call' in 20 decisions"),
        ("decisions_per_week = 7\nmost_per_week = { call = 1 }\nmean_per_week = { call = 2 }", "must be at most 1"),
        ("most_per_week = { nothing = 1, reminder = 1, call = 1 }", "must leave an action without a limit"),
        ('most_per_week = { call = 1 }\nunavailable = "call"', "'call' has a weekly limit"),
        ('paused = "sing"', "there is no 'sing'"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(keys, message):
    with pytest.raises(ValueError, match=message):
        trial(text=TEXT.replace("fallback =", f"{keys}\nfallback =", 1))


def test_a_pause_is_refused_or_answered_and_ends():
    for named in (None, "nothing"):
        text = TEXT if named is None else TEXT.replace("fallback =", f'paused = "{named}"\nfallback =', 1)
        at = desk(text=text)
        episode = opened(at)["episode"]
        at.call("pause", {"person": "p1", "cause": "she is ill"})
        opened(at, "p2")
        at.call("pause", {"cause": "the app sends wrong texts"})
        if named is None:
            with pytest.raises(Refusal, match="the trial is paused: the app sends wrong texts") as refused:
                opened(at, "p3")
            assert refused.value.status == 409
        else:
            told = decided(at, episode)
            assert (told["action"], told["probability"], told["fallback"]["rules"]) == (named, None, ["paused"])
            assert opened(at, "p3")["drawn"] is None
        decided(at, episode, 1, action="call")  # what was done without a network is kept
        at.call("resume", {"cause": "mended"})
        with pytest.raises(Refusal, match="the trial is not paused"):
            at.call("resume", {"cause": "again"})
        at.call("resume", {"person": "p1", "cause": "well again"})
        assert decided(at, episode, 2)["probability"] is not None
        at.call("stop", {"person": "p1", "cause": "harm"})
        for call, body in (("decide", {"episode": episode, "step": 3, "state": "took it"}), ("resume", None)):
            with pytest.raises(Refusal, match="is stopped"):
                at.call(call, body or {"person": "p1", "cause": "no"})
        again = Desk(at.trial, at.store, clock=Clock())
        assert again.state.people == at.state.people
        sound(at)


@pytest.mark.parametrize("whose", [{"person": "p1"}, {}])
def test_nothing_is_drawn_while_the_person_alone_or_the_trial_is_paused(whose):
    at = desk(text=TEXT.replace("fallback =", 'paused = "nothing"\nfallback =', 1))
    episode, other = opened(at)["episode"], opened(at, "p2")["episode"]
    at.call("pause", {**whose, "cause": "she is ill"})
    told = decided(at, episode)
    assert (told["action"], told["probability"], told["fallback"]["rules"]) == ("nothing", None, ["paused"])
    assert (decided(at, other)["probability"] is None) == (not whose)


def test_an_action_that_is_stopped_is_drawn_no_more():
    at = desk()
    told = [opened(at, f"p{number}") for number in range(8)]
    at.call("stop", {"action": "call", "cause": "people are annoyed"})
    for each in told:
        decided(at, each["episode"])
        row = np.array(each["policy"][0][0])
        body = last(at)
        assert (body["closed"], body["rules"]) == ([2], ["stopped action"])
        # Its share goes where the fixed probabilities would: 5 to 3.
        np.testing.assert_allclose(body["probabilities"], [*(row[:2] + row[2] * np.array([5, 3]) / 8), 0], atol=1e-15)
    at.call("pause", {"action": "reminder", "cause": "x"})
    with pytest.raises(Refusal, match="no other action without a weekly limit is left"):
        at.call("pause", {"action": "nothing", "cause": "x"})
    assert opened(at, "late")["drawn"] is None
    sound(at)


def test_an_action_that_is_taken_without_a_draw_cannot_be_stopped():
    """It would be taken all the same, at night for example: the team is told, and stops the trial if it must."""
    window = '[window]\nbegin = "08:00"\nend = "21:00"\noutside = "nothing"\n'
    for name in ("unavailable", "paused"):
        at = desk(text=TEXT.replace("[actions]", f'[actions]\n{name} = "nothing"'))
        with pytest.raises(Refusal, match="without a draw"):
            at.call("stop", {"action": "nothing", "cause": "x"})
    at = desk(window)
    for call in ("pause", "stop"):
        with pytest.raises(Refusal, match="without a draw"):
            at.call(call, {"action": "nothing", "cause": "x"})
    at.call("stop", {"action": "call", "cause": "x"})


def test_a_model_waits_until_it_is_published():
    clock = Clock()
    at = desk('[learning]\npublish = "by hand"\n', clock=clock)
    Trialist(at, seed=2).play(5)
    before = model_digest(at.agent)
    assert (at.state.version.number, at.state.waiting.number) == (0, at.state.latest)
    at.call("open", {"person": "old", "context": {"age": 95}})
    tick(lambda task: task(at), Process(clock))
    with pytest.raises(Refusal, match="`version`: version"):
        at.call("publish", {"version": 99, "cause": "x"})
    waited = at.state.waiting.time
    clock.forward(hours=1)
    told = json.loads(at.call("publish", {"version": at.state.latest, "cause": "looked at it"}).text)
    assert at.state.version.time == waited  # when it was learned: perhaps another machine runs since
    assert "support" in {each["check"] for each in told["findings"]}
    assert model_digest(at.agent) == at.state.version.model != before
    Trialist(at, seed=3).play(2)
    gone = at.state.waiting.dataset[0].person
    at.call("withdraw", {"person": gone})
    with pytest.raises(Refusal, match="has withdrawn; wait for the next model"):
        at.call("publish", {"version": at.state.waiting.number, "cause": "x"})
    again = Desk(at.trial, at.store, clock=clock)
    assert again.state.waiting == at.state.waiting
    sound(again)


def test_an_administrator_steers_by_a_command(tmp_path, monkeypatch):
    monkeypatch.delenv("OMG_TRIAL_TOKEN", raising=False)
    with serving(trial(), tmp_path / "trial.db", tmp_path / "tokens") as url:

        def steer(*arguments):
            return CliRunner().invoke(app, ["steer", *arguments, "--url", url])

        assert (steer("stop", "--cause", "x").exit_code, steer("erase").exit_code) == (2, 2)
        token = Tokens(tmp_path / "tokens").add("administrator", "me")
        monkeypatch.setenv("OMG_TRIAL_TOKEN", token)
        assert '"done": "paused"' in steer("pause", "--action", "call", "--cause", "wrong texts").output
        assert "`cause`: this field is required" in steer("pause").output
        assert "`withdraw` needs a `person`" in steer("withdraw").output
        with Client(url, token) as client:
            client.open("p+1", person(1))
            assert steer("withdraw", "--person", "p+1").exit_code == 0
            told = client._http.get("/v1/overview").json()
    assert (list(told["halted_actions"]), told["withdrawn"]) == (["call"], 1)
    done = CliRunner().invoke(app, ["steer", "learn", "--url", "http://127.0.0.1:9"])
    assert (done.exit_code, "did not answer" in done.output) == (2, True)


def test_a_table_is_enrolled_whole_and_a_decision_outside_the_consent_is_counted(tmp_path, monkeypatch):
    file, table = tmp_path / "trial.toml", tmp_path / "people.csv"
    file.write_text(TEXT + '[people]\nroster = "required"\n')
    rows = "person,zone,consent_to\nanna,Asia/Tokyo,\nben,,2020-01-01\n"
    with serving(Trial.read(file), tmp_path / "trial.db", tmp_path / "tokens") as url:
        tokens = Tokens(tmp_path / "tokens")

        def enrol(text):
            table.write_text(text)
            return CliRunner().invoke(app, ["enrol", str(file), str(table), "--url", url])

        monkeypatch.delenv("OMG_TRIAL_TOKEN", raising=False)
        assert "set OMG_TRIAL_TOKEN to one with the role app" in enrol(rows).output
        monkeypatch.setenv("OMG_TRIAL_TOKEN", tokens.add("app", "the office"))
        for wrong, message in (
            (rows + "cora,Mars,\n", "line 4: `zone`: give a time zone"),
            (rows + "anna,,\n", "line 4: the person is in another line too"),
            (rows + "cora,UTC,,\n", "line 4: there are more cells than columns"),
            ("name\nanna\n", "the column 'name' is unknown, or there twice; there are person, arm"),
            ("person,zone,zone\nanna,,UTC\n", "the column 'zone' is unknown, or there twice"),
            (
                "person;zone\nanna;UTC\n",
                "the column 'person;zone' is unknown, or there twice; separate columns by commas",
            ),
        ):
            done = enrol(wrong)
            assert (done.exit_code, message in done.output) == (2, True), done.output
        with Client(url, tokens.add("administrator", "me")) as client:
            with pytest.raises(RefusedError, match="nobody with this name was enrolled"):
                client.open("anna", person(1))
            for _ in range(2):
                assert enrol(rows).output == "2 people are enrolled.\n"
            client.decide(client.open("anna", person(1))["episode"], 0, "took it", available=False)
            with pytest.raises(RefusedError, match="the consent ended on 2020-01-01"):
                client.open("ben", person(1))
            told = client._http.get("/v1/overview").json()
    assert {each["check"]: each["severity"] for each in told["checks"]}["consent"] == "yellow"
    assert told["arms"] == {"learning": 2}


def test_floors_that_leave_nothing_are_probabilities_whatever_their_sum_is_by_rounding():
    limits = Limits(most={}, least={}, mean={0: 5.0}, decisions_per_week=5)
    for count in range(2, 60):
        row = np.full(count, 1.0 / count)
        lower, upper = budget_bounds(limits, WEEK, row, 1.0 / count)
        assert keep_within(row, lower, upper, np.arange(count) > 0).sum() == pytest.approx(1.0)


def test_a_date_that_is_taken_away_is_another_call_than_one_that_is_left_out():
    at = desk()
    at.call("enrol", {"person": "anna", "consent_to": "2026-12-01"})
    for _ in range(2):
        at.call("enrol", {"person": "anna", "zone": "Asia/Tokyo", "arm": None}, "k1")
    with pytest.raises(Refusal, match="the key was used for another call"):
        at.call("enrol", {"person": "anna", "zone": "Asia/Tokyo", "consent_to": None}, "k1")
    at.call("enrol", {"person": "anna", "consent_to": None}, "k2")
    assert at.state.people["anna"].consent_to is None
