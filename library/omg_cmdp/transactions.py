"""All or nothing: interrupts wait for the end of a lesson, and a part that has learned alone is undone."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, Protocol

from numpy.typing import NDArray

State = Mapping[str, NDArray[Any]]
"""Arrays of numbers and text by name."""

_INTERRUPT = int(signal.SIGINT)
try:
    # The same functions without enumerations, which would take a quarter of the time of a small update.
    _handlers: Any = importlib.import_module("_signal")
except ImportError:  # not CPython
    _handlers = signal


class Stateful(Protocol):
    """An object with a state."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, as arrays of numbers and text."""

    def load_state(self, state: State) -> None:
        """Continue from a state saved with the same settings, bit for bit; refuse any other, and change nothing."""


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


@contextlib.contextmanager
def undone_on_failure(*learners: Stateful) -> Iterator[None]:
    """Give each of `learners` back what it had learned if the body of the `with` statement fails."""
    ways_back = [_way_back(learner) for learner in learners]
    try:
        yield
    except BaseException as error:
        for learner, undo in zip(learners, ways_back, strict=True):
            if undo is None:
                error.add_note(f"{type(learner).__name__} may have learned this episode, and cannot be saved or copied")
            else:
                undo()
        raise


def _way_back(learner: Stateful) -> Callable[[], object] | None:
    """Return a function that undoes what `learner` learns from now on; None if there is no way."""
    try:
        return functools.partial(learner.load_state, learner.state())
    except NotImplementedError:
        # One of the user's own, which need not be able to save, nor to be copied.
        with contextlib.suppress(Exception):
            return functools.partial(vars(learner).update, copy.deepcopy(vars(learner)))
    return None
