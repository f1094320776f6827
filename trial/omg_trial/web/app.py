"""The application: paths, roles, keys and limits. Every call is checked here, by the models of the trial's contract."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omg_trial.contract import KeyedCall, OlderLog, Refusal, answers
from omg_trial.contract.models import describe_problem, read_fields, read_target
from omg_trial.desk import Desk
from omg_trial.handlers.episodes import show_policy
from omg_trial.handlers.table import ROUTES
from omg_trial.log.database import StoreError
from omg_trial.log.events import canonical
from omg_trial.service import Service
from omg_trial.tokens import RATES, Token, Tokens
from omg_trial.web.calls import JSON, documented, json_object, key_and_seen, route_of
from omg_trial.web.metrics import Metrics
from omg_trial.web.views import add_views

_STATUSES = (400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 503)
_REFUSALS: dict[int | str, dict[str, Any]] = {status: {"model": answers.ErrorAnswer} for status in _STATUSES}

_bearer = HTTPBearer(auto_error=False)


def make_app(service: Service, tokens: Tokens) -> FastAPI:
    """Return the application of a service.

    Parameters
    ----------
    service : Service
        Answers the calls.
    tokens : Tokens
        The roles of those who may call.

    Examples
    --------
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE, Trial
    >>> service = Service(Desk(Trial.parse(EXAMPLE), Database(":memory:")))
    >>> make_app(service, Tokens("tokens")).title
    'omg-trial: adherence'
    >>> service.end()
    """
    trial, offered = service.desk.trial, service.desk.contract
    app = FastAPI(
        title=f"omg-trial: {trial.name}",
        version="1",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would go to whatever host the caller has named
        responses=_REFUSALS,
    )
    gate = _Gate(tokens)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(StoreError, _not_kept)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(_Door)
    app.state.process, metrics = service.process, Metrics()

    def add_route(
        path: str,
        name: str,
        model: type[BaseModel],
        answer: type[BaseModel],
        of: Sequence[str],
        call: Callable[..., Any],
    ) -> None:
        app.router.add_api_route(
            path,
            documented(model, Annotated[Token, gate.of(*of)]),
            methods=["POST"],
            response_model=answer,
            operation_id=name.replace(" ", "_"),
            route_class_override=route_of(call),
        )

    def add_call(path: str, name: str, answer: type[BaseModel], *roles: str) -> None:
        model, seconds = offered.calls[name], metrics.seconds.labels(name)

        async def call(scope: Scope, body: bytes) -> Response:
            headers = dict(scope["headers"])
            token = gate.check(headers, roles)
            key, seen = key_and_seen(headers)
            key = key if token.person is None else f"{token.person} {key}"  # no other phone's: keys have no spaces
            about = model.target and read_target(model.target, scope["path_params"][model.target], in_path=True)
            fields = read_fields(model, json_object(headers, body))
            try:
                with seconds.time():
                    made = await service.ask(KeyedCall(fields, about, key, seen, token.actor, token.person))
            except Refusal as refusal:
                if name == "erase" and refusal.status == 410:  # before, when perhaps this was not done
                    await asyncio.to_thread(_take_back, tokens, str(about))
                raise
            if name == "erase":
                await asyncio.to_thread(_take_back, tokens, str(about))
            # The stored text as it is: a repeated call gets the same bytes.
            return Response(made.text, media_type=JSON, headers={"Log-Head": made.mark})

        add_route(path, name, model, answer, roles, call)

    for name, route in ROUTES.items():
        if route.path is not None:
            add_call(route.path, name, offered.decided if name == "decide" else route.answer, *route.roles)

    async def show(look: Callable[[Desk], BaseModel]) -> Response:
        return Response(await service.ask(lambda at: canonical(look(at).model_dump())), media_type=JSON)

    async def policy(scope: Scope, body: bytes) -> Response:
        headers = dict(scope["headers"])
        gate.check(headers, ["analyst"])
        asked = read_fields(offered.policy, json_object(headers, body))
        return await show(lambda at: show_policy(at.inputs(), asked))

    # After the calls: paths are tried in this order, and nearly all requests are decisions.
    add_views(app, service, metrics, gate.of)
    add_route("/v1/policy", "policy", offered.policy, answers.PolicyAnswer, ["analyst"], policy)

    @app.get("/v1/health", response_model=answers.Health, operation_id="health")
    async def health() -> Response:
        return await show(_health)

    # The process lives as long as /v1/health answers; only if it is ready should a load balancer send it calls.
    not_ready: dict[int | str, dict[str, Any]] = {
        503: {"model": answers.Health, "description": "It cannot answer now."}
    }

    @app.get("/v1/ready", response_model=answers.Health, operation_id="ready", responses=not_ready)
    async def ready() -> Response:
        answer = await show(_health)
        answer.status_code = 200 if b'"status":"ready"' in bytes(answer.body) else 503
        return answer

    return app


def _take_back(tokens: Tokens, person: str) -> None:
    """Take back the tokens of an erased person's phones, which name them."""
    try:
        tokens.forget(person)
    except OSError as error:
        what = f"the person is erased, but the file of tokens cannot be written ({type(error).__name__})"
        raise Refusal(503, f"{what}: a line of it may still name them; mend that, and ask again") from None


