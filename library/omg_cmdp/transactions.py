"""Interrupts that wait for the end of a lesson, so that all of it is learned, or nothing."""

from __future__ import annotations

import contextlib
import importlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_INTERRUPT = int(signal.SIGINT)
try:
    # The same functions without enumerations, which would take a quarter of the time of a small update.
    _handlers: Any = importlib.import_module("_signal")
except ImportError:  # not CPython
    _handlers = signal


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait until the body of the `with` statement is over; a second one does not wait.

    Interrupts arrive in the main thread alone: in any other nothing is held.
    """
    handler = _handlers.getsignal(_INTERRUPT) if threading.current_thread() is threading.main_thread() else None
    if not callable(handler):  # nothing to hold: another thread, or interrupts that are ignored or end the process
        yield
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        if len(held) > 1:
            handler(number, frame)

    _handlers.signal(_INTERRUPT, hold)
    try:
        yield
    finally:
        _handlers.signal(_INTERRUPT, handler)
        if len(held) == 1:
            handler(*held[0])
