"""The application: paths, roles, keys and limits. Every call goes to the service as it came."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omg_trial.calls import OlderLog, Refusal, parse
from omg_trial.deciding import highest_rung
from omg_trial.desk import Asked, Desk
from omg_trial.log.events import canonical
from omg_trial.log.store import StoreError
from omg_trial.service import Service
from omg_trial.tokens import Tokens
from omg_trial.web import bodies
from omg_trial.web.description import describe
from omg_trial.web.metrics import Metrics
from omg_trial.web.views import Person, add_views

LARGEST_BODY = 64 * 1024
CALLS_PER_SECOND = 500.0
"""For each token; as many at once."""

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": bodies.Error, "description": text}
    for status, text in {
        400: "No key, or a request that cannot be read.",
        401: "No token, or an unknown one.",
        403: "A token of another role.",
        404: "No such episode or person.",
        409: "It contradicts what is known.",
        410: "The person has withdrawn.",
        413: "The body is too large.",
        422: "A field is wrong, or the key was used for another call.",
        429: "Too many calls.",
        503: "It could not be kept, now: ask again with the same key.",
    }.items()
}

Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
Seen = Annotated[str | None, Header(alias="Log-Seen", pattern=r"^[1-9][0-9]{0,15}:[0-9a-f]{64}$")]
"""The last `Log-Head` that the caller was told. A log without this event is not the one that the caller knows."""
Episode = Annotated[int, Path(ge=1, le=2**53)]
_bearer = HTTPBearer(auto_error=False)


def make_app(service: Service, tokens: Tokens) -> FastAPI:
    """Return the application of a service."""
    app = FastAPI(title="omg-cmdp", version="1", docs_url=None, redoc_url=None, responses=_REFUSALS)
    gate = _Gate(tokens)
    app_role, analyst, administrator = gate.of("app"), gate.of("analyst"), gate.of("administrator")
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(StoreError, _not_kept)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(_SmallBodies)
    app.state.process, metrics = service.process, Metrics()
    add_views(app, service, metrics, analyst)

    async def answer(name: str, body: dict[str, Any], key: str, seen: str | None) -> Response:
        with metrics.seconds.labels(name).time():
            made = await asyncio.wrap_future(service.submit(Asked(name, body, key, seen=seen)))
        return Response(made.text, media_type=_JSON, headers={"Log-Head": made.mark})

    async def view(look: Callable[[Desk], Any]) -> Response:
        return Response(await asyncio.wrap_future(service.look(lambda desk: canonical(look(desk)))), media_type=_JSON)

    @app.post("/v1/episodes", response_model=bodies.Opened, dependencies=[app_role])
    async def open_episode(body: bodies.OpenBody, key: Key, seen: Seen = None) -> Response:
        return await answer("open", body.model_dump(), key, seen)

    @app.post("/v1/episodes/{episode}/decisions", response_model=bodies.Decided, dependencies=[app_role])
    async def decide(episode: Episode, body: bodies.DecideBody, key: Key, seen: Seen = None) -> Response:
        return await answer("decide", {"episode": episode, **body.model_dump()}, key, seen)

    @app.post("/v1/episodes/{episode}/outcomes", response_model=bodies.Reported, dependencies=[app_role])
    async def report(episode: Episode, body: bodies.ReportBody, key: Key, seen: Seen = None) -> Response:
        return await answer("report", {"episode": episode, **body.model_dump()}, key, seen)

    @app.post("/v1/episodes/{episode}/close", response_model=bodies.Closed, dependencies=[app_role])
    async def close(episode: Episode, body: bodies.CloseBody, key: Key, seen: Seen = None) -> Response:
        return await answer("close", {"episode": episode, **body.model_dump()}, key, seen)

    @app.post("/v1/people/{person}/withdraw", response_model=bodies.Withdrawn, dependencies=[administrator])
    async def withdraw(person: Person, body: bodies.EmptyBody, key: Key, seen: Seen = None) -> Response:
        return await answer("withdraw", {"person": person}, key, seen)

    @app.post("/v1/learn", response_model=bodies.Learning, dependencies=[administrator])
    async def learn(body: bodies.EmptyBody, key: Key, seen: Seen = None) -> Response:
        return await answer("learn", {}, key, seen)

    @app.post("/v1/roll-back", response_model=bodies.RolledBack, dependencies=[administrator])
    async def roll_back(body: bodies.RollBackBody, key: Key, seen: Seen = None) -> Response:
        return await answer("roll back", body.model_dump(), key, seen)

    @app.post("/v1/policy", dependencies=[analyst])
    async def policy(body: bodies.PolicyBody) -> Response:
        def look(desk: Desk) -> dict[str, Any]:
            [_, context] = parse(desk.trial, "open", {"person": "nobody", "context": body.context})  # type: ignore[misc]
            name, cause, table, certificate, _ = highest_rung(desk.situation(), context)
            told = {"policy": table.tolist(), "certificate": certificate, "rung": name, "cause": cause}
            return {**told, "version": desk.state.version.number}

        return await view(look)

    @app.get("/v1/health", response_model=bodies.Health)
    async def health() -> Response:
        return await view(_health)

    app.openapi_schema = describe(app.openapi(), service.desk.trial)
    return app


_JSON = "application/json"


def _health(desk: Desk) -> dict[str, Any]:
    state = desk.state
    return {
        "status": "no store" if desk.lost else "ready",
        "study": desk.trial.name,
        "version": state.version.number,
        "event": state.number,
        "hash": state.hash,
    }


class _Gate:
    """Lets a call pass if its token has the role, and does not come too often."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._budgets: dict[str, tuple[float, float]] = {}

    def of(self, role: str) -> Any:
        """Return the dependency of a path that needs this role; an administrator has all."""

        async def check(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]) -> None:
            found = None if given is None else self._tokens.role(given.credentials)
            if given is None or found is None:
                raise Refusal(401, "a token must be given that the service knows: Authorization: Bearer ...")
            if found not in (role, "administrator"):
                raise Refusal(403, f"the token must have the role {role}, got {found}")
            self._spend(given.credentials)

        return Depends(check)

    def _spend(self, token: str) -> None:
        now = time.monotonic()
        left, since = self._budgets.get(token, (CALLS_PER_SECOND, now))
        left = min(left + (now - since) * CALLS_PER_SECOND, CALLS_PER_SECOND)
        if left < 1.0:
            raise Refusal(429, f"a token may make {CALLS_PER_SECOND:g} calls a second, got more")
        self._budgets[token] = left - 1.0, now


