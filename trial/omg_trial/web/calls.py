"""Calls over HTTP. FastAPI documents their paths, by the signatures made here, and does not read them.

Its own way of reading a request, by dependencies, takes longer than a decision: fifty clients would wait for it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Header, Path, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from omg_trial.contract import KEY, KEY_RULE, Refusal, calls
from omg_trial.log.events import MARK

LARGEST_BODY = 64 * 1024
JSON = "application/json"

Key = Annotated[str, Header(alias="Idempotency-Key", pattern=f"^{KEY.pattern}$")]
Seen = Annotated[str, Header(alias="Log-Seen", pattern=f"^({MARK.pattern})?$", default_factory=str)]
"""The last `Log-Head` that the caller received. A log without this event is not the one that the caller knows."""


def route_of(answer: Callable[[Scope, bytes], Awaitable[Response]]) -> type[APIRoute]:
    """Return the kind of route that gives a POST, with its body as it came, to a function."""

    class CallRoute(APIRoute):
        async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] != "POST":
                await super().handle(scope, receive, send)  # which refuses it
                return
            response = await answer(scope, await _body(receive))
            await response(scope, receive, send)

    return CallRoute


def documented(model: type[BaseModel], token: Any) -> Callable[..., Any]:
    """Return a function with the signature of a call, which FastAPI makes the document of."""

    async def call() -> None: ...

    kinds: dict[str, Any] = {"body": model, "token": token}
    if issubclass(model, calls.Call):
        kinds |= {"key": Key, "seen": Seen}
        kinds |= {} if model.target is None else {model.target: Annotated[calls.TARGETS[model.target], Path()]}
    vars(call)["__signature__"] = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in kinds.items()]
    )
    return call


async def _body(receive: Receive) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            raise HTTPException(413, f"the body has more than {LARGEST_BODY} bytes")
        if not message.get("more_body", False):
            return body


def json_object(headers: dict[bytes, bytes], body: bytes) -> dict[str, Any]:
    """Return the JSON object that is the body of a call."""
    sent = headers.get(b"content-type", b"none").decode("latin-1")
    is_json = sent.partition(";")[0].strip().lower() == JSON
    try:
        found = json.loads(body, object_pairs_hook=_object) if is_json else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        wrong = "" if is_json else f"; this call has {sent:.60}"
        raise Refusal(422, f"`body`: must be a JSON object, sent with Content-Type: {JSON}{wrong}")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; one that names a field twice would be another call to whoever reads the first."""
    if len(found := dict(pairs)) < len(pairs):
        raise Refusal(422, "`body`: names a field twice")
    return found


def key_and_seen(headers: dict[bytes, bytes]) -> tuple[str, str | None]:
    """Return the key of a call, and the last event that the caller knows of."""
    key, seen = (headers.get(name, b"").decode("latin-1") for name in (b"idempotency-key", b"log-seen"))
    if not KEY.fullmatch(key):
        raise Refusal(400, f"the header Idempotency-Key must be {KEY_RULE}: a new one for each call")
    if seen and not MARK.fullmatch(seen):
        raise Refusal(422, "`Log-Seen`: must be NUMBER:HASH, as the last answer had it in Log-Head")
    return key, seen or None
