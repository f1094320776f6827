"""What arrives before an episode: a vector, a record, or a label."""

from __future__ import annotations

import copy
import functools
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.records import context_rows, missing

Context = Any
"""A vector of numbers, a record (a dictionary, as a row of a table is one), or a hashable label.

Two contexts are the same if they have the same type and value: 1, 1.0, True and "1" are four labels, (1, 2) and [1, 2]
two. numpy's scalars are Python's: np.int64(1) is 1, np.float64(1.0) is 1.0, np.bool_(True) is True. Vectors are the
same if shape, dtype and bytes are. A record has no order, and None, NaN and pandas' NA in it are one missing value.
"""

KEPT_CONTEXTS = 4096
"""How many contexts a `ContextCache` remembers unless told otherwise."""

KEPT_BYTES = 2**27
"""How much memory a cache of tables may take, unless told otherwise: tables of many states are large."""

OWN_BYTES = 4096
"""About what an object takes beside its tables."""

Value = TypeVar("Value")


def context_key(context: Context) -> Hashable | None:
    """Return a hashable key that tells contexts apart, as `Context` says; None for objects that may change in place.

    >>> context_key(1) == context_key(np.int64(1)), context_key(1) in (context_key(True), context_key(1.0))
    (True, False)
    """
    if isinstance(context, np.generic) and context.dtype.kind in "biufU":
        context = context.item()
    if isinstance(context, np.ndarray):
        return None if context.dtype.hasobject else (context.shape, context.dtype.char, context.tobytes())
    if isinstance(context, (str, int, float, np.generic)):
        # NaN is not equal to itself: as a key it would be another one each time.
        return type(context), context if context == context else "nan"
    if isinstance(context, (tuple, list)):
        keys = tuple(context_key(entry) for entry in context)
        return None if None in keys else (type(context), keys)
    if isinstance(context, dict):
        parts = {name: () if missing(value) else context_key(value) for name, value in context.items()}
        return None if None in parts.values() else (dict, tuple(sorted(parts.items(), key=repr)))
    return None


class Keyed(NamedTuple):
    """A context with its key, which is computed once for an episode: the mark of a call from inside the library.

    The caller has checked the rest of the call, and does not write to what is returned. It hands a `Keyed` only to
    objects that declare `takes_keyed`; all others, those of users among them, get the plain context.
    """

    context: Context
    key: Hashable | None

    def to(self, taker: TakesContexts) -> Context:
        """Return this context as `taker` wants it; what could be changed in place is a copy."""
        return self if taker.takes_keyed else unchanging(self.context)


class TakesContexts(Protocol):
    """An object that is asked about contexts."""

    takes_keyed: ClassVar[bool]
    """Whether a context may come with its key."""


def keyed(context: Context) -> Keyed:
    """Return the context with its key; one that has a key already is returned itself.

    >>> keyed("a") is keyed("a"), keyed(keyed("a")) == keyed("a")
    (False, True)
    """
    return context if type(context) is Keyed else Keyed(context, context_key(context))


def unchanging(context: Context) -> Context:
    """Return the context itself; of one that could be changed in place, a copy. Arrays in it are read-only.

    >>> record = {"age": 40, "scores": [1, 2]}
    >>> unchanging(record) == record, unchanging(record)["scores"] is record["scores"], unchanging("a")
    (True, False, 'a')
    """
    if isinstance(context, (str, int, float)):  # the usual labels, without further questions
        return context
    if isinstance(context, np.ndarray) and (context.flags.writeable or context.base is not None):
        context = context.copy()
        context.setflags(write=False)
    elif isinstance(context, dict):
        return {name: unchanging(value) for name, value in context.items()}
    elif type(context) in (list, tuple):
        return type(context)(map(unchanging, context))
    elif isinstance(context, (list, tuple)):  # named tuples, for instance
        return copy.deepcopy(context)
    return context


class ContextCache(Generic[Value]):
    """A cache of what was computed for the contexts used last; one without a key is computed anew each time.

    Values are dropped, the least recently used first, while their sizes sum to more than `most`; the last one always
    stays. Every value has size 1 unless `size` says otherwise, in bytes say. `drop` is called with each value dropped.

    >>> cache = ContextCache(most=2)
    >>> [cache.get(context, str.upper) for context in ("a", "b", "a", "c")], len(cache)
    (['A', 'B', 'A', 'C'], 2)
    """

    def __init__(
        self,
        most: int = KEPT_CONTEXTS,
        *,
        size: Callable[[Value], int] | None = None,
        drop: Callable[[Value], None] | None = None,
    ) -> None:
        self._most, self._size, self._drop = most, size, drop
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._total = 0
        # Answers may be asked for by several threads at once.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(ContextCache, size=self._size, drop=self._drop), (self._most,)  # a copy starts empty

    def get(self, context: Context, make: Callable[[Context], Value]) -> Value:
        """Return `make(context)`, or what it returned before."""
        context, key = context if type(context) is Keyed else keyed(context)
        if key is None:
            return make(context)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        made = make(unchanging(context))  # a caller's function, which may take long, or ask the cache itself
        with self._lock:
            if key in self._kept:  # another thread was faster
                return self._kept[key]
            self._kept[key] = made
            self._total += 1 if self._size is None else self._size(made)
            while self._total > self._most and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._total -= 1 if self._size is None else self._size(oldest)
                if self._drop is not None:
                    self._drop(oldest)
        return made


