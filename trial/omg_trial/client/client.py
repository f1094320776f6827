"""The client of an app: it never decides twice, and goes on without a network as far as that is possible."""

from __future__ import annotations

import os
import threading
import time
from typing import Any
from urllib.parse import quote

import httpx

from omg_cmdp.validation import instance_of, one_of, positive_integer, positive_number
from omg_trial.client.errors import OlderLogError, RefusedError, UnreachableError
from omg_trial.client.outbox import Outbox, QueuedCall

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two attempts; each pause is twice the one before it."""
KEPT_FOR_LATER = (401, 403)
"""Refusals of the client, and not of a call: what waits goes on waiting."""
INVALID, BUSY, FAILED = 422, 429, 500
STEERING = ("pause", "resume", "stop", "learn", "publish", "roll-back", "withdraw")
"""Calls of administrators."""


class Client:
    """Asks a service for decisions, and tells it what came of them. Several threads may share one.

    Answers are those of the service, as dictionaries. A call that is not answered is repeated with the same key, and so
    is never done twice.

    Parameters
    ----------
    url : str
        The address of the service.
    token : str
        A token with the role "app".
    queue : path or None, default None
        A file for calls that must survive a crash of the app; None keeps them in memory.
    patience : float, default 10.0
        Seconds for which a call is repeated before `UnreachableError`: long enough for a restart of the service.
    transport : httpx.BaseTransport or None, default None
        Another way to send calls, for tests.

    Examples
    --------
    >>> import tempfile
    >>> from omg_trial.tokens import Tokens
    >>> from omg_trial.trial_file import EXAMPLE, Trial
    >>> from omg_trial.web.server import serving
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with serving(Trial.parse(EXAMPLE), f"{folder}/trial.db", f"{folder}/tokens") as url:
    ...         with Client(url, Tokens(f"{folder}/tokens").add("app", "phones")) as client:
    ...             episode = client.open("p1", "alone")["episode"]
    ...             decision = client.decide(episode, 0, "took it")
    ...             client.report(episode, 0, reward=1.0, next_state="took it"), client.close(episode)
    (True, True)
    >>> 0.2 <= decision["probability"] <= 0.8
    True
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        queue: str | os.PathLike[str] | None = None,
        patience: float = 10.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise ValueError(f"`url` must begin with http:// or https://, got {url!r:.60}")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
            raise ValueError("`token` must be a text of visible ASCII characters, as `omg-trial token` prints it")
        if transport is not None:
            instance_of("transport", transport, httpx.BaseTransport)
        self.patience = positive_number("patience", patience)
        try:
            self._http = httpx.Client(
                base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=self.patience, transport=transport
            )
        except httpx.InvalidURL as error:
            raise ValueError(f"`url` must be an address, got {url!r:.60}: {error}") from None
        self._outbox = Outbox(queue)
        self._lock = threading.RLock()  # one call at a time: their order is part of what they say

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_connection()

    def open(self, person: str, context: Any, occasion: str | None = None, *, available: bool = True) -> dict[str, Any]:
        """Begin an episode; this needs a network. Until it is closed, the same call returns the same episode.

        `occasion` names the decision point, such as a date: it exists once for each person, whoever opens it. If the
        service or another phone has closed the episode, its calls are refused with 409: `close` it here too. For
        somebody who is not `available`, nothing is drawn in the whole episode.
        """
        with self._lock:
            # On disk before it is sent: after a crash the same call has the same key, and opens no second episode.
            # What is as usual is left out: calls that an older client has kept stay the same calls.
            named = {} if occasion is None else {"occasion": occasion}
            body = {"person": person, "context": context, **named, **({} if available else {"available": False})}
            call = self._outbox.call("/v1/episodes", body, waits=False)
            opened = self._ask(call)
            self._outbox.keep(opened, call)
            return opened

    def enrol(self, person: str, **about: str | None) -> dict[str, Any]:
        """Take a person in: `arm`, `zone`, `consent_from`, `consent_to`, `end`; or change these. It needs a network."""
        return self._do("/v1/people", {"person": person, **about})

    def steer(self, what: str, **fields: str | int) -> dict[str, Any]:
        """Pause, resume, stop, learn, publish, roll back, or withdraw a person; for administrators, with a network.

        `what` is one of `STEERING`, and `fields` are those of the call's body.
        """
        one_of("what", what, STEERING)
        if what != "withdraw":
            return self._do(f"/v1/{what}", fields)
        if "person" not in fields:
            raise ValueError("`withdraw` needs a `person`")
        return self._do(f"/v1/people/{quote(str(fields.pop('person')), safe='')}/withdraw", fields)

    def decide(self, episode: int, step: int, state: str, *, available: bool = True) -> dict[str, Any]:
        """Return the decision for a step; nothing is drawn for somebody who is not `available`.

        Without a network it is the one that the service would make, from the table with which the episode was opened;
        the service hears of it later, and its `event` is None. With weekly limits the table is an allowance, which
        ends with the person's week. Without a table, or after that, `UnreachableError` is raised.
        """
        path, body = _path(episode, "decisions"), {"step": step, "state": state, "available": available}
        with self._lock:
            call = self._outbox.call(path, body, waits=False)
            try:
                decided = self._ask(call)
            except UnreachableError:
                known = self._outbox.known_decision(episode, step, state) if available else None
                if known is None:
                    raise
                decided, proof = known
                # The service would draw the same; if it had heard the first call, it gives the same answer to this one.
                if not self._outbox.tells(path, step, state):
                    self._outbox.call(path, {**body, "action": decided["action"], **proof}, waits=True)
            self._outbox.done(call)
            return decided

    def report(
        self, episode: int, step: int, *, reward: float | None = None, next_state: str | None = None, revision: int = 0
    ) -> bool:
        """Say what came of a step. Return whether the service knows it; if not, it waits for a network."""
        instance_of("revision", revision, int)
        body = {"step": step, "reward": reward, "next_state": next_state, "revision": revision}
        return self._tell(_path(episode, "outcomes"), body)

    def close(self, episode: int, cause: str = "finished") -> bool:
        """End an episode. Return whether the service knows it; if not, it waits for a network."""
        instance_of("cause", cause, str)
        path = _path(episode, "close")
        with self._lock:
            try:
                known = self._tell(path, {"cause": cause})
            except RefusedError as refusal:
                if refusal.status != INVALID:  # the episode has ended, or the call waits
                    self._outbox.forget(episode)
                raise
            self._outbox.forget(episode)
            return known

    def send(self) -> int:
        """Send the calls that wait, in their order, and return their number.

        `UnreachableError` if the service does not answer: the rest goes on waiting. A call that is refused is set
        aside, see `refused`, and the others go on.
        """
        with self._lock:
            return self._send()

    def refused(self) -> list[tuple[str, dict[str, Any], str]]:
        """Return the calls that waited and were refused: path, body, and why. Somebody has to look at them."""
        with self._lock:
            return self._outbox.refused()

    def trust(self) -> None:
        """Go on with a service whose log is older than what was seen, after the team has decided to.

        Numbers of episodes may have become those of other people: what waits is set aside, see `refused`. Open the
        episodes that are under way again, by their occasions.
        """
        with self._lock:
            self._outbox.trust()

    def close_connection(self) -> None:
        """Let go of the network and of the file."""
        self._http.close()
        self._outbox.close()

    def _do(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of a call that is done with then."""
        with self._lock:
            call = self._outbox.call(path, body, waits=False)
            answer = self._ask(call)
            self._outbox.done(call)
            return answer

    def _tell(self, path: str, body: dict[str, Any]) -> bool:
        with self._lock:
            call = self._outbox.call(path, body, waits=True)
            try:
                self._send(call)
            except UnreachableError:
                return False
            return True

    def _send(self, own: QueuedCall | None = None) -> int:
        """Send the calls that wait. A refusal of `own` is raised; other calls that are refused are set aside."""
        sent = 0
        for call in self._outbox.waiting():
            try:
                self._answer(call)
                self._outbox.done(call)
                sent += 1
            except RefusedError as refusal:
                if refusal.status in KEPT_FOR_LATER or isinstance(refusal, OlderLogError):
                    raise
                if own is not None and call.key == own.key:
                    self._outbox.done(call)
                    raise
                self._outbox.refuse(call, str(refusal))
        return sent

    def _ask(self, call: QueuedCall) -> dict[str, Any]:
        """Return the answer of a call that cannot wait, after the calls that do."""
        self._send()
        try:
            return self._answer(call)
        except RefusedError:
            self._outbox.done(call)
            raise

    def _answer(self, call: QueuedCall) -> dict[str, Any]:
        """Send a call until the service answers it."""
        end, pause = time.monotonic() + self.patience, FIRST_PAUSE
        while True:
            try:
                response = self._http.post(call.path, json=call.body, headers=self._headers(call))
            except httpx.TransportError as error:
                cause = type(error).__name__
            else:
                answer = self._answer_in(response)
                if answer is not None:
                    return answer
                cause = f"status {response.status_code}"
                pause = max(pause, _seconds(response.headers.get("Retry-After")))
            if time.monotonic() + pause > end:
                address = self._http.base_url
                raise UnreachableError(f"{address} did not answer for {self.patience:g} seconds: {cause}")
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _answer_in(self, response: httpx.Response) -> dict[str, Any] | None:
        """Return the answer; None if the call must be sent again, as after an answer of a proxy."""
        try:
            content = response.json()
        except (RecursionError, ValueError):
            return None
        if not isinstance(content, dict):
            return None
        head = response.headers.get("Log-Head")
        if response.is_success and head is not None:
            if _number(head) > _number(self._outbox.seen):
                self._outbox.seen = head
            return content
        # A call that fails unexpectedly (500) would fail again: it is set aside like one that is refused.
        final = response.is_client_error or response.status_code == FAILED
        if final and response.status_code != BUSY and "error" in content:
            raise (RefusedError if head is None else OlderLogError)(response.status_code, str(content["error"]))
        return None

    def _headers(self, call: QueuedCall) -> dict[str, str]:
        seen = self._outbox.seen
        return {"Idempotency-Key": call.key, **({} if seen is None else {"Log-Seen": seen})}


def _path(episode: int, what: str) -> str:
    return f"/v1/episodes/{positive_integer('episode', episode)}/{what}"


def _number(mark: str | None) -> int:
    return 0 if mark is None else int(mark.partition(":")[0])


def _seconds(text: str | None) -> float:
    return min(float(text), LONGEST_PAUSE) if text and text.isdecimal() else 0.0
