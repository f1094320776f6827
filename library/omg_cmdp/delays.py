"""Delays say when the feedback of an episode arrives: at once, or some episodes later.

A delay d means that d more episodes are decided before the agent learns from this one; with 0 it learns before the
next. Feedback that is due at the same time arrives in the order in which it was played.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import final

import numpy as np

from omg_cmdp.fingerprints import by_values
from omg_cmdp.validation import LARGEST_INTEGER, positive_number, whole_number

__all__ = ["Delay", "Fixed", "Geometric", "HeavyTailed", "Reversed", "UpTo"]


class Delay(abc.ABC):
    """A rule for how late feedback is. All its randomness comes from the generator it is given.

    One of your own needs `late` alone; `simulate` also takes a plain number, or a function of the episode.

    Examples
    --------
    >>> class Weekly(Delay):
    ...     def late(self, episode, generator):
    ...         return 6 - (episode - 1) % 7
    >>> [Weekly().late(t, None) for t in range(1, 9)]
    [6, 5, 4, 3, 2, 1, 0, 6]
    """

    @abc.abstractmethod
    def late(self, episode: int, generator: np.random.Generator) -> int:
        """Return by how many episodes the feedback of `episode`, counted from 1, is late; called once for each."""


@final
@dataclasses.dataclass(frozen=True)
class Fixed(Delay):
    """Feedback that always comes the same number of episodes later, and so in order.

    Parameters
    ----------
    episodes : int
        The delay; 0 means at once.

    Examples
    --------
    >>> Fixed(10).late(1, np.random.default_rng(0))
    10
    """

    episodes: int

    def __post_init__(self) -> None:
        whole_number("episodes", self.episodes)

    def late(self, episode: int, generator: np.random.Generator) -> int:
        """Return the number of episodes."""
        return self.episodes


@final
@dataclasses.dataclass(frozen=True)
class UpTo(Delay):
    """Feedback that comes from 0 to `most` episodes later, each equally likely.

    Parameters
    ----------
    most : int
        The largest delay.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> [UpTo(3).late(t, generator) for t in range(1, 7)]
    [2, 1, 0, 0, 3, 3]
    """

    most: int

    def __post_init__(self) -> None:
        whole_number("most", self.most)

    def late(self, episode: int, generator: np.random.Generator) -> int:
        """Return a uniform draw."""
        return int(generator.random() * (self.most + 1))


@final
@dataclasses.dataclass(frozen=True)
class Geometric(Delay):
    """Feedback that arrives after every episode with the same probability.

    It is at least k episodes late with probability (m/(1 + m))^k, m the mean.

    Parameters
    ----------
    mean : float
        The mean delay, positive.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> [Geometric(2.0).late(t, generator) for t in range(1, 7)]
    [2, 0, 0, 0, 4, 6]
    """

    mean: float

    def __post_init__(self) -> None:
        positive_number("mean", self.mean)

    def late(self, episode: int, generator: np.random.Generator) -> int:
        """Return a geometric draw: at least k with probability (mean/(1 + mean))^k."""
        return _rounded_down(-math.log1p(-generator.random()) / math.log1p(1.0 / self.mean))


@final
@dataclasses.dataclass(frozen=True)
class HeavyTailed(Delay):
    """Feedback that is at least k episodes late with probability (1 + k/`scale`)^-`exponent`: some never comes in time.

    The distribution is Lomax's, rounded down. The mean is infinite for an exponent of at most 1, the variance for one
    of at most 2.

    Parameters
    ----------
    exponent : float, default 1.5
        The power with which the tail falls.
    scale : float, default 1.0
        The delay at which the tail begins.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> [HeavyTailed(0.5).late(t, generator) for t in range(1, 7)]
    [6, 0, 0, 0, 27, 130]
    """

    exponent: float = 1.5
    scale: float = 1.0

    def __post_init__(self) -> None:
        positive_number("exponent", self.exponent)
        positive_number("scale", self.scale)

    def late(self, episode: int, generator: np.random.Generator) -> int:
        """Return a draw from Lomax's (the shifted Pareto) distribution, rounded down."""
        # By inversion, one uniform number for each episode: streams stay aligned whatever the delay.
        exponent = -math.log1p(-generator.random()) / self.exponent
        return _rounded_down(self.scale * math.expm1(min(exponent, 700.0)))


@final
@dataclasses.dataclass(frozen=True)
class Reversed(Delay):
    """Feedback of which blocks come back in reverse: the last episode's at once, the first one's latest.

    A block has `most`//2 + 1 episodes.

    Parameters
    ----------
    most : int
        The delay of the first episode of a block; one less if it is odd.

    Examples
    --------
    >>> [t + Reversed(4).late(t, None) for t in range(1, 7)]  # when the feedback of episodes 1 to 6 arrives
    [5, 4, 3, 8, 7, 6]
    """

    most: int

    def __post_init__(self) -> None:
        whole_number("most", self.most)

    def late(self, episode: int, generator: np.random.Generator) -> int:
        """Return twice the number of episodes that follow in the block."""
        block = self.most // 2 + 1
        return 2 * (block - 1 - (episode - 1) % block)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class _Function(Delay):
    """A delay that a function of the episode says."""

    given: Callable[[int], int]

    def __repr__(self) -> str:
        return "a function"

    @property
    def fingerprint(self) -> str:
        """The function's values, which a saved run compares."""
        return by_values(self.given)

    def late(self, episode: int, generator: np.random.Generator) -> int:
        return self.given(episode)


AnyDelay = int | Callable[[int], int] | Delay
"""A number of episodes, a function of the episode, counted from 1, or one of the above."""


def as_delay(given: AnyDelay) -> Delay:
    """Return the delay that a number, a function of the episode or a `Delay` stands for."""
    if isinstance(given, Delay):
        return given
    if callable(given):
        return _Function(given)
    return Fixed(whole_number("delay", given))


def _rounded_down(late: float) -> int:
    # A heavy tail may exceed every integer that a float holds exactly.
    return int(min(late, LARGEST_INTEGER))
