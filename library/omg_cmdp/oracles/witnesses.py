"""How a saved state knows a class of functions again: by what the class says in some contexts, the *witnesses*.

Two functions cannot be compared, but what they say can. Witnesses are the first contexts that were learned from, and
those that a dictionary of tables lists. A state holds each of them as text, with a sketch of what the class says there,

    Σ_k x_k·exp(ik),

which another order of functions, or another number, changes. An oracle that loads the state computes the sketches from
its own class. Rounding is forgiven: features may differ in their last bits on another machine.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Hashable, Iterable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, Keyed, context_from_json, context_key, context_to_json
from omg_cmdp.persistence import State
from omg_cmdp.validation import UNEXPECTED

LEARNED, LISTED = 8, 256
"""The most witnesses of the contexts learned from, and of those listed."""

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


class Source(Protocol):
    """An argument of an oracle that is a function of contexts, or tables by context."""

    argument: str
    """The name of the argument."""
    listed: tuple[Context, ...] | None
    """The contexts of a dictionary; None for a function."""

    def facts(self, context: Context) -> ArrayLike:
        """Return the numbers that it gives for a context."""


class Witnesses:
    """The witnesses of a source: some contexts that a dictionary lists, or the first that a function was learned with.

    Without a source there is nothing to witness.
    """

    def __init__(self, source: Source | None) -> None:
        self._source, self._listed = source, None if source is None else source.listed
        self._learned: dict[str, complex] = {}
        self._keys: set[Hashable] = {None}  # a context without a key may change in place, and is no witness

    def learn(self, known: Keyed) -> None:
        """Add a context that is learned from, while there is room."""
        has_room = self._source is not None and self._listed is None and len(self._learned) < LEARNED
        if has_room and known.key not in self._keys:
            self._take(self._learned | self._sketches([known.context]))

    def _take(self, learned: dict[str, complex]) -> None:
        self._learned = learned
        self._keys = {None, *(context_key(context_from_json(text)) for text in learned)}

    def _sketches(self, contexts: Iterable[Context]) -> dict[str, complex]:
        """Return the sketches of those contexts that can be written as text, and read again as what they were."""
        found = dict[str, complex]()
        if self._source is None:
            return found
        for context in contexts:
            try:
                text = context_to_json(context)
            except ValueError:
                continue
            # Read back, as it will be when the state is loaded; nor may a caller's function get the context itself.
            again = context_from_json(text)
            if context_key(again) == context_key(context):
                found[text] = sketch(self._source.facts(again))[0]
        return found

    @functools.cached_property
    def _of_listed(self) -> dict[str, complex]:
        return self._sketches((self._listed or ())[:LISTED])

    def state(self) -> dict[str, NDArray[np.str_]]:
        """Return the witnesses, and a sentence on what they leave open."""
        if self._source is None:
            return {}
        found = {**self._of_listed, **self._learned}
        pairs = [[text, value.real, value.imag] for text, value in found.items()]
        return {"compared": np.array(json.dumps(pairs)), "not compared": np.array(self._rest(len(found)))}

    def _rest(self, compared: int) -> str:
        """Return what a state with this number of witnesses leaves open."""
        if self._source is None or (self._listed is not None and len(self._of_listed) == len(self._listed)):
            return "nothing"
        return f"`{self._source.argument}` in other contexts than the {compared} compared"

    def check(self, state: State) -> dict[str, complex]:
        """Return the witnesses in a state; raise unless this class says the same in their contexts."""
        if self._source is None:
            return {}
        try:
            pairs = json.loads(str(state["compared"]))
            saved = {str(text): complex(*parts) for text, *parts in pairs}
            contexts = {text: context_from_json(text) for text in saved}
            if str(state["not compared"]) != self._rest(len(saved)):
                raise ValueError(f"{state['not compared']} is not compared")
        except (*UNEXPECTED, ValueError) as error:
            raise ValueError(f"`state` must hold what was 'compared', and what was not, got {error!r:.80}") from None
        for text, wanted in saved.items():
            try:
                found, rounding = sketch(self._source.facts(contexts[text]))
            except Exception as error:  # whatever a user's function raises in a context that it was not made for
                raise ValueError(f"`state` must come from `{self._source.argument}` of its contexts: {error}") from None
            if not abs(found - wanted) <= rounding:
                where = f"`{self._source.argument}`, got others in context {contexts[text]!r:.60}"
                raise ValueError(f"`state` must come from the same {where}")
        return saved

    def load(self, saved: dict[str, complex]) -> None:
        """Continue with what `check` has returned."""
        if self._listed is None:
            self._take(saved)
