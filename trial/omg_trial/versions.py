"""Versions of the model: learning under way, what was published, and what became of each."""

from __future__ import annotations

from typing import NamedTuple

from omg_trial.episodes import Dataset

KEPT_VERSIONS = 20
"""Number of published versions kept for roll-back."""
KEPT_CHANGES = 200


class LearningTask(NamedTuple):
    """Learning that has begun, and what it learns from."""

    number: int
    dataset: Dataset
    settled: int
    """Number of examples, from the first on, that are of episodes before which none is open."""


class Version(NamedTuple):
    """A published model, and what it was learned from."""

    number: int
    dataset: Dataset
    model: str
    """The digest of the model; empty if nobody has learned from this dataset, as somebody has withdrawn since."""
    time: str

    def without(self, person: str) -> Version:
        """Return the version after somebody has withdrawn."""
        rest = tuple(example for example in self.dataset if example.person != person)
        return self if len(rest) == len(self.dataset) else self._replace(dataset=rest, model="")


class Change(NamedTuple):
    """A version that was published, refused, or rolled back to."""

    time: str
    version: int
    episodes: int
    """Number of episodes that it was learned from."""
    verdict: str
    """published, refused, waiting, or rolled back to."""
    cause: str | None
    """Why it was refused, or published by hand."""
