"""How late feedback came in a run, and the losses of the predictions with which its episodes were played."""

from __future__ import annotations

import math
from typing import NamedTuple


class _Played(NamedTuple):
    updates: int
    """Number of updates that the agent had seen when it decided."""
    losses: tuple[float, float]
    """Losses of its model in the episode."""


class Lateness:
    """Counts, for every episode, how many other updates lie between the decision and its own update."""

    def __init__(self) -> None:
        self.updates = 0
        self.losses = [0.0, 0.0]
        """Losses of the models that were played, in the episodes whose feedback has arrived."""
        self._between = _Between()
        self._waiting: dict[int, _Played] = {}

    def add(self, episode: int, losses: tuple[float, float], arrived: tuple[int, ...]) -> None:
        """Add an episode, the losses of its model, and the episodes whose feedback arrived after it."""
        self._waiting[episode] = _Played(self.updates, losses)
        for each in arrived:
            before = self._waiting.pop(each, _Played(0, (math.nan, math.nan)))  # nan if the audit began after it
            self._between = self._between.then(self.updates - before.updates)
            self.updates += 1
            for k in range(2):
                self.losses[k] += before.losses[k]

    @property
    def is_late(self) -> bool:
        """Whether anything came later than at once."""
        return self._between.most > 0 or len(self._waiting) > 0

    def delay(self) -> tuple[int, bool]:
        """Return the largest number of other updates in between, and whether it was constant after the first ones.

        Feedback that is under way counts as if it came now, in the order in which it was played.
        """
        between = self._between
        for place, each in enumerate(self._waiting.values()):
            between = between.then(self.updates + place - each.updates)
        return between.most, between.constant


class _Between(NamedTuple):
    """What is known of 0, 1, ..., d, d, d, ...: how many updates lie in between if a delay is constant."""

    most: int = 0
    constant: bool = True
    seen: int = 0

    def then(self, updates: int) -> _Between:
        """Return the same with one more number."""
        grows = updates == self.seen == self.most + (self.seen > 0)
        constant = self.constant and (grows or updates == self.most)
        return _Between(max(self.most, updates), constant, self.seen + 1)
