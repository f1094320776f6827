"""What can be looked at over HTTP: numbers that are right, nobody's name in metrics, and texts that stay texts."""

import datetime
import json
import re
import threading

import httpx
import numpy as np
import pytest

from omg_trial import decisions
from omg_trial.learning import Lesson
from omg_trial.people.participants import week_of
from omg_trial.service import Service
from omg_trial.tokens import ROLES, Tokens
from omg_trial.watching.checks import findings
from omg_trial.watching.incidents import tick
from omg_trial.watching.losses import watch
from omg_trial.watching.overview import history, overview
from omg_trial.watching.process import Process
from omg_trial.watching.view import TrialView
from omg_trial.web.app import make_app
from trial.tests.network import ADDRESS, Wire
from trial.tests.test_watching import Scene, contradiction
from trial.tests.trials import TEXT, Clock, desk, person

HOSTILE = "<img src=x onerror=\"document.title='pwned'\">/../'; DROP TABLE events; --"


def crowd(scene, people=8, days=6, **context):
    """Let people come every day, some of whom stop early; the first has some other `context`."""
    generator = np.random.default_rng(0)
    for _ in range(days):
        for number in range(people):
            body = {"person": f"q{number}", "context": person(number) | ({} if number else context)}
            episode, state = json.loads(scene.desk.call("open", body).text)["episode"], "took it"
            for step in range(4 if number % 4 else 3):
                told = scene.decide(episode, step, state)
                helped = {"nothing": 0.3, "reminder": 0.8, "call": 0.6}[told["action"]]
                state = "took it" if generator.random() < helped else "missed it"
                scene.report(episode, step, state)
            scene.desk.call("close", {"episode": episode, "cause": "finished" if number % 4 else "dropped out"})
        scene.learn()
        scene.clock.forward(days=1)
    return scene


@pytest.fixture(scope="module")
def scene():
    made = crowd(Scene(text=TEXT.replace('"adherence"', '"<b>adherence</b>"')), lives=HOSTILE)
    contradiction(made)
    return made


@pytest.fixture(scope="module")
def service(scene):
    made = Service(scene.desk)
    yield made
    made.end()


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    made = Tokens(tmp_path_factory.mktemp("tokens") / "tokens")
    return made, {role: made.add(role, role, person="p1" if role == "phone" else None) for role in ROLES}


@pytest.fixture(scope="module")
def client(service, tokens):
    header = {"Authorization": f"Bearer {tokens[1]['analyst']}"}
    with httpx.Client(transport=Wire(make_app(service, tokens[0])), base_url=ADDRESS, headers=header) as made:
        yield made


def viewed(scene):
    return TrialView.of(scene.desk.trial, scene.desk.state, scene.clock(), scene.process)


def test_the_overview_counts_what_the_state_holds(client, scene):
    told, state = client.get("/v1/overview").json(), scene.desk.state
    decisions = [choice for record in state.episodes.values() for choice in record.choices.values()]
    assert sum(day["decisions"] for day in told["days"]) == len(decisions)
    assert np.sum([day["actions"] for day in told["days"]], axis=0).tolist() == [
        sum(choice.action == action for choice in decisions) for action in range(3)
    ]
    assert (told["people"], told["episodes"], told["event"]) == (9, len(state.episodes), state.number)
    assert [each["episode"] for each in told["under_way"]] == list(state.open)
    assert [each["version"] for each in told["versions"]] == list(range(6, 0, -1))
    assert {each["check"]: each["severity"] for each in told["checks"]}["contradictory states"] == "yellow"
    for day in told["days"][:6]:
        assert 0.1 - 1e-12 <= min(day["chances"]) <= max(day["chances"]) <= 0.8 + 1e-12  # the floor, and what it leaves
        reward = day["reward"]
        assert 0.0 <= reward["low"] <= reward["mean"] <= reward["high"] <= 1.0


def test_the_course_of_a_trial(scene):
    """Means of whole rows are distributions; every decision has a reward, waits for it, or misses it."""
    told = overview(viewed(scene))
    for day in told["days"][:6]:
        assert sum(day["chances"]) == pytest.approx(1.0)
        assert min(day["chances"]) >= 0.1 - 1e-12
        assert (day["enrolled"], day["people"], day["missing"] + day["waiting"] + day["unavailable"]) == (8, 8, 0)
    assert told["days"][-1]["enrolled"] == told["people"]
    scene.clock.forward(days=7)
    try:
        assert overview(viewed(scene))["retention"] == [{"week": 1, "people": 9, "took_part": 9}]
        assert sum(day["missing"] for day in overview(viewed(scene))["days"]) == len(viewed(scene).overdue) == 1
    finally:
        scene.clock.forward(days=-7)


