"""Alerts: what is sent, to local servers of the standard library, and what is not."""

import contextlib
import email
import http.server
import json
import re
import socketserver
import threading
import time
from pathlib import Path

import pytest

from omg_trial import service as services
from omg_trial.contract import Refusal
from omg_trial.desk import Desk
from omg_trial.log.database import Database
from omg_trial.operation import alerts as sending
from omg_trial.operation.channels import Mail, Message, channels
from omg_trial.service import Service
from omg_trial.trial_file.alerts import Alerts
from omg_trial.watching import incidents
from omg_trial.watching.checks import Finding
from omg_trial.watching.process import Process
from trial.tests.trials import Clock, Trialist, desk, person, trial

MESSAGE = Message("[adherence] red: clock", "It jumped.\n", {"check": "clock", "incident": 7})


@contextlib.contextmanager
def listening(handler, server=http.server.ThreadingHTTPServer):
    with server(("127.0.0.1", 0), handler) as found:
        found.taken, found.answers = [], []
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield found, found.server_address[1]
        finally:
            found.shutdown()
            thread.join()


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status == 200:
            self.server.taken.append((dict(self.headers), body))
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


class Dripping(http.server.BaseHTTPRequestHandler):
    """Sends a byte now and then: no single one is late."""

    def do_POST(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        with contextlib.suppress(OSError):
            while not self.server.ended:
                self.wfile.write(b"a")
                time.sleep(0.02)

    def log_message(self, *_):
        pass


def test_a_server_that_takes_a_message_for_ever_turns_the_check_yellow(monkeypatch):
    monkeypatch.setattr(sending, "LONGEST_SENDING", 0.1)
    process = Process(Clock())
    with listening(Dripping) as (server, port):
        server.ended = False
        [channel] = channels(Alerts(webhook=f"http://127.0.0.1:{port}/hook"))
        courier = sending.Courier(channel, lambda task: None, process)
        due = [sending.Due(7, MESSAGE, {"incident": 7})]
        courier.hand_over(due)
        assert process.unsent == {}
        time.sleep(0.3)
        courier.hand_over(due)
        assert process.unsent == {"webhook": "no whole answer"}
        server.ended = True


class Post(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs."""

    def handle(self):
        self.wfile.write(b"220 mail\r\n")
        for line in self.rfile:
            said = line.decode().strip().upper()
            if said == "DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.taken.append(email.message_from_bytes(b"".join(lines)))
            self.wfile.write(b"221 bye\r\n" if said == "QUIT" else b"250 ok\r\n")
            if said == "QUIT":
                return


def mail(port, **more):
    return Alerts(smtp=f"127.0.0.1:{port}", sender="trial@example.org", to=("team@example.org",), **more)


def until(holds):
    end = time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_webhook_gets_the_message_with_its_token_from_the_environment(monkeypatch):
    with listening(Hook) as (server, port):
        monkeypatch.setenv("HOOK", f"http://127.0.0.1:{port}/a-secret-path")
        monkeypatch.setenv("TOKEN", "s3cret")
        [channel] = channels(Alerts(webhook="env:HOOK", webhook_token="env:TOKEN"))
        channel.send(MESSAGE)
        [(headers, body)] = server.taken
        assert headers["Authorization"] == "Bearer s3cret"
        assert (body["check"], body["incident"], body["text"]) == ("clock", 7, "[adherence] red: clock\nIt jumped.\n")
        server.answers += [302, 500]
        for _ in range(2):  # a redirect is not followed: the token would go elsewhere
            with pytest.raises(OSError, match=r"30|50"):
                channel.send(MESSAGE)
        assert len(server.taken) == 1
    monkeypatch.delenv("TOKEN")
    with pytest.raises(ValueError, match="environment variable TOKEN, which cannot be read"):
        channels(Alerts(webhook="env:HOOK", webhook_token="env:TOKEN"))


def test_a_mail_server_gets_the_message():
    with listening(Post, socketserver.ThreadingTCPServer) as (server, port):
        [channel] = channels(mail(port, security="none"))
        channel.send(MESSAGE)
        [taken] = server.taken
        assert (taken["Subject"], taken["To"]) == (MESSAGE.subject, "team@example.org")
        assert taken.get_payload().strip() == "It jumped."
        with pytest.raises(Exception, match="STARTTLS"):  # never in the clear if the file does not say so
            Mail(mail(port)).send(MESSAGE)
        assert len(server.taken) == 1


class Scene:
    """A trial with one channel, which refuses as often as it is told; `look` is what the service does every minute."""

    def __init__(self, extra="", store=None, clock=None):
        self.desk = desk(extra, store=store, clock=clock or Clock())
        self.process, self.taken, self.refusals = Process(self.desk.clock), [], 0
        self.name, self._one = "webhook", threading.Lock()
        self.courier = sending.Courier(self, self.at_desk, self.process)

    def at_desk(self, task):
        with self._one:
            return task(self.desk)

    def send(self, message):
        if self.refusals:
            self.refusals -= 1
            raise OSError("https://a-secret-address refused it")
        self.taken.append(message)

    def look(self, *found):
        _found[:] = [Finding(*each) for each in found]
        while True:  # every minute
            self.courier.look(*incidents.tick(self.at_desk, self.process))
            self.courier._thread.join()
            if not self.process.unsent:
                break
        return [message.facts for message in self.taken]

    def again(self):
        """The same log, served anew."""
        return Scene(store=self.desk.store, clock=self.desk.clock)


JUMPED = ("clock", "red", "it jumped")
_found = []
"""What the checks find."""


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    monkeypatch.setattr(incidents, "findings", lambda _: list(_found))
    _found.clear()


def test_an_incident_is_sent_once_until_it_is_taken_and_after_a_start_not_again(caplog):
    at = Scene()
    at.refusals = 3
    sent = at.look(JUMPED, ("gaps", "green", "none"))
    [incident] = at.desk.state.incidents
    assert [(each["check"], each["incident"]) for each in sent] == [("clock", incident.number)]
    assert "OSError; again in a minute" in caplog.text
    assert "secret" not in caplog.text
    assert at.look(JUMPED) == sent
    assert [event.body for event in at.desk.store.read() if event.kind == "alerted"] == [
        {"channel": "webhook", "incident": incident.number}
    ]
    at = at.again()
    assert at.look(JUMPED) == []
    for minutes in (1, 9, 2, 9):  # it flaps: what is better for less than ten minutes is no end
        at.desk.clock.forward(minutes=minutes)
        assert at.look(("clock", "green", "it is back") if minutes != 2 else JUMPED) == []
    assert [each.severity for each in at.desk.state.incidents] == ["red"]
    at.desk.clock.forward(minutes=10)
    assert at.look(("clock", "green", "it is back")) == []
    assert at.look(JUMPED) == []  # half an hour after the first alert: it flaps, and the team knows
    assert [each.severity for each in at.desk.state.incidents] == ["red", "green", "red"]
    at.desk.clock.forward(minutes=30)
    assert len(at.look(JUMPED)) == 1


def test_what_is_acknowledged_is_not_sent_and_has_its_note():
    at = Scene()
    at.desk.record("incident", {"severity": "red", "check": "clock", "message": "it jumped"})
    number = at.desk.state.incidents[0].number
    at.desk.call("acknowledge", {"incident": number, "note": "we are on it"})
    assert at.look(JUMPED) == []
    assert at.desk.state.incidents[0].note == "we are on it"
    for incident, status in ((number, 409), (number + 1, 404)):
        with pytest.raises(Refusal) as refused:
            at.desk.call("acknowledge", {"incident": incident, "note": "again"})
        assert refused.value.status == status


def test_a_store_that_is_lost_is_told_although_nothing_can_be_written():
    at, lost = Scene(), ("store", "red", "the log was changed")
    at.desk.lost = True
    number = at.desk.state.number
    assert [(each["check"], each["incident"]) for each in at.look(lost)] == [("store", None)]
    assert len(at.look(lost)) == 1
    assert at.desk.state.number == number


def test_a_digest_comes_once_a_day_and_names_nobody():
    clock = Clock()
    at = Scene('[alerts]\ndigest = "12:00"\n', clock=clock)
    Trialist(at.desk, seed=0).play(2)
    at.desk.call("open", {"person": "a-very-secret-name", "context": person(1)})
    for hours in (0, 4, 1, 24):
        clock.forward(hours=hours)
        at.look(JUMPED)
    digests = [each for each in at.taken if "digest" in each.facts]
    assert [each.facts["digest"] for each in digests] == ["2026-11-02", "2026-11-03"]
    assert "episodes under way" in digests[0].text
    assert "secret" not in str(at.taken)


def test_a_server_that_does_not_answer_holds_up_no_decision(monkeypatch):
    monkeypatch.setattr(services, "TICK_SECONDS", 0.02)
    begun, may_end, taken = threading.Event(), threading.Event(), []

    class Hanging:
        name = "webhook"

        def send(self, message):
            begun.set()
            may_end.wait(20)
            taken.append(message)

    at = desk()
    _found[:] = [Finding(*JUMPED)]
    service = Service(at, [Hanging()])
    try:
        assert begun.wait(20)
        call = at.prepare("open", {"person": "p1", "context": person(1)}, "k")
        assert service.submit(call).result(timeout=20).mark
        assert taken == []
        may_end.set()
        until(lambda: at.state.incidents[0].alerted == ("webhook",))
    finally:
        may_end.set()
        service.end()


@pytest.mark.parametrize(
    "wrong",
    ['password = "plain"', 'smtp = "h:25"', 'webhook = "ftp://x"', 'to = ["nobody"]', 'webhook = "https://a:b@c"'],
)
def test_a_file_with_a_secret_or_half_an_address_is_refused(wrong):
    with pytest.raises(ValueError, match="alerts"):
        trial(f"[alerts]\n{wrong}\n")


def test_the_guide_has_every_key():
    page = (Path(__file__).parent.parent.parent / "docs/trial/operation.md").read_text(encoding="utf-8")
    [table] = re.findall(r"^```\n(\[alerts\]\n.*?)```", page, re.MULTILINE | re.DOTALL)
    assert trial(table).alerts.model_fields_set == set(Alerts.model_fields)


def test_alerts_may_change_under_way():
    store, clock = Database(":memory:"), Clock()
    desk(store=store, clock=clock)
    Desk(trial('[alerts]\nwebhook = "https://hooks.example.org/x"\n'), store, clock=clock)


def test_what_was_told_by_a_clock_that_was_ahead_keeps_nothing_quiet():
    at = Scene()
    assert len(at.look(JUMPED)) == 1
    at.desk.record("incident", {"severity": "green", "check": "clock", "message": "it is back"})
    at.desk.clock.forward(days=-3)
    at.desk = Desk(at.desk.trial, at.desk.store, clock=at.desk.clock, correct_clock=True)
    assert len(at.look(JUMPED)) == 2
