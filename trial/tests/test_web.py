"""The desk over HTTP: roles, keys, limits, documented answers; and nothing of a person in the service's own log."""

import contextlib
import http.client
import itertools
import json
import logging
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from starlette.testclient import TestClient

from omg_trial.contract import Refusal
from omg_trial.desk import Desk
from omg_trial.log.database import Database, StoreError
from omg_trial.service import Service
from omg_trial.tokens import RATES, ROLES, Tokens
from omg_trial.trial_file.trial import Trial
from omg_trial.web import app as web
from omg_trial.web import server
from trial.tests.trials import desk

ROOT = Path(__file__).parent.parent.parent
CONTEXT = {"age": 50, "lives": "alone"}
MAY = {
    "/v1/episodes": "app phone",
    "/v1/episodes/3/decisions": "app phone",
    "/v1/episodes/3/outcomes": "app phone",
    "/v1/episodes/3/close": "app phone",
    "/v1/people": "app",
    "/v1/people/p1/withdraw": "administrator",
    "/v1/people/p1/erase": "administrator",
    "/v1/pause": "administrator",
    "/v1/resume": "administrator",
    "/v1/stop": "administrator",
    "/v1/publish": "administrator",
    "/v1/learn": "administrator",
    "/v1/roll-back": "administrator",
    "/v1/incidents/3/acknowledge": "administrator",
    "/v1/policy": "analyst",
}
BODIES = {
    "/v1/episodes": {"person": "p1", "context": CONTEXT},
    "/v1/episodes/3/decisions": {"step": 0, "state": "took it"},
    "/v1/episodes/3/outcomes": {"step": 0, "reward": 1.0, "next_state": "took it"},
    "/v1/episodes/3/close": {"cause": "finished"},
    "/v1/policy": {"context": CONTEXT},
    "/v1/roll-back": {"version": 0},
    "/v1/incidents/3/acknowledge": {"note": "seen"},
}
NASTY = [
    "'; DROP TABLE events; --",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "${jndi:x}",
    "é\U0001f600",
    "../../etc/passwd",
]
BY_HAND = {"/v1/publish"}  # the trial of the guide publishes by itself


class Site:
    """A service and a client for each role."""

    def __init__(self, folder, at=None):
        self.desk = at or desk()
        self.service = Service(self.desk)
        tokens = Tokens(folder / "tokens")
        self.tokens = {
            role: tokens.add(role, f"the {role}", person="p1" if role == "phone" else None) for role in ROLES
        }
        self.client = TestClient(web.make_app(self.service, tokens), raise_server_exceptions=False)
        self._keys = itertools.count()

    def post(self, path, body, role="administrator", key=None, token=None):
        headers = {"Idempotency-Key": key or f"key-{next(self._keys)}"}
        given = token or self.tokens.get(role)
        return self.client.post(
            path, json=body, headers=headers | ({"Authorization": f"Bearer {given}"} if given else {})
        )


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.service.end()


@pytest.mark.parametrize(("path", "roles"), [("/v1/overview", "analyst blinded"), ("/v1/people/p1", "analyst blinded")])
def test_whoever_looks_is_in_the_log_once_and_a_blinded_reader_sees_no_outcome(site, path, roles):
    episode = site.post("/v1/episodes", BODIES["/v1/episodes"]).json()["episode"]
    site.post(f"/v1/episodes/{episode}/decisions", BODIES["/v1/episodes/3/decisions"])
    for role in (*ROLES, *ROLES):
        told = site.client.get(path, headers={"Authorization": f"Bearer {site.tokens[role]}"})
        assert (told.status_code == 200) == (role in (*roles.split(), "administrator")), role
        assert told.status_code != 200 or ('"probability":0' in told.text) <= (role != "blinded")
    looked = [event for event in site.desk.store.read() if event.kind == "looked"]
    assert [event.body["actor"] for event in looked] == ["the analyst", "the blinded", "the administrator"]
    assert {event.body.get("person") for event in looked} == {"p1" if "people" in path else None}


