"""What an attack reports."""

from __future__ import annotations

import collections
import dataclasses


@dataclasses.dataclass
class Outcome:
    """How often something was tried, and what broke: one line each, with all that is needed to try it again."""

    tried: int = 0
    broken: list[str] = dataclasses.field(default_factory=list)
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """What else was counted."""
