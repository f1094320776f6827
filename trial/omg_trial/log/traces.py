"""Where an error was raised, for the service's own log."""

from __future__ import annotations

import pathlib
import traceback


def trace(error: BaseException) -> str:
    """Return the kind of an error and where it was raised, without what it says: that may be about a person."""
    frames = traceback.extract_tb(error.__traceback__)
    places = (f"{pathlib.Path(each.filename).name}:{each.lineno} in {each.name}" for each in frames)
    return f"{type(error).__name__} ({', '.join(places)})"