def test_a_phone_has_keys_of_its_own(site, tmp_path):
    """Phones that count their calls use the same keys; each gets its own answers, byte for byte."""
    phones = {name: Tokens(tmp_path / "tokens").add("phone", name, person=name) for name in ("p1", "p2")}
    asked = [({"person": name, "context": CONTEXT}, token) for name, token in phones.items()]
    told = [site.post("/v1/episodes", body, key="1", token=token).text for body, token in asked]
    assert [json.loads(each)["event"] for each in told] == [3, 4]
    assert told == [site.post("/v1/episodes", body, key="1", token=token).text for body, token in asked]


@pytest.mark.parametrize("key", ["the-same", "another"])
def test_an_erasure_whose_tokens_cannot_be_taken_back_says_so_and_is_finished_later(site, tmp_path, monkeypatch, key):
    site.post("/v1/episodes", BODIES["/v1/episodes"], role="phone")
    with monkeypatch.context() as failing:
        failing.setattr("omg_trial.tokens.whole_file", lambda path: (_ for _ in ()).throw(OSError(30, "read-only")))
        told = site.post("/v1/people/p1/erase", {"cause": "asked to"}, key="the-same")
    assert (told.status_code, told.headers.get("Retry-After")) == (503, "1"), told.text
    assert "the person is erased, but the file of tokens cannot be written" in told.json()["error"]
    assert '"p1"' in (tmp_path / "tokens").read_text()
    again = site.post("/v1/people/p1/erase", {"cause": "asked to"}, key=key)
    assert again.status_code == (200 if key == "the-same" else 410)
    assert '"p1"' not in (tmp_path / "tokens").read_text()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_whoever_has_no_token_turns_no_check_of_the_app_yellow(site, method):
    assert site.client.request(method, "/v1/episodes/x/nothing").status_code == 404
    told = site.client.get("/v1/overview", headers={"Authorization": f"Bearer {site.tokens['analyst']}"}).json()
    assert {each["check"]: each["severity"] for each in told["checks"]}["roster"] == "green"


def test_a_phone_may_call_for_its_person_only(site):
    other = site.post("/v1/episodes", {"person": "p2", "context": CONTEXT}).json()["episode"]
    mine = site.post("/v1/episodes", BODIES["/v1/episodes"], role="phone")
    assert mine.status_code == 200
    for episode, status in ((mine.json()["episode"], 200), (other, 403), (10**6, 403)):
        made = site.post(f"/v1/episodes/{episode}/decisions", BODIES["/v1/episodes/3/decisions"], role="phone")
        assert made.status_code == status
    assert site.post("/v1/episodes", {"person": "p3", "context": CONTEXT}, role="phone").status_code == 403
    actors = {event.body["actor"] for event in site.desk.store.read() if event.key}
    assert any(re.fullmatch("phone [0-9a-f]{12}", actor) for actor in actors)
    site.post("/v1/people/p1/erase", {"cause": "asked to"})
    assert site.post("/v1/episodes", BODIES["/v1/episodes"], role="phone").status_code == 401


def test_tokens_expire_are_replaced_and_revoked(tmp_path):
    tokens = Tokens(tmp_path / "tokens")
    old, past = tokens.add("app", "the phones"), tokens.add("analyst", "a guest", expires="2020-01-01")
    new = tokens.add("app", "the phones", expires="2999-01-01", replaces=True)
    for wrong in ("20260101", "2026-W01-1", "2026-02-30", "tomorrow", ""):
        with pytest.raises(ValueError, match="`expires`: "):
            tokens.add("app", "a typo", expires=wrong)
    assert [found and found.role for found in map(tokens.find, (old, past, new))] == [None, None, "app"]
    assert tokens.revoke("the phones") == 1
    assert [each.name for each in Tokens(tmp_path / "tokens").all()] == ["a guest"]
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0
    with pytest.raises(ValueError, match="the token of a phone needs a `person`"):
        tokens.add("phone", "somebody's")
    with pytest.raises(ValueError, match="there is no token 'me' to replace"):
        tokens.add("app", "me", replaces=True)


