"""Adversaries that look at nothing: the order of contexts is fixed in advance, or random."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import final

import numpy as np

from omg_cmdp.adversaries.base import Adversary, View, context_list
from omg_cmdp.contexts import Context, context_key
from omg_cmdp.validation import positive_integer


@final
class IID(Adversary):
    """Contexts drawn uniformly and independently.

    Parameters
    ----------
    contexts : iterable of contexts, or a table
        The contexts to draw from; repeat one to give it more weight.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> "".join(IID(["a", "b", "c"]).context(t, view=None, generator=generator) for t in range(8))
    'cbbaaaaa'
    """

    settings = ("contexts",)

    def __init__(self, contexts: Iterable[Context]) -> None:
        self.contexts = context_list("contexts", contexts)

    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return a uniform draw."""
        return self.contexts[generator.integers(len(self.contexts))]


@final
class Sequence(Adversary):
    """Contexts in a given order, over and over.

    Parameters
    ----------
    contexts : iterable of contexts, or a table
        The contexts, one for each episode; after the last the first comes again.

    Examples
    --------
    >>> adversary = Sequence(["a", "b", "c"])
    >>> [adversary.context(t, view=None, generator=None) for t in range(5)]
    ['a', 'b', 'c', 'a', 'b']
    """

    settings = ("contexts",)

    def __init__(self, contexts: Iterable[Context]) -> None:
        self.contexts = context_list("contexts", contexts)

    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return the next in order."""
        return self.contexts[episode % len(self.contexts)]


@final
class Sorted(Adversary):
    """Each of n contexts in one block of consecutive episodes, so that what is learned early is not needed again.

    Parameters
    ----------
    contexts : iterable of contexts, or a table
        The contexts, in the order of their blocks.
    episodes : int
        The number of episodes T, divided among the contexts evenly: blocks differ by at most one. A longer run starts
        over.

    Examples
    --------
    >>> adversary = Sorted(["a", "b", "c"], episodes=7)
    >>> "".join(adversary.context(t, view=None, generator=None) for t in range(7))
    'aaabbcc'
    """

    settings = ("contexts", "episodes")

    def __init__(self, contexts: Iterable[Context], episodes: int) -> None:
        self.contexts = context_list("contexts", contexts)
        self.episodes = positive_integer("episodes", episodes)
        if self.episodes < len(self.contexts):
            raise ValueError(f"`episodes` must be at least the number of contexts {len(self.contexts)}, got {episodes}")

    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return the context of the block that `episode` falls into."""
        # Integer arithmetic: blocks differ by at most one episode.
        return self.contexts[episode % self.episodes * len(self.contexts) // self.episodes]


@final
class NeverTwice(Adversary):
    """Contexts in a given order, each of them once, so that an agent must generalise or learn nothing.

    Parameters
    ----------
    contexts : iterable of contexts, or a table
        The contexts, none of them twice; a run that is longer than the list is refused.

    Examples
    --------
    >>> adversary = NeverTwice(["a", "b", "c"])
    >>> [adversary.context(t, view=None, generator=None) for t in range(3)]
    ['a', 'b', 'c']
    """

    settings = ("contexts",)

    def __init__(self, contexts: Iterable[Context]) -> None:
        self.contexts, seen = context_list("contexts", contexts), set[Hashable]()
        for place, context in enumerate(self.contexts):
            key = context_key(context)
            if key is None or key in seen:
                rule = "be vectors, records or labels, none of them twice"
                raise ValueError(f"`contexts` must {rule}, got {context!r:.60} at index {place}")
            seen.add(key)

    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return the next in order."""
        if episode >= len(self.contexts):
            count = len(self.contexts)
            raise ValueError(f"`contexts` must hold a context for every episode, got {count} for episode {episode}")
        return self.contexts[episode]
