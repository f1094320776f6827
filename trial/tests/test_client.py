"""The client: nothing is decided twice and nothing is lost, whatever the network does."""

import json
import math

import httpx
import pytest

from omg_trial.client import Client, OlderLogError, RefusedError, UnreachableError, outbox
from omg_trial.client.outbox import Outbox
from omg_trial.log.database import Database
from trial.tests.network import ADDRESS, ANSWER_LOST, LOST, wired
from trial.tests.trials import Clock, desk, person

QUICK = 0.05
"""Too little patience for a second attempt."""
LIMITS = '[window]\nbegin = "00:00"\nend = "23:59"\noutside = "nothing"\n'
NOT_THE_SERVICE = {
    "a portal": httpx.Response(200, html="<p>Welcome to our wireless network"),
    "another service": httpx.Response(200, json={"welcome": True}),
    "a list": httpx.Response(404, json=["nothing here"]),
    "a proxy": httpx.Response(404, html="<h1>404</h1>"),
    "another's refusal": httpx.Response(403, json={"detail": "no"}),
    "brackets": httpx.Response(200, text="[" * 100_000),
    "bad gateway": httpx.Response(502, html="<h1>502</h1>"),
}


@pytest.fixture
def at():
    return desk()


@pytest.fixture
def line(tmp_path, at):
    with wired(tmp_path, at=at) as (wire, token):
        yield wire, token


def made(line, queue=None, patience=QUICK):
    wire, token = line
    return Client(ADDRESS, token, queue=queue, patience=patience, transport=wire)


def decided(at):
    return [event.body for event in at.store.read() if event.kind == "decided"]


def kinds(at):
    return [event.kind for event in at.store.read() if event.kind in ("opened", "closed")]


@pytest.mark.parametrize(
    "fault",
    [
        LOST,
        ANSWER_LOST,
        pytest.param(httpx.Response(503, headers={"Retry-After": "0"}, json={"error": "busy"}), id="busy"),
        pytest.param(httpx.Response(429, json={"error": "too many calls"}), id="too many"),
        *(pytest.param(response, id=name) for name, response in NOT_THE_SERVICE.items()),
    ],
)
def test_a_call_is_repeated_until_it_is_answered_and_done_once(line, at, fault):
    wire, _ = line
    with made(line, patience=5.0) as client:
        episode = client.open("p1", person(1))["episode"]
        wire.faults += [fault]
        answer = client.decide(episode, 0, "took it")
    assert answer["event"] is not None
    assert len(decided(at)) == 1
    assert len({sent.headers["Idempotency-Key"] for sent in wire.sent[1:]}) == 1
    assert len(wire.sent) == 3


def test_an_app_that_ends_before_it_hears_the_answer_asks_the_same_again(line, at, tmp_path):
    wire, _ = line
    wire.faults += [ANSWER_LOST]
    with made(line, tmp_path / "queue") as client, pytest.raises(UnreachableError):
        client.open("p1", person(1))
    with made(line, tmp_path / "queue") as client:
        episode = client.open("p1", person(1))["episode"]
    with made(line, tmp_path / "queue") as client:
        assert client.open("p1", person(1))["episode"] == episode
        client.close(episode)
        assert client.open("p1", person(1))["episode"] != episode
    assert kinds(at) == ["opened", "closed", "opened"]


def test_without_a_network_the_table_decides_as_the_service_would_have(line, at, tmp_path):
    wire, _ = line
    with made(line, tmp_path / "queue") as client:
        episode = client.open("p1", person(1))["episode"]
        wire.faults += [LOST] * 5
        offline = [client.decide(episode, step, "took it") for step in range(2)]
        assert client.decide(episode, 0, "took it") == offline[0]
        assert not client.report(episode, 0, reward=1.0, next_state="took it")
        assert not client.report(episode, 1, reward=0.0, next_state="missed it")
    assert decided(at) == []
    with made(line, tmp_path / "queue") as client:
        assert client.send() == 4
        assert client.refused() == []
    for before, after in zip(offline, decided(at), strict=True):
        assert before["event"] is None
        assert after["action"] == after["drawn"] == at.trial.actions.index(before["action"])
        assert after["probability"] == before["probability"]
    assert at.state.episodes[episode].outcomes[1].reward == 0.0