def test_processes_that_change_the_tokens_take_turns(tmp_path):
    """None brings back what another has taken back, or loses what another has added; half a line costs nobody else."""
    tokens = Tokens(tmp_path / "tokens")
    for number in range(8):
        tokens.add("app", f"old {number}")
    with (tmp_path / "tokens").open("a") as file:
        file.write('{"role": "app", "hash": "ab')  # a disk was full
    code = "import sys; from omg_trial.tokens import Tokens; t = Tokens(sys.argv[1]); input()\n"
    code += "t.revoke(f'old {sys.argv[2]}'); t.add('app', f'new {sys.argv[2]}')"
    those = [
        subprocess.Popen([sys.executable, "-c", code, str(tokens.path), str(number)], stdin=subprocess.PIPE)
        for number in range(6)
    ]
    for each in those:  # all at once
        each.stdin.write(b"\n")
        each.stdin.flush()
    for each in those:
        each.communicate()
    assert [each.returncode for each in those] == 6 * [0]
    assert sorted(each.name for each in tokens.all()) == [*(f"new {each}" for each in range(6)), "old 6", "old 7"]


def test_a_file_of_tokens_that_cannot_be_read_for_a_moment_locks_nobody_out(site, tmp_path, monkeypatch):
    """Nor does a change meanwhile take back all others."""
    tokens = Tokens(tmp_path / "other")
    made = tokens.add("app", "the app")
    for method in ("stat", "read_text"):
        again = Tokens(tokens.path)
        with monkeypatch.context() as broken:
            broken.setattr(f"pathlib.Path.{method}", mock.Mock(side_effect=OSError(5, "input/output error")))
            with pytest.raises(OSError, match="input/output"):
                again.find(made)
            with pytest.raises(OSError, match="input/output"):
                again.add("app", "another")
        assert again.find(made).name == "the app"
    monkeypatch.setattr(Tokens, "find", mock.Mock(side_effect=OSError(5, "input/output error")))
    refused = site.post("/v1/episodes", BODIES["/v1/episodes"])
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert "the file of tokens cannot be read" in refused.json()["error"]


def test_a_phone_without_a_person_is_nobodys(tmp_path):
    path = tmp_path / "tokens"
    made = Tokens(path).add("phone", "of p1", person="p1")
    path.write_text(path.read_text().replace('"p1"', "null"))
    assert Tokens(path).find(made) is None


def test_the_event_of_a_call_has_its_actor_and_a_retry_may_have_another(site):
    made = [site.post("/v1/episodes", BODIES["/v1/episodes"], role=role, key="k") for role in ("app", "administrator")]
    assert made[0].content == made[1].content
    assert [event.body["actor"] for event in site.desk.store.read(2)] == ["the app"]


@pytest.mark.parametrize("source", ["plan", "fixed"])
def test_the_policy_of_a_context_is_what_an_episode_would_begin_with(site, monkeypatch, source):
    if source == "fixed":
        monkeypatch.setattr(type(site.desk.agent), "decide", lambda *_: 1 / 0)
    shown = site.post("/v1/policy", BODIES["/v1/policy"], role="analyst").json()
    made = site.post("/v1/episodes", BODIES["/v1/episodes"]).json()
    assert shown["source"] == source
    assert shown == {key: made[key] for key in shown}


def test_a_token_that_was_taken_back_is_refused(site, tmp_path):
    assert site.post("/v1/policy", BODIES["/v1/policy"], role="analyst").status_code == 200
    kept = [line for line in (tmp_path / "tokens").read_text().splitlines(keepends=True) if "analyst" not in line]
    (tmp_path / "tokens").write_text("".join(kept))
    assert site.post("/v1/policy", BODIES["/v1/policy"], role="analyst").status_code == 401


