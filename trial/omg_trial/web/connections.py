"""Connections of slow clients: each has its time to send a call or to read an answer, and there is a limit on them all.

Uvicorn has no limit for a request that begins and never ends. A few hundred such connections, made by an attacker or by
telephones in a tunnel, would use up the sockets of the process, and nobody else would be answered.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 20.0
"""Time to send the headers and the body of a call, and to take up an answer that does not fit into the buffers."""
MOST = 500
"""Connections at a time. One more closes the one that has waited longest for its client."""


def guarded(seconds: float = SECONDS, most: int = MOST) -> type[asyncio.Protocol]:
    """Return the protocol of a server that closes connections whose clients are slow.

    A connection waits for its client until a call has arrived whole, after its answer, and while the client does not
    read. A connection whose call is being answered is never closed.

    Parameters
    ----------
    seconds : float, default 20
        Longest time to wait for a client.
    most : int, default 500
        Connections at a time.
    """
    waiting: dict[asyncio.Protocol, asyncio.TimerHandle] = {}  # in the order in which they began to wait
    base: Any = H11Protocol  # not httptools, which may be installed too: it keeps a head of any size

    class GuardedProtocol(base):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._look()
            if len(self.connections) > most and waiting:
                next(iter(waiting))._close()  # type: ignore[attr-defined]

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._look()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._look()

        def resume_writing(self) -> None:
            super().resume_writing()
            self._look()

        def connection_lost(self, exc: Exception | None) -> None:
            self._go_on()
            super().connection_lost(exc)

        def _look(self) -> None:
            """Begin to wait for the client, or end; a byte now and then gains no time."""
            arrives = self.cycle is None or self.cycle.more_body or self.cycle.response_complete
            if not arrives and not self.flow.write_paused:
                self._go_on()
            elif self not in waiting and not self.transport.is_closing():
                waiting[self] = self.loop.call_later(seconds, self._close)

        def _go_on(self) -> None:
            timer = waiting.pop(self, None)
            if timer is not None:
                timer.cancel()

        def _close(self) -> None:
            self._go_on()
            self.transport.abort()

    return GuardedProtocol
