"""Every path × method × role; and a thousand connections to a process of its own."""

import contextlib
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

from omg_trial.tokens import ROLES, Tokens
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
def process(folder):
    """Yield the address of a service in a process of its own, and a token for an app."""
    (folder / "trial.toml").write_text(TEXT)
    token = Tokens(folder / "trial.tokens").add("app", "the phones")
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