def test_a_file_of_tokens_that_cannot_be_read_takes_no_token_back(site, tmp_path, monkeypatch):
    """An app asks again after 503, and would forget its call after 401."""
    path = tmp_path / "tokens"
    path.touch()  # it is read again
    with monkeypatch.context() as failing:
        failing.setattr(type(path), "read_text", lambda *_, **__: (_ for _ in ()).throw(OSError(24, "too many files")))
        told = site.post("/v1/episodes", BODIES["/v1/episodes"])
        assert (told.status_code, told.headers.get("Retry-After")) == (503, "1")
        with pytest.raises(OSError, match="too many files"):
            Tokens(path).add("app", "another")
    assert site.post("/v1/episodes", BODIES["/v1/episodes"]).status_code == 200
    assert len(Tokens(path).all()) == len(ROLES)


def test_tokens_are_kept_as_hashes_only(site, tmp_path):
    text = (tmp_path / "tokens").read_text()
    assert not any(token in text for token in site.tokens.values())
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0


def test_an_episode_from_its_beginning_to_its_end(site):
    opened = site.post("/v1/episodes", BODIES["/v1/episodes"], key="a")
    assert site.post("/v1/episodes", BODIES["/v1/episodes"], key="a").content == opened.content
    episode = opened.json()["episode"]
    decided = site.post(f"/v1/episodes/{episode}/decisions", {"step": 0, "state": "took it"}).json()
    assert decided["action"] == opened.json()["drawn"][0][0]
    assert (
        site.post(f"/v1/episodes/{episode}/outcomes", {"step": 0, "reward": 1.0, "next_state": "took it"}).status_code
        == 200
    )
    assert site.post(f"/v1/episodes/{episode}/close", {}).json()["cause"] == "finished"
    assert site.post(f"/v1/episodes/{episode}/decisions", {"step": 1, "state": "took it"}).status_code == 409
    assert site.client.get("/v1/health").json()["status"] == "ready"


def test_a_field_that_is_named_twice_is_refused(site):
    site.post("/v1/episodes", BODIES["/v1/episodes"])
    headers = {"Authorization": f"Bearer {site.tokens['app']}", "Idempotency-Key": "k"}
    twice = b'{"step": 0, "state": "took it", "step": 1}'
    headers["Content-Type"] = "application/json"
    refused = site.client.post("/v1/episodes/3/decisions", content=twice, headers=headers)
    assert (refused.status_code, refused.json()["error"]) == (422, "`body`: names a field twice")
    assert site.desk.state.episodes[3].choices == {}


def test_a_header_that_a_proxy_may_read_in_another_way_is_refused(tmp_path):
    """One that is there twice, of which it may take the other one, or a length beside chunks."""
    token, body = Tokens(tmp_path / "tokens").add("app", "me"), json.dumps(BODIES["/v1/episodes"]).encode()
    sent = [("Authorization", f"Bearer {token}"), ("Idempotency-Key", "k"), ("Content-Type", "application/json")]
    sent.append(("Content-Length", str(len(body))))
    with server.serving(desk().trial, tmp_path / "trial.db", tmp_path / "tokens") as url:
        for more in (("Idempotency-Key", "l"), ("Authorization", "Bearer x"), ("Transfer-Encoding", "chunked"), None):
            with contextlib.closing(http.client.HTTPConnection(url.removeprefix("http://"))) as connection:
                connection.putrequest("POST", "/v1/episodes")
                for name, value in [*sent, *([] if more is None else [more])]:
                    connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                found = answer.read()
            assert answer.status == (200 if more is None else 400), found
            assert more is None or b"send each of these headers once" in found


def test_a_call_without_a_key_is_refused(site):
    headers = {"Authorization": f"Bearer {site.tokens['app']}"}
    refused = site.client.post("/v1/episodes", json=BODIES["/v1/episodes"], headers=headers)
    assert refused.status_code == 400
    assert "Idempotency-Key" in refused.json()["error"]