def test_rewards_by_action_weigh_every_decision_alike(scene):
    """Hájek's mean, by hand; the values of a column are a partition of all decisions."""
    told, state = overview(viewed(scene))["rewards"], scene.desk.state
    pairs = [
        (each.choices[step], out.reward) for each in state.episodes.values() for step, out in each.outcomes.items()
    ]
    for action, found in enumerate(told[0]["actions"]):
        those = [(1.0 / made.probability, reward) for made, reward in pairs if made.action == action]
        weights, rewards = np.array(those).T
        assert found["mean"] == pytest.approx((weights @ rewards) / weights.sum())
        assert found["low"] < found["mean"] < found["high"]
        for column in ("age", "lives"):
            parts = [row["actions"][action] for row in told if row["column"] == column]
            assert sum(part["decisions"] for part in parts if part) == found["decisions"] == len(those)
    assert [row["value"] for row in told if row["column"] == "lives"] == ["alone", "with others", "unknown"]


def test_a_blinded_reader_sees_no_outcome_and_nothing_by_action(scene):
    """Actions and their probabilities tell what the model has learned, and so do rewards."""
    told, whole = overview(viewed(scene), blinded=True), overview(viewed(scene))
    assert whole.keys() - told.keys() == {"budgets", "rewards", "lost"}
    assert whole["days"][0].keys() - told["days"][0].keys() == {
        *("actions", "chances", "reward"),
        *("unavailable", "rules", "fallbacks"),  # of few decisions, they tell the arm
    }
    assert "reminder" in str(whole["checks"])
    assert "reminder" not in str({**told, "actions": None})
    steps = [step for episode in history(scene.desk, "q1", blinded=True)["episodes"] for step in episode["steps"]]
    hidden = {step["decision"]["action"] for step in steps} | {step["outcome"]["reward"] for step in steps}
    assert hidden == {None}
    assert {step["decision"]["source"] for step in steps} == {None}  # it would tell the arm


def test_a_blinded_reader_does_not_see_what_the_team_has_written_about_outcomes():
    at = desk()
    at.call("enrol", {"person": "anna"})
    at.call("learn", {})
    at.publish_model(at.state.learning, Lesson(at.agent, "", "the reward oracle lost SECRET"))
    at.call("acknowledge", {"incident": at.state.incidents[0].number, "note": "call earns SECRET"})
    at.call("pause", {"person": "anna", "cause": "the SECRET action harms"})
    at.call("pause", {"cause": "the SECRET action harms"})
    view = watch(at, Process(at.clock))
    for blinded in (False, True):
        told = json.dumps([overview(view, blinded=blinded), history(at, "anna", blinded=blinded)], default=str)
        assert told.count("SECRET") == (0 if blinded else 6)
    assert overview(view, blinded=True)["versions"][0]["verdict"] == "refused"


