"""The service's own log: where an error was raised, and nothing of a person."""

from __future__ import annotations

import logging
import pathlib
import traceback


def trace(error: BaseException) -> str:
    """Return the kind of an error and where it was raised, without what it says: that may be about a person."""
    frames = traceback.extract_tb(error.__traceback__)
    places = (f"{pathlib.Path(each.filename).name}:{each.lineno} in {each.name}" for each in frames)
    return f"{type(error).__name__} ({', '.join(places)})"


class DiscreetFormatter(logging.Formatter):
    """Names the kind of an exception, and not what it says: that may be about a person."""

    def formatException(self, ei: object) -> str:  # noqa: N802 - the name is of logging
        """Return the kind of an exception."""
        return f"({ei[0].__name__})" if isinstance(ei, tuple) and isinstance(ei[0], type) else ""


def log_discreetly() -> None:
    """Write warnings and errors to the standard error, without what an exception says."""
    handler = logging.StreamHandler()
    handler.setFormatter(DiscreetFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
