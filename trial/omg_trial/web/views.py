"""Paths that only read: the overview, a person's history, metrics, and the page that shows them."""

from __future__ import annotations

import asyncio
import importlib.resources
import itertools
import json
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from omg_trial.contract.calls import Person
from omg_trial.desk import Desk
from omg_trial.log.events import Event, canonical
from omg_trial.service import Service
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
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
EVENTS = 500
"""Events of the log in one answer."""
PRIVATE = {"X-Content-Type-Options": "nosniff"}


def add_views(app: FastAPI, service: Service, metrics: Metrics, analyst: Any) -> None:
    """Add the paths that only look. What takes time is computed outside the thread that answers calls."""
    process, one_at_a_time = service.process, asyncio.Lock()

    async def seen() -> TrialView:
        view: TrialView = await asyncio.wrap_future(service.submit(lambda desk: watch(desk, process)))
        return view

    @app.get("/v1/overview", response_model=dict[str, Any], dependencies=[analyst])
    async def look_at_trial() -> Response:
        async with one_at_a_time:
            view = await seen()
            text = await asyncio.to_thread(lambda: canonical(overview(view)))
        return Response(text, media_type="application/json", headers=PRIVATE)

    @app.get("/v1/people/{person}", response_model=dict[str, Any], dependencies=[analyst])
    async def look_at_person(person: Annotated[Person, Path()]) -> Response:
        text = await asyncio.wrap_future(service.submit(lambda desk: canonical(history(desk, person))))
        return Response(text, media_type="application/json", headers=PRIVATE)

    @app.get("/v1/events", response_class=PlainTextResponse, dependencies=[analyst])
    async def follow(after: Annotated[int, Query(ge=0, le=2**53)] = 0) -> Response:
        def read(desk: Desk) -> list[Event]:
            return list(itertools.islice(desk.store.read(after), EVENTS))

        events: list[Event] = await asyncio.wrap_future(service.submit(read))
        lines = await asyncio.to_thread(lambda: [json.dumps(event.row) for event in events])
        return PlainTextResponse("".join(f"{line}\n" for line in lines), headers=PRIVATE)

    @app.get("/metrics", response_class=PlainTextResponse, dependencies=[analyst])
    async def scrape() -> Response:
        async with one_at_a_time:
            view = await seen()
            text = await asyncio.to_thread(metrics.text, view)
        return Response(text, headers={**PRIVATE, "Content-Type": CONTENT_TYPE_LATEST})

    for file in (importlib.resources.files("omg_trial.web") / "page").iterdir():
        _add_file(app, file.name, file.read_bytes())


def _add_file(app: FastAPI, name: str, content: bytes) -> None:
    path = "/" if name == "index.html" else f"/page/{name}"
    kind = f"{_KINDS[name.rsplit('.')[-1]]}; charset=utf-8"

    @app.get(path, include_in_schema=False)
    async def file() -> Response:
        return Response(content, media_type=kind, headers=_PAGE)
