"""How a saved state knows a class of functions again: by what the class says in some contexts, the *witnesses*.

Two functions cannot be compared, but what they say can. Witnesses are the first contexts that were learned from, and
those that a dictionary of tables lists. A state holds each of them as text, with a sketch of what the class says there,

    Σ_k x_k·exp(ik),

which another order of functions, or another number, changes. An oracle that loads the state computes the sketch again
from its own class. Rounding is forgiven: on another machine features may differ in their last bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context, context_from_json, context_key, context_to_json, keyed
from omg_cmdp.persistence import State

LEARNED, LISTED = 8, 256
"""The most contexts that are kept of those learned from, and of those listed."""

ROUNDING = 1e-11
"""The part of Σ|x| by which two sketches of the same numbers may differ."""

WAVE = np.exp(1j * np.arange(4096))


def sketch(values: ArrayLike) -> tuple[complex, float]:
    """Return Σ_k x_k·exp(ik) of all numbers, and how far rounding may move it.

    >>> sketch([1.0, 2.0])[0] == sketch([2.0, 1.0])[0]
    False
    """
    flat, total = np.asarray(values, dtype=np.float64).reshape(-1), 0j
    for first in range(0, flat.size, len(WAVE)):
        part = flat[first : first + len(WAVE)]
        total += np.exp(1j * first) * (WAVE[: len(part)] @ part)
    return complex(total), ROUNDING * float(np.abs(flat).sum())


class Witnesses:
    """The witnesses of one class; `facts` returns what it says in a context, or None if its settings say it all."""

    def __init__(self, facts: Callable[[Context], ArrayLike | None], known: Iterable[Context] = ()) -> None:
        self._facts, self._known = facts, known
        self._learned: dict[str, complex] = {}
        self._asked: set[object] = set()

    def learn(self, context: Context) -> None:
        """Add a context that is learned from, while there is room."""
        context, key = keyed(context)
        # A context without a key may have changed by the time it is saved, and is none that can be written.
        if len(self._learned) >= LEARNED or key is None or key in self._asked:
            return
        self._asked = {*list(self._asked)[: 4 * LEARNED], key}
        self._learned |= self._sketched([context])

    def _sketched(self, contexts: Iterable[Context]) -> dict[str, complex]:
        """Return the sketches of those contexts that can be written as text, and read again as what they were."""
        found = {}
        for context in contexts:
            try:
                text = context_to_json(context)
            except (TypeError, ValueError):
                continue
            facts = self._facts(context) if context_key(context_from_json(text)) == context_key(context) else None
            if facts is not None:
                found[text] = sketch(facts)[0]
        return found