def _health(at: Desk) -> answers.Health:
    return answers.Health(
        status="damaged log" if at.damage else "no store" if at.lost else "ready",
        trial=at.trial.name,
        version=at.state.version.number,
        event=at.state.number,
        hash=at.state.hash,
    )


_ONCE = {b"authorization", b"content-type", b"idempotency-key", b"log-seen", b"content-length", b"transfer-encoding"}


class _Gate:
    """Lets a call pass if its token has the role, and does not come too often."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._budgets: dict[str, tuple[float, float]] = {}

    def of(self, *roles: str) -> Any:
        """Return the dependency of a path that needs one of these roles; it is the token."""

        async def check(request: Request, _: Annotated[Any, Depends(_bearer)]) -> Token:
            return self.check(dict(request.scope["headers"]), roles)

        return Depends(check)

    def check(self, headers: Mapping[bytes, bytes], roles: Sequence[str]) -> Token:
        """Return the token of a request, which must have one of these roles; an administrator has all."""
        scheme, _, given = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        try:
            found = self._tokens.find(given) if scheme.lower() == "bearer" else None
        except OSError as error:
            raise Refusal(503, f"the file of tokens cannot be read now ({type(error).__name__})") from None
        if found is None:
            raise Refusal(401, "send a token that the service knows: Authorization: Bearer ...")
        if found.role not in (*roles, "administrator"):
            needed = f"this path needs a token with the role {' or '.join(roles)}"
            raise Refusal(403, f"{needed}; this one has the role {found.role}")
        self._spend(found)
        return found

    def _spend(self, token: Token) -> None:
        now, rate = time.monotonic(), token.rate or RATES[token.role]
        most = max(rate, 1.0)
        left, since = self._budgets.get(token.hash, (most, now))
        left = min(left + (now - since) * rate, most)
        if left < 1.0:
            raise Refusal(429, f"more than {rate:g} calls a second with one token; wait a second")
        self._budgets[token.hash] = left - 1.0, now


class _Door:
    """Lets no cache keep an answer, and no browser guess its kind; refuses what a proxy may have read otherwise."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def private(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cache-Control", "no-store")
                headers["X-Content-Type-Options"] = "nosniff"
            await send(message)

        names = [name for name, _ in scope["headers"] if name in _ONCE]
        if len(set(names)) < len(names) or {b"content-length", b"transfer-encoding"} <= set(names):
            once = ", ".join(sorted({each.decode() for each in names}))
            answer = {"error": f"send each of these headers once: {once}"}
            await JSONResponse(answer, 400, {"Connection": "close"})(scope, receive, private)
            return
        await self.app(scope, receive, private)


_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}, 503: {"Retry-After": "1"}}


def _error(request: Request, status: int, message: str, **headers: str) -> JSONResponse:
    """Return a refusal, and count it. What an analyst tries out says nothing about the app."""
    by_app = request.url.path.startswith("/v1/episodes")
    request.app.state.process.refuse(str(status), watched=by_app or status in (401, 403, 503))
    return JSONResponse({"error": message}, status, {**_HEADERS.get(status, {}), **headers})


async def _refused(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    if refusal.counted is not None:
        request.app.state.process.refuse(refusal.counted)
    head = {"Log-Head": refusal.head} if isinstance(refusal, OlderLog) else {}
    return _error(request, refusal.status, refusal.message, **head)


async def _not_kept(request: Request, error: Exception) -> Response:
    return _error(request, 503, f"it could not be kept; ask again with the same key. {error}")


async def _invalid(request: Request, error: Exception) -> Response:
    """Name the part of a path or a query that is wrong, and the rule; values may be a person's data."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return _error(request, 404 if first["loc"][0] == "path" else 422, describe_problem([first], skip=1))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # No token was looked at: whoever asks for a path that does not exist may be anybody, and turns no check yellow.
    request.app.state.process.refuse(str(error.status_code), watched=False)
    return JSONResponse({"error": str(error.detail)}, error.status_code)