class _SmallBodies:
    """Refuses a body that is too large before all of it is read."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        seen, refused = 0, False

        async def counted() -> Message:
            nonlocal seen, refused
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > LARGEST_BODY:
                refused = True
                return {"type": "http.request", "body": b"", "more_body": False}
            return message

        async def answered(message: Message) -> None:
            if refused:
                if message["type"] == "http.response.start":
                    text = canonical({"error": f"the body must have at most {LARGEST_BODY} bytes, got more"}).encode()
                    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())]
                    await send({"type": "http.response.start", "status": 413, "headers": headers})
                    await send({"type": "http.response.body", "body": text})
                return
            await send(message)

        await self.app(scope, counted, answered)


def _error(request: Request, status: int, message: str, **headers: str) -> JSONResponse:
    """Return a refusal, and count it. What an analyst tries out says nothing about the app."""
    by_app = request.url.path.startswith("/v1/episodes")
    request.app.state.process.refuse(str(status), watched=by_app or status in (401, 403, 503))
    return JSONResponse({"error": message}, status, headers)


async def _refused(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    if isinstance(refusal, OlderLog):
        request.app.state.process.refuse("older log")
        return _error(request, refusal.status, refusal.message, **{"Log-Head": refusal.head})
    extra = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}, 503: {"Retry-After": "1"}}
    return _error(request, refusal.status, refusal.message, **extra.get(refusal.status, {}))


async def _not_kept(request: Request, error: Exception) -> Response:
    return _error(request, 503, f"it could not be kept; ask again with the same key. {error}", **{"Retry-After": "1"})


async def _invalid(request: Request, error: Exception) -> Response:
    """Name the field and the rule; values may be a person's data, and are not repeated."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:]) or "body"
    if first["loc"][:2] == ("header", "Idempotency-Key"):
        rule = "must be 1 to 200 visible characters: a new one for each call"
        return _error(request, 400, f"the header Idempotency-Key {rule}")
    status = 404 if first["loc"][0] == "path" else 422
    return _error(request, status, f"`{field:.60}`: {first['msg']}")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(request, error.status_code, str(error.detail))