@pytest.mark.parametrize("key", ["two words", "é", "x" * 201, "tab\there"])
def test_a_key_has_the_same_rule_over_http_and_at_the_desk(site, key):
    rule = "1 to 200 visible ASCII characters without spaces"
    headers = {"Authorization": f"Bearer {site.tokens['app']}", "Idempotency-Key": key.encode()}
    refused = site.client.post("/v1/episodes", json=BODIES["/v1/episodes"], headers=headers)
    assert refused.status_code == 400
    assert rule in refused.json()["error"]
    with pytest.raises(Refusal, match=rule):
        site.desk.prepare("learn", {}, key)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"version": 0}', "application/x-www-form-urlencoded"),  # what curl --data says
        (b'{"version": 0}', None),
        (b"[1]", "application/json"),
        (b"{", "application/json; charset=utf-8"),
        (b"", "text/plain"),
    ],
)
def test_a_body_that_is_no_json_object_is_told_how_to_send_one(site, content, kind):
    headers = {"Authorization": f"Bearer {site.tokens['administrator']}", "Idempotency-Key": "k"}
    refused = site.client.post(
        "/v1/roll-back", content=content, headers=headers | ({"Content-Type": kind} if kind else {})
    )
    assert refused.status_code == 422
    found = "" if kind and "json" in kind else f"; this call has {kind or 'none'}"
    assert refused.json()["error"] == f"`body`: must be a JSON object, sent with Content-Type: application/json{found}"


def test_a_fallback_is_one_line_of_the_services_own_log(site, caplog, monkeypatch):
    """For the episode, once, and without the person and the context."""
    monkeypatch.setattr(type(site.desk.agent), "decide", lambda *_: 1 / 0)
    for _ in range(2):
        made = site.post("/v1/episodes", {"person": "secret-1", "context": {"age": 77, "lives": "secret"}}, key="k")
    site.post("/v1/policy", {"context": {"age": 77}})
    assert [record.getMessage() for record in caplog.records if record.name == "omg_trial"] == [
        f"episode {made.json()['episode']}: fixed (no certified plan: ZeroDivisionError)"
    ]
    assert "secret" not in caplog.text


@pytest.mark.parametrize("page", ["tutorial", "reference"])
def test_every_curl_of_the_guide_works(page, tmp_path, request):
    """In the order of the page, to a service that has just begun; the reference has one for every path."""
    text = (ROOT / "docs" / "trial" / f"{page}.md").read_text(encoding="utf-8").replace("\\\n", " ")
    site = Site(tmp_path, Desk(Trial.read(ROOT / "examples" / "adherence.toml"), Database(":memory:")))
    request.addfinalizer(site.service.end)
    names = {f"${role.upper()}": token for role, token in site.tokens.items()}
    names |= {"$TOKEN": site.tokens["app"], "$SITE": "", "http://127.0.0.1:8000": ""}
    called = set()
    for command in re.findall(r"^curl (.*)$", text, re.MULTILINE):
        if "$INCIDENT" in command:
            site.service.submit(
                lambda at: at.record(
                    "incident", {"severity": "yellow", "check": "gaps", "message": "an episode lacks a step"}
                )
            ).result()
            names["$INCIDENT"] = str(site.desk.state.incidents[-1].number)
        for name, value in names.items():
            command = command.replace(name, value)
        *options, path = shlex.split(command)
        pairs = list(zip(options[::2], options[1::2], strict=True))
        headers = dict(value.split(": ", 1) for option, value in pairs if option == "-H")
        [*bodies] = [json.loads(value) for option, value in pairs if option == "--json"]
        answer = site.client.request(
            "POST" if bodies else "GET", path, json=bodies[0] if bodies else None, headers=headers
        )
        assert answer.status_code == 200, f"{command}: {answer.text}"
        while path == "/v1/learn" and site.client.get("/v1/health").json()["version"] == 0:
            time.sleep(0.05)  # it learns beside its answers
        called.add(re.sub(r"(episodes|people|incidents)/\w+", r"\1/{}", path.partition("?")[0]))
    offered = {re.sub(r"{\w+}", "{}", path) for path in site.client.app.openapi()["paths"]}
    assert called <= offered | {"/metrics"}
    assert page == "tutorial" or called == {each for each in offered if each.startswith("/v1/")} - BY_HAND | {
        "/metrics"
    }


