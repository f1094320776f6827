"""Every path × method × role; and walks along answers, and a thousand connections, to a process of its own."""

import collections
import contextlib
import itertools
import json
import re
import resource
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import Flaky

from omg_trial.log.database import Database
from omg_trial.replay import replay
from omg_trial.tokens import ROLES, Tokens
from omg_trial.trial_file.trial import Trial
from trial.tests.test_web import BODIES, CONTEXT, MAY, Site
from trial.tests.trials import TEXT, desk

ANYBODY = " ".join(ROLES)
READ = {
    **{"/v1/overview": "analyst blinded", "/v1/people/p1": "analyst blinded", "/v1/events": "follower analyst"},
    **{"/metrics": "analyst", "/v1/health": ANYBODY, "/v1/ready": ANYBODY, "/": ANYBODY},
}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")
TABLE = [("GET", path, roles) for path, roles in READ.items()] + [("POST", path, roles) for path, roles in MAY.items()]


@contextlib.contextmanager
def made(folder):
    found = Site(folder, desk())
    found.post("/v1/episodes", BODIES["/v1/episodes"])
    yield found
    found.service.end()


@pytest.fixture
def site(tmp_path):
    with made(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    with made(tmp_path_factory.mktemp("site")) as found:
        yield found


def ask(site, method, path, token, number):
    headers = {"Idempotency-Key": f"key-{number}"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    body = BODIES.get(path, {}) if method not in ("GET", "HEAD") else None
    return site.client.request(method, path, json=body, headers=headers).status_code


def test_the_table_has_every_path(untouched):
    offered = {re.sub(r"{\w+}", "{}", path) for path in untouched.client.app.openapi()["paths"]}
    assert {re.sub(r"/(\d+|p1)(?=/|$)", "/{}", path) for _, path, _ in TABLE} - {"/"} == offered


@pytest.mark.parametrize("path", sorted({path for _, path, _ in TABLE}))
def test_no_other_method_is_answered_whoever_asks(untouched, path):
    """405 for everybody; and nothing is written to the log."""
    site = untouched
    own, before = {method for method, each, _ in TABLE if each == path}, site.desk.state.number
    for number, method in enumerate(set(METHODS) - own):
        for token in (None, "no such token", site.tokens["administrator"]):
            assert ask(site, method, path, token, number) == 405, (method, token)
    assert site.desk.state.number == before


@pytest.mark.parametrize(("method", "path", "roles"), TABLE)
def test_a_role_does_what_its_row_says_and_a_refused_call_changes_nothing(site, method, path, roles):
    before, may = site.desk.state.number, {*roles.split(), "administrator"}
    open_to_all = may == {*ROLES}
    for number, token in enumerate((None, "no such token", site.tokens["app"][:-1])):
        assert (ask(site, method, path, token, number) == 401) != open_to_all
    for role in set(ROLES) - may:
        assert ask(site, method, path, site.tokens[role], role) == 403, role
    assert site.desk.state.number == before
    for role in may:
        assert ask(site, method, path, site.tokens[role], role) not in (401, 403, 405, 500), role


@contextlib.contextmanager
def process(folder, role="app"):
    """Yield the address of a service in a process of its own, and a token."""
    (folder / "trial.toml").write_text(TEXT)
    token = Tokens(folder / "trial.tokens").add(role, "whoever calls")
    command = [sys.executable, "-m", "omg_trial", "serve", str(folder / "trial.toml"), "--new", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        try:
            yield serving.stdout.readline().split()[-1], token
        finally:
            serving.send_signal(signal.SIGTERM)
            serving.wait(60)
    assert serving.returncode == 0


@pytest.mark.slow
def test_a_thousand_connections_of_which_half_are_slow(tmp_path):
    """Twice as many as are allowed: whoever asks again is answered, once for each key."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        with process(tmp_path) as (address, token), contextlib.ExitStack() as stack:
            port = int(address.rpartition(":")[2])
            for number in range(500):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                with contextlib.suppress(OSError):
                    slow.sendall((b"", b"POST /v1/episodes HTTP/1.1\r\nHost: x\r\n", b"GET /v1/he")[number % 3])
            headers = {"Authorization": f"Bearer {token}"}

            def opened(number):
                """Open an episode on a connection of its own, as an app does: again with the same key."""
                body = {"person": f"p{number}", "context": CONTEXT}
                for _ in range(20):
                    with contextlib.suppress(httpx.TransportError):
                        made = httpx.post(
                            f"{address}/v1/episodes",
                            json=body,
                            headers=headers | {"Idempotency-Key": f"k{number}", "Connection": "keep-alive"},
                            timeout=60.0,
                        )
                        if made.status_code not in (429, 503):
                            return made.status_code, json.loads(made.text).get("episode")
                return None

            with ThreadPoolExecutor(64) as threads:
                answers = list(threads.map(opened, range(500)))
            assert {status for status, _ in answers} == {200}
            assert len({episode for _, episode in answers}) == 500
            assert httpx.get(f"{address}/v1/ready", timeout=30.0).status_code == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


FOLLOWING = {
    "/v1/episodes": ("decide", "report", "close"),
    "/v1/episodes/{episode}/decisions": ("decide", "report", "close"),
    "/v1/episodes/{episode}/close": ("report",),
}
"""Calls about the episode that an answer names; those about people Schemathesis finds by itself."""


@pytest.mark.slow
def test_calls_that_follow_from_answers_are_answered_as_documented_and_replay(tmp_path):
    """Schemathesis walks from answers to calls about what they name; afterwards the log replays to the bit."""
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
    from schemathesis.specs.openapi import checks

    # A call may be refused for what was before it; and accepted, as its wrong token and key are replaced.
    unfit, keys = [checks.positive_data_acceptance, checks.negative_data_rejection], itertools.count()
    answered, wrong = collections.Counter(), []
    with process(tmp_path, "administrator") as (address, token):
        schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
        for path, names in FOLLOWING.items():
            schema.raw_schema["paths"][path]["post"]["responses"]["200"]["links"] = {
                name: {"operationId": name, "parameters": {"episode": "$response.body#/episode"}} for name in names
            }

        class Walk(schema.as_state_machine()):
            def get_call_kwargs(self, case):
                return {"headers": {"Authorization": f"Bearer {token}", "Idempotency-Key": f"fresh-{next(keys)}"}}

            def validate_response(self, response, case, **options):
                answered[case.operation.label, response.status_code] += 1
                try:
                    assert response.status_code != 500
                    case.validate_response(response, excluded_checks=unfit)
                except (AssertionError, BaseExceptionGroup) as error:
                    wrong.append(f"{case.as_curl_command()}: {error!r}")

        few = settings(max_examples=20, stateful_step_count=15, deadline=None, phases=[Phase.generate], database=None)
        for walk in range(6):
            with contextlib.suppress(Flaky):  # the same calls have other answers later, as the service remembers
                seed(walk)(Walk).run(settings=settings(few, suppress_health_check=list(HealthCheck)))
    assert wrong == []
    for label in ("", "/{episode}/decisions", "/{episode}/outcomes", "/{episode}/close"):
        assert answered[f"POST /v1/episodes{label}", 200] > 0
    with contextlib.closing(Database(tmp_path / "trial.db", writing=False)) as store:
        assert replay(Trial.read(tmp_path / "trial.toml"), store.read()).differences == []