def alike(contexts: Iterable[Context]) -> list[list[int]]:
    """Return the places of each distinct context; an object that may change in place is like no other.

    >>> alike(["a", "b", "a"])
    [[0, 2], [1]]
    """
    places: dict[Hashable, list[int]] = {}
    for place, context in enumerate(contexts):
        key = context_key(context)
        places.setdefault(place if key is None else (key,), []).append(place)
    return list(places.values())


class Listing:
    """Contexts that have a table of their own, each once and with a number: the argument `contexts` of an oracle.

    >>> Listing(["a", "b", "a", 1, True]).number(True)
    3
    """

    def __init__(self, contexts: Iterable[Context], where: str = "listed") -> None:
        self._where = where
        try:
            found = {table_label(context): context for context in context_rows("contexts", contexts)}
        except TypeError:
            raise ValueError(f"`contexts` must be a list of hashable labels, got {contexts!r:.60}") from None
        if not found:
            raise ValueError("`contexts` must list at least one label, got none")
        self.contexts: tuple[Context, ...] = tuple(found.values())
        # Vectors and records cannot be hashed: their keys stand for them.
        self._numbers = {label: number for number, label in enumerate(found)}

    def __repr__(self) -> str:
        return repr(list(self._numbers))

    def number(self, context: Context) -> int:
        """Return the number of a context; raise if it is not listed."""
        try:
            return self._numbers[table_label(context)]
        except (KeyError, TypeError):  # a label that cannot be hashed is none of the list either
            known = f"{len(self._numbers)} {self._where}"
            raise ValueError(f"`context` must be one of the {known}, got {context!r}") from None


def table_label(context: Context) -> Hashable:
    """Return the label of a context that has a table of its own: its key, or itself, if it can be hashed.

    >>> table_label(1) == table_label(np.int64(1)), table_label(1) == table_label(True), table_label(None)
    (True, False, None)
    """
    key = context_key(context)
    return context if key is None else key


def check_same_kind(name: str, context: Context, first: Context) -> None:
    """Raise unless `context` has the shape or columns of the `first` one and, like it, holds numbers or labels."""

    def kind(value: Context) -> str:
        if isinstance(value, dict):
            return f"records of {sorted(value, key=repr)}"
        array = np.asarray(value)
        return f"{'numbers' if array.dtype.kind in 'biuf' else 'labels'} of shape {array.shape}"

    wanted = kind(first)
    try:
        got = kind(context)
    except Exception:  # a ragged list, or a foreign object
        got = f"{context!r:.60}"
    if got != wanted:
        raise ValueError(
            f"`{name}` must all be {wanted} like the first one, got {got}: describe each by the same features"
        )


def context_numbers(context: Context) -> NDArray[np.float64] | None:
    """Return a context as features, (d,); None for a label."""
    try:
        array = np.atleast_1d(np.asarray(context))
    except Exception:  # a ragged list, or a foreign object
        return None
    is_label = np.ndim(context) == 0 and array.dtype.kind != "f"
    return None if is_label or array.dtype.kind not in "biuf" else array.astype(np.float64).reshape(-1)


def context_vectors(contexts: Sequence[Context]) -> NDArray[np.float64]:
    """Return the contexts as vectors, (C, d): labels become unit vectors.

    >>> context_vectors(["a", "b"])
    array([[1., 0.],
           [0., 1.]])
    """
    numbers = [vector for context in contexts if (vector := context_numbers(context)) is not None]
    return np.array(numbers) if len(numbers) == len(contexts) > 0 else np.eye(len(contexts))


def context_to_json(context: Context) -> str:
    """Return a text that `context_from_json` turns back into the context, bit for bit.

    >>> context_from_json(context_to_json(("a", 0.1)))
    ('a', 0.1)
    """
    return json.dumps(_encoded(context))


def context_from_json(text: str) -> Context:
    """Undo `context_to_json`."""
    return _decoded(json.loads(text))


def _encoded(context: Context) -> Any:
    if isinstance(context, np.ndarray) and context.dtype.kind in "biuf" and context.dtype.itemsize <= 8:
        return {"dtype": context.dtype.str, "shape": context.shape, "vector": context.reshape(-1).tolist()}
    if isinstance(context, np.generic) and context.dtype.kind in "biufU" and context.dtype != np.longdouble:
        return context.item()
    if isinstance(context, dict):
        return {"record": [[_encoded(name), _encoded(value)] for name, value in context.items()]}
    if isinstance(context, (tuple, list)):
        kind = "tuple" if isinstance(context, tuple) else "list"
        return {kind: [_encoded(entry) for entry in context]}
    if context is None or type(context) in (str, bool, int, float):
        return context
    kinds = "a vector, a number, a text, or a tuple or record of these"
    raise ValueError(f"`context` must be {kinds} to be saved, got {context!r}")


def _decoded(value: Any) -> Context:
    if not isinstance(value, dict):
        return value
    if "vector" in value:
        return np.array(value["vector"], dtype=value["dtype"]).reshape(value["shape"])
    if "record" in value:
        return {_decoded(name): _decoded(entry) for name, entry in value["record"]}
    entries = [_decoded(entry) for entry in value["tuple" if "tuple" in value else "list"]]
    return tuple(entries) if "tuple" in value else entries