def test_what_was_done_on_the_last_day_counts_for_that_day_whenever_it_is_told(tmp_path, monkeypatch):
    """Nothing may be decided any more when there is a network again; but it was decided in time."""
    clock = Clock()
    monkeypatch.setattr(outbox, "_now", clock)
    at = desk(clock=clock)
    at.call("enrol", {"person": "p1", "consent_to": "2026-11-02"})
    with wired(tmp_path, at=at) as line, made(line) as client:
        episode = client.open("p1", person(1))["episode"]
        line[0].faults += [LOST] * 2
        offline = client.decide(episode, 0, "took it")
        clock.forward(minutes=1)
        assert client.decide(episode, 0, "took it") == offline  # asked again: it is told once
        clock.forward(days=2)
        assert (client.send(), client.refused()) == (1, [])
        with pytest.raises(RefusedError, match="the consent ended"):
            client.decide(episode, 1, "took it")
    [body] = decided(at)
    assert (body["probability"], body["local"][:16]) == (offline["probability"], "2026-11-02T10:00")


def test_a_decision_that_was_made_but_not_heard_is_the_one_that_the_table_has(line, at):
    wire, _ = line
    with made(line) as client:
        episode = client.open("p1", person(1))["episode"]
        wire.faults += [ANSWER_LOST]
        offline = client.decide(episode, 0, "took it")
        client.send()
        assert client.refused() == []
        [body] = decided(at)
        assert at.trial.actions[body["action"]] == offline["action"]
        assert client.decide(episode, 0, "took it")["action"] == offline["action"]


def test_nothing_is_drawn_in_an_episode_that_opens_for_somebody_who_is_not_available(line, at):
    with made(line) as client:
        opened = client.open("p1", person(1), "2026-11-02", available=False)
        decision = client.decide(opened["episode"], 0, "took it")
    assert (opened["drawn"], decision["probability"], decision["available"]) == (None, None, False)


def test_where_rules_may_change_decisions_there_is_no_table(tmp_path):
    with wired(tmp_path, extra=LIMITS) as line, made(line) as client:
        episode = client.open("p1", person(1))["episode"]
        line[0].faults += [LOST]
        with pytest.raises(UnreachableError):
            client.decide(episode, 0, "took it")
        client.decide(episode, 0, "took it")
        assert [client.send(), client.refused()] == [0, []]


def test_a_close_that_is_refused_leaves_the_episode_under_way(line):
    wire, _ = line
    with made(line) as client:
        opened = client.open("p1", person(1))
        with pytest.raises(RefusedError, match="`cause`: Input should be"):
            client.close(opened["episode"], "bored")
        assert client.open("p1", person(1)) == opened
        wire.faults += [LOST] * 2
        assert client.decide(opened["episode"], 0, "took it")["event"] is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"episode": "1/../2"}, "`episode` must be an integer"),
        ({"next_state": ("took it",)}, "`next_state`"),
    ],
)
def test_a_wrong_report_is_refused_at_once_and_never_waits(line, wrong, message):
    with made(line) as client:
        good = {"episode": client.open("p1", person(1))["episode"], "step": 0, "next_state": "took it"}
        with pytest.raises(ValueError, match=message):
            client.report(**(good | wrong))
        assert client.send() == 0
        assert client.refused() == []


