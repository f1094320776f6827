"""Adversaries that look at nothing: the order of contexts is fixed in advance, or random."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.adversaries.base import Adversary, View, context_list
from omg_cmdp.contexts import Context, context_key
from omg_cmdp.persistence import State, read_state
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


@final
class Bursts(Adversary):
    """Contexts that come for some episodes in a row, and then stay away for a while.

    The next burst is drawn uniformly from the contexts that were away for long enough.

    Parameters
    ----------
    contexts : iterable of contexts, or a table
        At least two contexts.
    length : int
        The number of episodes of a burst.
    absence : int, optional
        The number of episodes for which a context stays away at least, at most (n - 1)·`length`. By default the bursts
        of half of the contexts lie in between.

    Examples
    --------
    >>> adversary, generator = Bursts(["a", "b"], length=3), np.random.default_rng(0)
    >>> "".join(adversary.context(t, view=None, generator=generator) for t in range(9))
    'bbbaaabbb'
    """

    settings = ("contexts", "length", "absence")

    def __init__(self, contexts: Iterable[Context], length: int, *, absence: int | None = None) -> None:
        self.contexts = context_list("contexts", contexts)
        if len(self.contexts) < 2:
            raise ValueError(f"`contexts` must hold at least two contexts, got {len(self.contexts)}")
        self.length = positive_integer("length", length)
        default = len(self.contexts) // 2 * self.length
        self.absence = default if absence is None else positive_integer("absence", absence)
        longest = (len(self.contexts) - 1) * self.length
        if self.absence > longest:
            raise ValueError(f"`absence` must be at most the bursts of all others {longest}, got {absence}")
        # The absence in whole bursts.
        self._memory = -(-self.absence // self.length)
        self._recent: tuple[int, ...] = ()

    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return the context of the present burst; draw one if a burst begins."""
        if episode == 0:
            self._recent = ()
        # A run may be resumed in the middle of a burst: then `load_state` has told the burst.
        if episode % self.length == 0 or not self._recent:
            # Never empty: the absence is at most the bursts of all others.
            rested = [i for i in range(len(self.contexts)) if i not in self._recent]
            drawn = rested[generator.integers(len(rested))]
            self._recent = (*self._recent, drawn)[-self._memory :]
        return self.contexts[self._recent[-1]]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the contexts of the last bursts, the present one last."""
        return {"recent": np.array(self._recent, dtype=np.int64)}

    def load_state(self, state: State) -> None:
        """Load the last bursts."""
        arrays = read_state(state)
        recent = arrays["recent"] if set(arrays) == {"recent"} else None
        if recent is None or recent.ndim != 1 or recent.dtype != np.int64 or len(recent) > self._memory:
            raise ValueError(f"`state` must hold up to {self._memory} integers as 'recent', got {dict(state)!r:.60}")
        found = recent.tolist()
        if len(set(found)) < len(found) or not all(0 <= i < len(self.contexts) for i in found):
            raise ValueError(f"`state` must hold different indices below {len(self.contexts)}, got {found}")
        self._recent = tuple(found)
