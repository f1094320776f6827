"""The application without a network between it and its client, or with a bad one."""

import asyncio
import contextlib

import httpx

from omg_trial.service import Service
from omg_trial.tokens import Tokens
from omg_trial.web.app import make_app
from trial.tests.trials import desk

ADDRESS = "http://service"
LOST, ANSWER_LOST = "lost", "answer lost"


class Wire(httpx.BaseTransport):
    """Carries calls to the application. `faults` befall the next ones: LOST, ANSWER_LOST, or what a proxy answers."""

    def __init__(self, app):
        self.app, self.faults, self.sent = app, [], []

    def handle_request(self, request):
        fault = self.faults.pop(0) if self.faults else None
        self.sent.append(request)
        if fault == LOST:
            raise httpx.ConnectError("no network")
        if isinstance(fault, httpx.Response):
            return fault
        response = asyncio.run(self._carry(request))
        if fault == ANSWER_LOST:
            raise httpx.ReadTimeout("no answer")
        return response

    async def _carry(self, request):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app)) as carrier:
            answer = await carrier.request(
                request.method, request.url, content=request.read(), headers=dict(request.headers)
            )
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


@contextlib.contextmanager
def wired(directory, *, role="app", at=None, **options):
    """Yield a wire to the application of a small trial, and a token with this role."""
    service, tokens = Service(at or desk(**options)), Tokens(directory / "tokens")
    try:
        yield Wire(make_app(service, tokens)), tokens.add(role, "me")
    finally:
        service.end()
