"""The models of a trial: what is learned from, what was published, and what became of each."""

from __future__ import annotations

from typing import NamedTuple

from omg_trial.episodes import Dataset


class Learning(NamedTuple):
    """Learning that has begun: from what."""

    number: int
    dataset: Dataset
    settled: int
    """How many of the first examples are of episodes before which none is open."""


class Version(NamedTuple):
    """A published model: what it was learned from."""

    number: int
    dataset: Dataset
    model: str
    """The digest of the model."""
    time: str


class Change(NamedTuple):
    """What became of the version in use, and when."""

    time: str
    version: int
    episodes: int
    """How many it was learned from."""
    verdict: str
    """published, refused, or rolled back to."""
    cause: str | None
    """Why it was refused."""