def test_a_refusal_is_raised_and_one_that_waited_is_set_aside(line, at):
    wire, _ = line
    with made(line) as client:
        episode = client.open("p1", person(1))["episode"]
        with pytest.raises(RefusedError, match="`reward`: Input should be") as caught:
            client.report(episode, 0, reward=7.0)
        assert caught.value.status == 422
        with pytest.raises(RefusedError, match="Input should be 'took it' or 'missed it'"):
            client.decide(episode, 0, "elsewhere")
        wire.faults += [LOST] * 2
        assert not client.report(episode, 0, reward=7.0)
        assert not client.report(episode, 0, reward=1.0)
        assert client.send() == 1
        [(path, body, why)] = client.refused()
        assert (path, body["reward"]) == (f"/v1/episodes/{episode}/outcomes", 7.0)
        assert "`reward`: Input should be" in why
    assert at.state.episodes[episode].outcomes[0].reward == 1.0


def test_what_waits_outlives_a_wrong_token(line, tmp_path):
    wire, token = line
    with made(line, tmp_path / "queue") as client:
        episode = client.open("p1", person(1))["episode"]
        wire.faults += [LOST]
        client.report(episode, 0, reward=1.0)
    with made((wire, "another"), tmp_path / "queue") as client, pytest.raises(RefusedError, match="token"):
        client.send()
    with made((wire, token), tmp_path / "queue") as client:
        assert client.send() == 1


@pytest.mark.parametrize("gone_on", [False, True])
def test_a_service_with_an_older_backup_is_recognised(tmp_path, gone_on):
    store = Database(":memory:")
    with wired(tmp_path, store=store) as (wire, token):
        client = Client(ADDRESS, token, patience=QUICK, transport=wire)
        client.close(client.open("p1", person(1))["episode"])
        backup = Database(":memory:")
        backup.keys = store.keys
        backup.append(list(store.read())[:3])
        client.report(client.open("p2", person(2))["episode"], 0, reward=1.0)
    with wired(tmp_path, store=backup) as (wire, token), Client(ADDRESS, token, transport=wire) as other:
        if gone_on:
            for number in range(3, 9):
                other.open(f"p{number}", person(number))
        client._http = other._http
        before = list(backup.read())
        with pytest.raises(OlderLogError, match="perhaps an older backup was restored"):
            client.report(9, 0, reward=1.0)
        assert list(backup.read()) == before
        client.trust()
        with pytest.raises(RefusedError, match="there is no episode"):
            client.report(999, 0, reward=1.0)


def test_what_waited_when_events_were_lost_is_not_kept_as_another_persons(tmp_path):
    """After an older backup was restored, the number of anna's episode is that of ben's."""
    store, backup = Database(":memory:"), Database(":memory:")
    with wired(tmp_path, store=store) as (wire, token):
        backup.keys = store.keys
        backup.append(list(store.read()))
        client = Client(ADDRESS, token, patience=QUICK, transport=wire)
        client.open("cora", person(0), occasion="1")
        episode = client.open("anna", person(1), occasion="1")["episode"]
        wire.faults = 3 * [LOST]
        client.decide(episode, 0, "missed it")
        client.report(episode, 0, reward=1.0)
        assert not client.close(episode)
    with wired(tmp_path, store=backup) as (wire, token), Client(ADDRESS, token, transport=wire) as other:
        assert episode == other.open("ben", person(2))["episode"]
        client._http = other._http
        with pytest.raises(OlderLogError):
            client.send()
        client.trust()
        assert client.send() == 0
        assert [body.get("reward") for _, body, why in client.refused() if "events were lost" in why] == [
            None,
            1.0,
            None,
        ]
        assert [event.kind for event in backup.read()][-1] == "opened"


@pytest.mark.parametrize("mark", ["nonsense", "0:" + "0" * 64, "3:xyz", "9" * 30 + ":" + "0" * 64])
def test_a_mark_that_cannot_be_read_is_refused(line, at, mark):
    wire, token = line
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k", "Log-Seen": mark}
    body = {"person": "p1", "context": person(1)}
    with httpx.Client(base_url=ADDRESS, transport=wire) as client:
        assert client.post("/v1/episodes", json=body, headers=headers).status_code == 422
    assert kinds(at) == []


