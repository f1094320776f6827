"""Random numbers that belong to a decision: a keyed hash of who decides what for whom, and nothing else."""

from __future__ import annotations

import hashlib
import hmac

from omg_trial.log.events import canonical


def uniform(secret: str, person: str, episode: int, step: int) -> float:
    """Return the number in [0, 1) of one step; whoever knows the study's secret can compute it again.

    It is the first 53 bits of HMAC-SHA-256, and so depends on no other person, on no order and on no clock.

    >>> uniform("a", "p1", 3, 0) == uniform("a", "p1", 3, 0) != uniform("a", "p1", 3, 1)
    True
    """
    name = canonical([person, episode, step]).encode()
    mark = hmac.new(secret.encode(), name, hashlib.sha256).digest()
    return float(int.from_bytes(mark[:8], "big") >> 11) * 2.0**-53