def test_a_body_that_is_too_large_is_refused(site):
    refused = site.post("/v1/episodes", {"person": "p1", "context": {"age": 1, "lives": "x" * 70_000}})
    assert refused.status_code == 413


def test_too_many_calls_are_refused(site, monkeypatch):
    monkeypatch.setitem(RATES, "app", 3.0)
    monkeypatch.setitem(RATES, "administrator", 3.0)
    statuses = [site.post("/v1/policy", BODIES["/v1/policy"]).status_code for _ in range(8)]
    assert statuses.count(200) >= 3
    assert 429 in statuses


@pytest.mark.parametrize("text", NASTY)
def test_a_nasty_text_is_data_or_is_refused(site, text):
    """In every text field: kept as it is, or refused with an error that the trial file's names explain; never a 500."""
    calls = {
        "/v1/episodes": {"person": "p1", "context": {"age": 40, "lives": text}},
        "/v1/episodes/3/decisions": {"step": 0, "state": text},
        "/v1/episodes/3/outcomes": {"step": 0, "next_state": text},
        "/v1/episodes/3/close": {"cause": text},
    }
    statuses = {path: site.post(path, body).status_code for path, body in calls.items()}
    assert set(statuses.values()) <= {200, 422}, statuses
    assert site.post("/v1/episodes", {"person": text, "context": CONTEXT}).status_code == 422
    assert json.loads(site.desk.state.episodes[3].context)["record"][1] == ["lives", text]
    assert site.post(f"/v1/people/{text}/withdraw", {}).status_code in (200, 404, 405)


def test_nothing_of_a_person_is_in_the_services_own_log(site, caplog):
    caplog.set_level(logging.DEBUG)
    site.post("/v1/episodes", {"person": "secret-person", "context": {"age": 77, "lives": "secret-place"}})
    site.post("/v1/episodes", {"person": "secret-person", "context": {"age": "secret", "x": 1}})
    site.desk.store.append = lambda events: 1 / 0
    assert site.post("/v1/episodes", {"person": "secret-2", "context": CONTEXT}).status_code == 503
    assert "secret" not in caplog.text
    assert "a call failed: ZeroDivisionError" in caplog.text


def test_the_document_has_the_names_and_limits_of_the_trial(site):
    """They are those of the models that parse: nothing is written twice."""
    schemas = site.client.get("/openapi.json").json()["components"]["schemas"]
    decide, report = schemas["Decide"]["properties"], schemas["Report"]["properties"]
    assert decide["state"]["enum"] == ["took it", "missed it"]
    assert (decide["step"]["minimum"], decide["step"]["exclusiveMaximum"]) == (0, 4)
    assert (report["reward"]["anyOf"][0]["minimum"], report["reward"]["anyOf"][0]["maximum"]) == (0.0, 1.0)
    assert list(schemas["Context"]["properties"]) == ["age", "lives"]
    assert schemas["Decided"]["properties"]["action"]["anyOf"][0]["enum"] == ["nothing", "reminder", "call"]