def test_what_was_seen_outlives_the_app(line, tmp_path):
    wire, _ = line
    with made(line, tmp_path / "queue") as client:
        episode = client.open("p1", person(1))["episode"]
        client.decide(episode, 0, "took it")
    with made(line, tmp_path / "queue") as client:
        client.decide(episode, 1, "took it")
    [_, before, after] = wire.sent
    assert before.headers["Log-Seen"].startswith(f"{episode}:")
    assert after.headers["Log-Seen"].startswith(f"{episode + 1}:")


def test_nothing_that_is_no_number_gets_into_the_queue(line):
    with made(line) as client:
        episode = client.open("p1", person(1))["episode"]
        with pytest.raises(ValueError, match="`reward` must be finite numbers, texts, lists and objects, got nan"):
            client.report(episode, 0, reward=math.nan)
        assert client.send() == 0
        assert client.report(episode, 0, reward=1.0)


def test_the_queue_is_private_and_forgets_whom_it_was_about(line, tmp_path):
    file = tmp_path / "queue"
    with made(line, file) as client:
        episode = client.open("somebody", person(1))["episode"]
        assert b"somebody" in file.read_bytes()
        client.close(episode)
    assert file.stat().st_mode & 0o077 == 0
    assert all(b"somebody" not in path.read_bytes() for path in tmp_path.glob("queue*"))


def test_the_outbox_gives_a_call_one_key_until_it_is_done(tmp_path):
    first = Outbox(tmp_path / "queue").call("/path", {"a": 1}, waits=False)
    outbox = Outbox(tmp_path / "queue")
    assert outbox.call("/path", {"a": 1}, waits=False) == first
    assert outbox.call("/path", {"a": 2}, waits=False).key != first.key
    outbox.done(first)
    assert outbox.call("/path", {"a": 1}, waits=False).key != first.key


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"url": "service"}, "`url` must begin with http:// or https://, got 'service'"),
        ({"url": None}, "`url` must begin with"),
        ({"token": "a\nb"}, "`token` must be a text of visible ASCII characters"),
        ({"token": ""}, "`token` must be"),
        ({"patience": 0.0}, "`patience` must be"),
        ({"patience": math.nan}, "`patience` must be"),
        ({"patience": "long"}, "`patience` must be"),
    ],
)
def test_arguments_are_checked(wrong, rule):
    with pytest.raises(ValueError, match=rule):
        Client(**{"url": ADDRESS, "token": "token", **wrong})


def test_a_call_that_fails_unexpectedly_is_set_aside_and_holds_up_nothing(line, at, monkeypatch):
    from omg_trial.handlers import table

    with made(line) as client:
        episode = client.open("p1", person(1))["episode"]
        client.decide(episode, 0, "took it")
        monkeypatch.setitem(table.ROUTES, "report", table.ROUTES["report"]._replace(handler=lambda *_: 1 / 0))
        with pytest.raises(RefusedError, match="ZeroDivisionError") as refused:
            client.report(episode, 0, reward=1.0)
        assert refused.value.status == 500
        assert client.close(episode)
    assert kinds(at) == ["opened", "closed"]


@pytest.mark.parametrize("lacks", ["episode", "drawn", "cause", "policy"])
def test_an_answer_that_lacks_something_is_refused_in_a_sentence(at, lacks):
    opened = at.call("open", {"person": "p1", "context": person(1)})
    content = {name: value for name, value in json.loads(opened.text).items() if name != lacks}
    answers = [httpx.Response(200, json=content, headers={"Log-Head": opened.mark})]
    transport = httpx.MockTransport(lambda _: answers.pop() if answers else httpx.Response(503))

    def use(client):
        client.open("p1", person(1))
        client.decide(3, 0, "took it")

    wrong = pytest.raises(ValueError, match=r"number of the episode|is none of a service of this version")
    with Client(ADDRESS, "token", patience=QUICK, transport=transport) as client, wrong:
        use(client)
