"""Paths that only read: the overview, a person's history, metrics, and the page that shows them."""

import asyncio
import contextlib
import importlib.resources
import itertools
import json
import math
import secrets
import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from omg_trial.contract.calls import KeyedCall, Look, Person
from omg_trial.log.database import StoreError
from omg_trial.log.events import canonical
from omg_trial.service import Service
from omg_trial.tokens import Token
from omg_trial.watching.losses import watch
from omg_trial.watching.overview import history, overview
from omg_trial.watching.view import TrialView
from omg_trial.web.metrics import Metrics

_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
# The page has its own files and asks its own service; it is nobody's frame, and nothing else is loaded or sent.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
LOOK_SECONDS = 600.0
"""Seconds in which a reader who asks for the same again has not looked twice."""
EVENTS, TOGETHER = 500, 50
"""Events of the log in one answer, and those that are read at once."""


def add_views(app: FastAPI, service: Service, metrics: Metrics, role: Callable[..., Any]) -> None:
    """Add the paths that only look. What takes time is computed outside the thread that answers calls."""
    process, one_at_a_time = service.process, asyncio.Lock()
    analyst, reader = role("analyst"), role("analyst", "blinded")
    looks: dict[tuple[str, str, str | None], float] = {}

    async def note(token: Token, what: str, person: str | None = None) -> None:
        """Note in the log who looks at what. A page that stays open asks again and again: that is one look."""
        look, now = (token.actor, what, person), time.monotonic()
        if now - looks.get(look, -math.inf) > LOOK_SECONDS:
            call = KeyedCall(Look(what=what, person=person), None, secrets.token_hex(16), actor=token.actor)
            await service.ask(call)
            looks[look] = now

    async def seen() -> TrialView:
        view: TrialView = await service.ask(lambda desk: watch(desk, process))
        return view

    @app.get("/v1/overview", response_model=dict[str, Any])
    async def look_at_trial(token: Annotated[Token, reader]) -> Response:
        blinded = token.role == "blinded"
        with contextlib.suppress(StoreError):  # whoever watches must see that nothing can be kept
            await note(token, "overview")
        async with one_at_a_time:
            view = await seen()
            text = await asyncio.to_thread(lambda: canonical(overview(view, blinded=blinded)))
        return Response(text, media_type="application/json")

    @app.get("/v1/people/{person}", response_model=dict[str, Any])
    async def look_at_person(person: Annotated[Person, Path()], token: Annotated[Token, reader]) -> Response:
        blinded = token.role == "blinded"
        text = await service.ask(lambda desk: canonical(history(desk, person, blinded=blinded)))
        await note(token, "person", person)
        return Response(text, media_type="application/json")

    @app.get("/v1/events", response_class=PlainTextResponse, dependencies=[role("follower", "analyst")])
    async def follow(after: Annotated[int, Query(ge=0, le=2**53)] = 0) -> Response:
        def read() -> str:
            # A few at a time: one connection writes and reads, and no decision waits long for it.
            rows = itertools.islice(service.desk.store.rows(after, TOGETHER), EVENTS)
            return "".join(f"{json.dumps(tuple(row))}\n" for row in rows)

        return PlainTextResponse(await asyncio.to_thread(read))

    @app.get("/metrics", response_class=PlainTextResponse, dependencies=[analyst])
    async def scrape() -> Response:
        async with one_at_a_time:
            view = await seen()
            text = await asyncio.to_thread(metrics.text, view)
        return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    for file in (importlib.resources.files("omg_trial.web") / "page").iterdir():
        _add_file(app, file.name, file.read_bytes())


def _add_file(app: FastAPI, name: str, content: bytes) -> None:
    path = "/" if name == "index.html" else f"/page/{name}"
    kind = f"{_KINDS[name.rsplit('.')[-1]]}; charset=utf-8"

    @app.get(path, include_in_schema=False)
    async def file() -> Response:
        return Response(content, media_type=kind, headers=_PAGE)