@pytest.mark.slow
def test_the_answers_are_as_documented(site):
    """Schemathesis makes calls from the OpenAPI document: no 500, and no answer that is not in it."""
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
    from schemathesis.specs.openapi.checks import positive_data_acceptance  # a call may be refused for what was before

    schema = schemathesis.openapi.from_asgi("/openapi.json", site.client.app)
    headers = {"Authorization": f"Bearer {site.tokens['administrator']}"}
    keys = itertools.count()
    for operation in schema.get_all_operations():
        endpoint = operation.ok()

        @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
        @given(case=endpoint.as_strategy())
        def check(case):
            response = case.call(headers=headers | {"Idempotency-Key": f"fresh-{next(keys)}"})
            assert response.status_code < 500 or response.status_code == 503, response.text
            case.validate_response(response, headers=headers, excluded_checks=[positive_data_acceptance])

        check()


def test_a_failure_to_publish_is_in_the_services_log(site, caplog, monkeypatch):
    monkeypatch.setattr(type(site.desk), "publish_model", lambda *_, **__: 1 / 0)
    episode = site.post("/v1/episodes", BODIES["/v1/episodes"]).json()["episode"]
    site.post(f"/v1/episodes/{episode}/close", {})
    for _ in range(500):
        if "publishing a model failed: ZeroDivisionError" in caplog.text:
            return
        time.sleep(0.01)
    pytest.fail("nothing was logged")


# What was left: kept connections, caches, redirects, readiness, one call's error.


def test_an_answer_on_a_kept_connection_waits_for_nothing():
    """Without TCP_NODELAY the second of two small packets waits 40 ms for the acknowledgement of the first."""
    with contextlib.closing(server._listener("127.0.0.1", 0)) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@pytest.mark.parametrize("path", ["/v1/health", "/v1/ready", "/v1/overview", "/v1/people/p1", "/nowhere", "/metrics"])
def test_no_answer_is_kept_by_a_cache(site, path):
    assert site.client.get(path).headers["Cache-Control"] == "no-store"
    answer = site.post("/v1/episodes", BODIES["/v1/episodes"])
    assert answer.headers["Cache-Control"] == "no-store"


def test_nobody_is_sent_to_another_host(site):
    answer = site.client.get("/v1/health/", headers={"Host": "elsewhere.example"}, follow_redirects=False)
    assert answer.status_code == 404
    assert "elsewhere" not in str(answer.headers)


def test_a_service_without_its_store_lives_and_is_not_ready(site, monkeypatch):
    assert site.client.get("/v1/ready").status_code == 200

    def gone():
        raise StoreError("it is gone")

    monkeypatch.setattr(site.desk.store, "reopen", gone)
    site.desk.lost = True
    assert site.client.get("/v1/health").status_code == 200
    answer = site.client.get("/v1/ready")
    assert (answer.status_code, answer.json()["status"]) == (503, "no store")


def test_a_call_that_fails_unexpectedly_fails_alone_and_once(site, monkeypatch, caplog):
    """The others of its batch are answered; the log of the service names the place of the error, and no person."""
    from omg_trial.handlers import table

    broken, whole = [], table.ROUTES["open"].handler

    def fail(at, call, target):
        if call.person == "unlucky-person":
            broken.append(call)
            raise KeyError("a secret about unlucky-person")
        return whole(at, call, target)

    monkeypatch.setitem(table.ROUTES, "open", table.ROUTES["open"]._replace(handler=fail))
    calls = [
        site.desk.prepare("open", {"person": name, "context": CONTEXT}, name) for name in ("p1", "unlucky-person", "p2")
    ]
    before = site.desk.state.number
    first, error, last = site.desk.answer(calls)
    assert [event.kind for event in site.desk.store.read(before)] == ["opened", "opened"]
    assert (json.loads(first.text)["episode"], json.loads(last.text)["episode"]) == (before + 1, before + 2)
    assert (error.status, len(broken)) == (500, 1)
    assert "KeyError" in error.message
    answer = site.post("/v1/episodes", {"person": "unlucky-person", "context": CONTEXT})
    assert answer.status_code == 500
    assert "in fail" in caplog.text
    assert "KeyError" in caplog.text
    assert "secret" not in caplog.text + answer.text
    assert "unlucky" not in caplog.text + answer.text
    assert not site.desk.lost
