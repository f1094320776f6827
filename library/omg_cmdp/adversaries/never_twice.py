"""An adversary that never shows a context twice: an agent that does not generalise learns nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.adversaries.base import Adversary, View, context_list, own_copy
from omg_cmdp.contexts import Context, context_key
from omg_cmdp.persistence import State, read_state

ATTEMPTS = 1000
"""The number of old contexts in a row after which `make` counts as exhausted."""

DIGEST = 16
"""Bytes kept of a context; two contexts share them with probability 2⁻¹²⁸."""


@final
class NeverTwice(Adversary):
    """An adversary that never shows a context twice, so that an agent must generalise or learn nothing.

    When there are no more contexts, `ValueError` is raised.

    Parameters
    ----------
    make : callable or iterable of contexts
        A function from a random generator to a context, called again when it returns an old one, at most 1000 times in
        a row; or a list without repetition, shown in its order.

    Examples
    --------
    >>> adversary = NeverTwice(lambda generator: int(generator.integers(5)))
    >>> generator = np.random.default_rng(0)
    >>> sorted(adversary.context(t, None, generator) for t in range(5))
    [0, 1, 2, 3, 4]
    """

    def __init__(self, make: Callable[[np.random.Generator], Context] | Iterable[Context]) -> None:
        self._make = make if callable(make) else None
        self.contexts = () if callable(make) else context_list("make", make)
        self._seen: dict[bytes, None] = {}  # a set that keeps its order
        for place, context in enumerate(self.contexts):
            if not self._is_new(context):
                raise ValueError(f"`make` must hold no context twice, got {context!r:.60} again at index {place}")

    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return a context that is new in this run."""
        if self._make is None:
            if episode >= len(self.contexts):
                count = len(self.contexts)
                raise ValueError(f"`make` must hold a context for every episode, got {count} for episode {episode}")
            return self.contexts[episode]
        if episode == 0:
            self._seen = {}
        for _ in range(ATTEMPTS):
            fresh = own_copy(self._make(generator))
            if self._is_new(fresh):
                return fresh
        raise ValueError(f"`make` must return new contexts, got {ATTEMPTS} old ones in a row in episode {episode}")

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the digests of the contexts shown; nothing for a list, where the episode number is enough."""
        if self._make is None:
            return {}
        return {"seen": np.frombuffer(b"".join(self._seen), dtype=np.uint8).reshape(-1, DIGEST).copy()}

    def load_state(self, state: State) -> None:
        """Load which contexts were shown."""
        if self._make is None:
            return super().load_state(state)
        arrays = read_state(state)
        seen = arrays["seen"] if set(arrays) == {"seen"} else None
        if seen is None or seen.dtype != np.uint8 or seen.shape[1:] != (DIGEST,):
            raise ValueError(f"`state` must hold bytes (n, {DIGEST}) as 'seen', got {dict(state)!r:.60}")
        self._seen = dict.fromkeys(row.tobytes() for row in seen)

    def _is_new(self, context: Context) -> bool:
        """Remember `context`; return whether it is new."""
        key = context_key(context)
        if key is None:
            raise ValueError(f"`make` must return vectors or labels, got {context!r:.60}")
        before = len(self._seen)
        # A digest: long runs of large contexts would fill memory with keys.
        self._seen[hashlib.blake2b(repr(key).encode(), digest_size=DIGEST).digest()] = None
        return len(self._seen) > before