def test_a_blinded_reader_cannot_tell_arms_or_draws_apart():
    """Two people whose days differ in arm, draws and rules look the same: up to names, numbers and times."""
    at = desk("[people]\narms = 'given'\ncontrol = 0.5\n")
    for name, arm, available in (("anna", "control", True), ("berta", "learning", False), ("cora", "learning", True)):
        at.call("enrol", {"person": name, "arm": arm})
        opening = {"person": name, "context": {"age": 40, "lives": "alone"}, "available": available}
        episode = json.loads(at.call("open", opening).text)["episode"]
        for step in (0, 1):
            at.call("decide", {"episode": episode, "step": step, "state": "took it"})

    view = watch(at, Process(at.clock))

    def told(name):
        found = history(at, name, blinded=True)
        [row] = [each for each in overview(view, blinded=True)["under_way"] if each["person"] == name]
        text = json.dumps([found, row]).replace(name, "somebody")
        text = re.sub(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[^\"]+", "then", text)
        return re.sub(r'"episode": [0-9]+', '"episode": 0', text)

    certificates = [history(at, each)["episodes"][0]["certificate"] for each in ("anna", "cora")]
    assert [each is None for each in certificates] == [True, False]
    assert told("anna") == told("berta") == told("cora")


def test_two_trials_that_differ_in_arms_alone_look_the_same_to_a_blinded_reader():
    """Nothing is learned from the control group: whoever counts what was learned, or what was not, knows the arms."""

    def told(*control):
        clock, names = Clock(), ("anna", "berta", "cora")
        at = desk("[people]\narms = 'given'\n[learning]\npublish = 'by hand'\n", clock=clock)
        for name in names:
            at.call("enrol", {"person": name, "arm": "control" if name in control else "learning"})
            clock.forward(hours=1)
            number = json.loads(at.call("open", {"person": name, "context": person(1)}).text)["episode"]
            at.call("decide", {"episode": number, "step": 0, "state": "took it"})
            at.call("report", {"episode": number, "step": 0, "reward": 1.0, "next_state": "took it"})
            at.call("close", {"episode": number})
            at.call("learn", {})
            at.learn_here()
        clock.forward(days=8)
        found = overview(watch(at, Process(clock)), blinded=True)
        of_machine = {"memory", "disk"}
        found |= {"hash": None, "checks": [each for each in found["checks"] if each["check"] not in of_machine]}
        return [found, *(history(at, name, blinded=True) for name in names)]

    assert told("anna") == told("berta") == told("anna", "cora")


@pytest.mark.parametrize("late", [False, True])
def test_a_colour_does_not_tell_a_blinded_reader_the_arm_of_the_first_person(late):
    """Nothing was learned for a week, and only episodes of one arm ever are; or an outcome came after learning."""

    def told(arm):
        clock = Clock()
        at = desk("[people]\narms = 'given'\n[learning]\nafter_episodes = 0\n", clock=clock)
        at.call("enrol", {"person": "anna", "arm": arm})
        number = json.loads(at.call("open", {"person": "anna", "context": person(1)}).text)["episode"]
        at.call("decide", {"episode": number, "step": 0, "state": "took it"})
        at.call("report", {"episode": number, "step": 0, "next_state": "took it"})
        at.call("close", {"episode": number})
        clock.forward(hours=1)
        if late:
            at.call("learn", {})
            at.learn_here()
            clock.forward(hours=1)
            at.call("report", {"episode": number, "step": 0, "reward": 1.0, "revision": 1})
        clock.forward(days=8)
        process = Process(clock)
        tick(lambda task: task(at), process)
        found = findings(view := watch(at, process))
        return {each.check: each.severity for each in found}["learning late"], overview(view, blinded=True)["event"]

    assert told("control") == told("learning")
    assert told("control")[0] == "yellow"


def test_a_blinded_reader_sees_no_check_that_looks_at_actions_or_plans(monkeypatch):
    """There are no plans for a control group: whoever sees the check turn red after a decision knows the arm."""
    monkeypatch.setattr(decisions, "make_plan", lambda *_: 1 / 0)
    at = desk()
    number = json.loads(at.call("open", {"person": "anna", "context": {"age": 95}}).text)["episode"]
    at.call("decide", {"episode": number, "step": 0, "state": "took it"})
    process = Process(at.clock)
    tick(lambda task: task(at), process)
    view = watch(at, process)
    bad = {"checks": {"fallbacks", "support"}, "incidents": {"fallbacks", "support"}}
    for blinded in (False, True):
        found = overview(view, blinded=blinded)
        for name, those in bad.items():
            assert {each["check"] for each in found[name]} & those == (those - {"fallbacks"} if blinded else those)


def test_a_persons_week_is_counted_by_the_names_of_actions(scene):
    """What was taken comes as counts beside the sums of probabilities, and not as a list of numbers of actions."""
    found = history(scene.desk, "q1")
    week = found["week"]
    assert list(week["taken"]) == list(week["spent"]) == ["nothing", "reminder", "call"]
    assert sum(week["spent"].values()) == pytest.approx(week["drawn"])
    steps = [step["decision"] for episode in found["episodes"] for step in episode["steps"]]
    those = [
        each["action"] for each in steps if week_of(datetime.datetime.fromisoformat(each["local"])) == week["week"]
    ]
    assert sum(week["taken"].values()) == len(those) > 0
    assert all(week["taken"][name] == those.count(name) for name in week["taken"])


def test_days_are_those_of_the_trial():
    """At 23:30 UTC it is the next day in Berlin; a day without decisions is there too."""
    scene = Scene()
    scene.day()
    scene.clock.now = datetime.datetime(2026, 11, 4, 23, 30, tzinfo=datetime.UTC)
    scene.day()
    days = [(day["day"], day["decisions"]) for day in overview(viewed(scene))["days"]]
    assert days == [("2026-11-02", 4), ("2026-11-03", 0), ("2026-11-04", 0), ("2026-11-05", 4)]


def test_a_text_that_is_html_comes_back_as_it_was_given(client, scene):
    told = client.get("/v1/people/q0").json()
    assert [each["episode"] for each in told["episodes"]] == scene.desk.state.of_person["q0"][::-1]
    assert {each["context"]["lives"] for each in told["episodes"]} == {HOSTILE}
    steps = told["episodes"][0]["steps"]
    assert [each["step"] for each in steps] == [0, 1, 2]
    assert all(each["decision"]["probability"] >= 0.1 - 1e-12 for each in steps)


def test_an_unknown_person_is_refused(client):
    for name in ("nobody", "<b>", "a%2Fb", "%27%3B--"):
        assert client.get(f"/v1/people/{name}").status_code == 404


def test_metrics_name_nobody(client, scene):
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    for name in ("q0", "img", "alone", "adherence"):
        assert name not in answer.text
    values = dict(re.findall(r"^(\S+|\S+\{.*\}) (\S+)$", answer.text, re.MULTILINE))
    assert float(values["omg_cmdp_events"]) == scene.desk.state.number
    assert values['omg_cmdp_check{check="contradictory states"}'] == "1.0"
    decisions = sum(float(value) for name, value in values.items() if name.startswith("omg_cmdp_decisions"))
    assert decisions == len(viewed(scene).week)


def test_refused_calls_are_counted(client, service, tokens):
    """An app's mistake turns a check yellow; an analyst's attempt does not."""
    before = service.process.lately("422")
    assert client.post("/v1/policy", json={"context": {"age": []}}).status_code == 422
    assert service.process.lately("422") == before
    app = {"Authorization": f"Bearer {tokens[1]['app']}", "Idempotency-Key": "k"}
    body = {"person": "q0", "context": {"age": []}}
    assert client.post("/v1/episodes", json=body, headers=app).status_code == 422
    assert service.process.lately("422") == before + 1
    assert 'omg_cmdp_refusals_total{cause="422"}' in client.get("/metrics").text


@pytest.mark.parametrize("path", ["/v1/overview", "/v1/people/q0", "/metrics", "/v1/events"])
@pytest.mark.parametrize("role", [None, *ROLES])
def test_only_analysts_and_administrators_look(client, tokens, path, role):
    header = {"Authorization": f"Bearer {tokens[1][role] if role else 'x'}"}
    status = client.get(path, headers=header).status_code
    blinded = 200 if path.startswith(("/v1/overview", "/v1/people")) else 403
    expected = {None: 401, "app": 403, "phone": 403, "blinded": blinded, "analyst": 200, "administrator": 200}
    assert status == {**expected, "follower": 200 if path == "/v1/events" else 403}[role]


def test_a_follower_does_not_wait_for_the_thread_that_decides(client, service):
    """Nor does that wait for a follower: the log is read outside of it."""
    going, done = threading.Event(), threading.Event()
    decides = service.submit(lambda _: going.set() or done.wait(10.0))
    assert going.wait(30.0)
    try:
        lines = client.get("/v1/events?after=1").text.splitlines()
    finally:
        done.set()
    assert decides.result()  # it was still at it when the follower had its answer
    assert json.loads(lines[0])[0] == 2


def test_the_page_is_whole_and_loads_nothing_else(client):
    page = client.get("/", headers={"Authorization": ""})
    policy = page.headers["content-security-policy"]
    assert page.status_code == 200
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert re.findall(r'(?:href|src)="(page/[^"]+)"', page.text) == ["page/style.css", "page/page.js"]
    texts = [page.text, client.get("/page/style.css").text]
    files, read = {"page/page.js"}, set()
    while waiting := files - read:  # modules import each other
        read.add(file := waiting.pop())
        texts.append(client.get("/" + file).text)
        files |= {f"page/{name}" for name in re.findall(r'from "\./(\w+\.js)"', texts[-1])}
    assert len(files) == 5
    for text in texts:
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
        assert re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\son\w+=|\sstyle=", text) == []
    # Every element that the script asks for is there.
    asked = set(re.findall(r'(?:\$|put)\("([\w-]+)"', "".join(texts)))
    assert len(asked) > 20
    assert asked <= set(re.findall(r'id="([\w-]+)"', page.text))


def test_the_overview_is_of_one_moment_while_the_trial_goes_on():
    at = desk()
    at.call("open", {"person": "anna", "context": person(1), "occasion": "1"})
    at.call("close", {"episode": next(iter(at.state.open))})
    at.clock.forward(days=8)
    view = watch(at, Process(at.clock))
    before = json.dumps(overview(view), default=str)
    at.call("open", {"person": "anna", "context": person(1), "occasion": "2"})
    assert json.dumps(overview(view), default=str) == before


def test_a_blinded_reader_does_not_see_notes_even_where_the_sentence_is_shown():
    at = desk()
    at.record("incident", {"severity": "yellow", "check": "overdue rewards", "message": "1 of 2 rewards"})
    at.call("acknowledge", {"incident": at.state.incidents[0].number, "note": "SECRET: control people send none"})
    [told] = overview(watch(at, Process(at.clock)), blinded=True)["incidents"]
    assert told["message"] == "1 of 2 rewards"
    assert "SECRET" not in told["note"]
