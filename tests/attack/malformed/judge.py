"""Whether the answer to a malformed call is one of the house: a result, or an error that says what is wrong."""

import math
import re
import signal
import threading
import warnings

import numpy as np

import omg_cmdp as omg
from omg_trial.log.database import StoreError
from tests.attack.malformed.nasty import Junk

LONGEST = 20.0
"""Seconds that a call may take, with what it compiles for a new type."""

PLACE = re.compile(r"`[^`]+`|\b(column '|row \d|event \d|line \d)")
"""What an error may name besides an argument of the call: a part of one, or the place in a table, a log or a file."""
FEWEST_WORDS = 4
"""Fewest words of a sentence that says what is wrong."""

GOES_ON = ("runs.play",)
"""What keeps the episodes before the one that failed, as its documentation says."""

ALLOWED = {
    **dict.fromkeys(("checks.check_agent", "checks.check_oracle"), AssertionError),
    "log.database.Database": StoreError,
}
"""What these calls say of a subject that breaks the contract, and of a database."""

NO_INTEGER = (-3, -3.0, 1.5, "", "abc", "12", b"12", True, 1e300, 1j)


class TooLong(BaseException):
    """A call took longer than `LONGEST`."""


def problem(name, annotations, call, good, replaced, instance):
    """Make the call, and return what is wrong with its answer; "" if nothing is."""
    arguments = good | replaced
    before = bits((instance, *arguments.values()))
    try:
        with warnings.catch_warnings(), in_time():
            warnings.simplefilter("ignore")  # numpy's, about numbers that nobody could mean
            call(**arguments)
    except TooLong:
        return f"no answer in {LONGEST:g} s"
    except Exception as error:
        same = name in GOES_ON or bits((instance, *arguments.values())) == before
        return wrong_error(name, error, arguments) or ("" if same else "state changed")
    for argument, value in replaced.items():
        if excluded(value, *annotations.get(argument, ("Any", True))):
            return f"accepted, {argument}: {annotations[argument][0]}"
    return ""


def wrong_error(name, error, arguments):
    """Return what is wrong with an error; "" if nothing is."""
    if isinstance(error, (ImportError, ALLOWED.get(name, ImportError))):
        return ""
    if isinstance(error, OSError) and "path" in arguments:  # it names the file, and what it would have to be
        return ""
    if not isinstance(error, (ValueError, TypeError)) or isinstance(error, UnicodeError):
        return f"{type(error).__name__}: {error!s:.120}"
    return "" if is_clear(str(error), arguments) else f"unclear {type(error).__name__}: {error!s:.160}"


def is_clear(message, arguments):
    """Return whether a message is a sentence that names an argument."""
    words = message.split()
    named = PLACE.search(message) or {word.strip("`'\",.:;()") for word in words} & set(arguments)
    return bool(named) and len(words) >= FEWEST_WORDS


def excluded(value, annotation, none_is_default):
    """Return whether an argument with this annotation cannot be this value."""
    kinds = annotation.split(" | ")
    if {"Any", "Context", "object"} & set(kinds):
        return False
    if value is None:
        return "None" not in annotation and not none_is_default
    if isinstance(value, Junk):
        return True
    if set(kinds) <= {"int", "None"}:
        return isinstance(value, (list, dict)) or _among(value, NO_INTEGER) or _is_nan(value)
    if set(kinds) <= {"float", "None"}:
        return isinstance(value, (str, bytes, complex, list, dict)) or _is_nan(value)
    if kinds == ["str"]:
        return not isinstance(value, str)
    return False


def _among(value, those):
    return any(type(value) is type(each) and value == each for each in those)


def _is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def bits(parts):
    """Return the states of those parts that have one."""
    found = []
    for part in parts:
        if isinstance(part, omg.Log):
            found.append([id(episode) for episode in part.episodes])
        elif callable(getattr(part, "load_state", None)):
            try:
                state = part.state()
            except Exception as error:  # what was added cannot be saved
                state = {"error": np.array(str(error))}
            found.append({name: (array.dtype.str, array.shape, array.tobytes()) for name, array in state.items()})
    return found


class in_time:  # noqa: N801 (a context manager)
    """Raise `TooLong` when the time is up; in the main thread, which alone can."""

    def __enter__(self):
        self._can = threading.current_thread() is threading.main_thread()
        if self._can:
            self._before = signal.signal(signal.SIGALRM, self._stop)
            signal.setitimer(signal.ITIMER_REAL, LONGEST)

    def __exit__(self, *error):
        if self._can:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before)

    def _stop(self, number, frame):
        raise TooLong
