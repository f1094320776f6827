"""Slow clients: they are cut off, and others are answered meanwhile."""

import contextlib
import socket
import time

import httpx
import pytest

from omg_trial.web import connections, server
from trial.tests.trials import trial

HEAD = b"POST /v1/episodes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
SLOW = {
    "says nothing": b"",
    "half a head": b"POST /v1/episodes HTTP/1.1\r\nHost: x\r\n",
    "half a body": HEAD + b'{"person"',
    "answered, then half a head": b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/",
}


@pytest.fixture
def address(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "guarded", lambda: connections.guarded(seconds=0.4, most=60))
    with server.serving(trial(), tmp_path / "x.db", tmp_path / "tokens") as found:
        yield found


def connect(address):
    return socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))


def ended(connection):
    """Return whether the service has closed a connection."""
    connection.settimeout(10.0)
    with contextlib.suppress(ConnectionError):
        while connection.recv(65536):
            pass
    return True


def asked(other):
    """Return an answer; like an app, ask once more if the connection was closed to make room."""
    try:
        return other.get("/v1/health", headers={"Connection": "close"}, timeout=5.0)
    except httpx.TransportError:
        return other.get("/v1/health", headers={"Connection": "close"}, timeout=5.0)


def test_others_are_answered_beside_three_hundred_slow_clients(address):
    """Five times as many as connections are allowed; each sends a byte now and then."""
    with contextlib.ExitStack() as stack, httpx.Client(base_url=address) as other:
        slow = [stack.enter_context(connect(address)) for _ in range(300)]
        for number, each in enumerate(slow):
            with contextlib.suppress(OSError):
                each.sendall(list(SLOW.values())[number % 4])
        for _ in range(8):
            assert asked(other).status_code == 200
            for each in slow:
                with contextlib.suppress(OSError):
                    each.send(b"x")
            time.sleep(0.1)
        assert all(ended(each) for each in slow)


def test_a_slow_client_is_cut_off_and_a_byte_gains_no_time(address):
    with contextlib.ExitStack() as stack:
        slow = {name: stack.enter_context(connect(address)) for name in SLOW}
        for name, each in slow.items():
            each.sendall(SLOW[name])
        end, left = time.monotonic() + 10.0, set(slow)
        while left and time.monotonic() < end:
            time.sleep(0.05)
            for name in sorted(left):
                try:
                    slow[name].send(b"x")
                except ConnectionError:
                    left.discard(name)
        assert not left
        assert httpx.get(f"{address}/v1/health").status_code == 200


def test_a_head_without_an_end_is_refused(address):
    """Whatever parser uvicorn finds: one of them keeps a head of any size, and a single client takes all memory."""
    with connect(address) as endless:
        endless.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 12_000)
        assert endless.recv(100).startswith(b"HTTP/1.1 400")


def test_an_answer_that_takes_longer_is_waited_for(address, monkeypatch):
    """Only a client is hurried, not the service."""
    from omg_trial.web import app

    shown = app._health
    monkeypatch.setattr(app, "_health", lambda at: time.sleep(0.8) or shown(at))
    assert httpx.get(f"{address}/v1/health").json()["status"] == "ready"


def test_nobody_can_connect_before_the_service_can_answer(tmp_path, monkeypatch):
    seen = []

    def rehearse(*_, **__):
        with contextlib.closing(socket.socket()) as probe:
            seen.append(probe.connect_ex(("127.0.0.1", port)))

    monkeypatch.setattr(server, "rehearse", rehearse)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    with server.serving(trial(), tmp_path / "x.db", tmp_path / "tokens", port=port) as found:
        assert httpx.get(f"{found}/v1/ready").status_code == 200
    assert seen
    assert all(seen)
