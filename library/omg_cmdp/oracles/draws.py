"""Draws of tables: where their random numbers come from, and draws around a prediction whose uncertainty is known.

A draw is a function of a key and of what was learned. Where a key lasts for several episodes, rows of a table about
which nothing was learned are the same in the next one, and are not drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import KEPT_BYTES, ContextCache, Keyed
from omg_cmdp.jit import Lazy
from omg_cmdp.validation import FloatArray

compiled = Lazy("omg_cmdp.oracles.compiled.draws")
random = Lazy("omg_cmdp.oracles.compiled.random")

IntArray = NDArray[np.int64]
Keys = NDArray[np.uint64]

LIFE = 8
"""How many episodes a draw of transitions lasts."""
TAGS = 2**61 - 1
NARROWEST, WIDEST = 1e12, 1e-3
"""The largest and the smallest total of a Dirichlet distribution around a prediction: a point, and corners."""


class Rows(NamedTuple):
    """Rows that were drawn, and what they were made of: keys (K,), shapes (P, R, S), Gamma variates (K, R, S).

    The draws lie side by side, (R, S, K): one instruction of the processor serves several of them.
    """

    keys: Keys
    shapes: FloatArray
    variates: FloatArray
    drawn: FloatArray


class Normals(NamedTuple):
    """Normal numbers (K, n), and their keys (K,)."""

    keys: Keys
    drawn: FloatArray


Drawn = TypeVar("Drawn", Rows, Normals)
Cache = ContextCache[Any]


def empty_cache() -> Cache:
    """Return a cache of what was drawn; whoever draws has it alone, as what is in it changes in place."""
    return ContextCache(KEPT_BYTES, size=lambda held: sum(array.nbytes for array in held))


class Streams:
    """The random numbers of K draws: draw k has a key, and with it a stream of its own.

    What is drawn is a function of the keys, of the `tag`, which says what it is drawn for, and of the arguments. A
    cache saves time and changes nothing. What comes out of it must not be written to, and is valid until the next draw.

    Parameters
    ----------
    keys : array (K + 1,) of uint64
        One for each draw, and one for what is drawn for all of them together.
    source : numpy.random.Generator or tuple of int
        The generator, or its seed, for oracles that have `draws` only.
    cache : ContextCache, optional
        What was drawn before.

    Examples
    --------
    >>> one, other = (Streams.lasting(0, 5, count=8).normals(2) for _ in range(2))
    >>> bool((one == other).all())
    True
    >>> int((one != Streams.lasting(0, 6, count=8).normals(2)).any(axis=1).sum())  # one of eight, an episode later
    1
    """

    def __init__(
        self, keys: Keys, source: np.random.Generator | tuple[int, ...], cache: Cache | None = None, tag: int = 0
    ) -> None:
        self.keys, self.count, self.tag = keys, len(keys) - 1, tag
        self._source, self._cache = [source], cache

    @classmethod
    def fresh(cls, count: int, generator: np.random.Generator) -> Streams:
        """Return streams for draws that never come again."""
        return cls(generator.integers(0, 2**64, count + 1, dtype=np.uint64), generator)

    @classmethod
    def lasting(cls, seed: int, episode: int, count: int, cache: Cache | None = None) -> Streams:
        """Return the streams of an episode: every key is that of `LIFE` episodes, and some end with each of them."""
        return cls(keys_of(seed, episode, count, LIFE), (seed, episode), cache)

    def of(self, part: int, keys: Keys | None = None) -> Streams:
        """Return other streams for one of several parts, with the same keys unless others are given."""
        streams = Streams(self.keys if keys is None else keys, (), self._cache, (31 * self.tag + part + 1) % TAGS)
        streams._source = self._source
        return streams

    @property
    def generator(self) -> np.random.Generator:
        """A generator, the same for all parts: whoever asks draws on it."""
        source = self._source[0]
        if isinstance(source, tuple):
            source = self._source[0] = np.random.default_rng(source)
        return source

    def uniforms(self, size: int) -> FloatArray:
        """Return (size,): uniform numbers in (0, 1) that are for all draws together."""
        numbers = np.empty(size)
        random.fill_uniforms(self.keys[-1], self.tag, numbers)
        return numbers

    def normals(self, size: int) -> FloatArray:
        """Return (K, size): standard normal numbers of every draw."""
        # Other keys than any that is asked for: nothing is there yet.
        held = self._held((size,), lambda: Normals(~self.keys[:-1], np.empty((self.count, size))))
        random.refresh_normals(self.keys, self.tag, *held)
        return held.drawn

    def rows(self, shapes: FloatArray, parts: IntArray | None = None) -> FloatArray:
        """Return (K, ..., S): rows from Dirichlet(shapes), 0 where a shape is 0; in memory the draws lie side by side.

        `shapes` is (..., S); or (P, ..., S), with `parts` (K,) to say whose shapes a draw has.
        """
        if parts is None:
            shapes, parts = shapes[None], np.zeros(self.count, np.int64)
        *rows, width = shapes.shape[1:]
        flat = shapes.reshape(len(shapes), -1, width)
        # No shape is negative: all are other than those asked for.
        held = self._held(
            shapes.shape,
            lambda: Rows(
                keys=self.keys[:-1].copy(),
                shapes=np.full(flat.shape, -1.0),
                variates=np.empty((self.count, *flat.shape[1:])),
                drawn=np.empty((*flat.shape[1:], self.count)),
            ),
        )
        random.refresh_rows(self.keys, self.tag, parts, flat, *held)
        return held.drawn.reshape(*rows, width, self.count).transpose(len(rows) + 1, *range(len(rows) + 1))

    def _held(self, sizes: tuple[int, ...], make: Callable[[], Drawn]) -> Drawn:
        """Return what was drawn in this place, or an empty one."""
        if self._cache is None:
            return make()
        held: Drawn = self._cache.get(Keyed(None, (self.tag, self.count, sizes)), lambda _: make())
        return held


def keys_of(seed: int, episode: int, count: int, life: int) -> Keys:
    """Return the keys of `count` draws in an episode, each of which lasts for `life` of them, and one for all."""
    keys = np.empty(count + 1, np.uint64)
    random.fill_keys(seed % TAGS, episode, life, keys)
    return keys


def resample(weights: FloatArray, streams: Streams) -> IntArray:
    """Return K indices for `weights` (N,), or (G, K) for (G, N): i about K·wᵢ/Σw times, in random order.

    Systematic resampling. Each index has the law of an independent draw, and i comes ⌊K·wᵢ/Σw⌋ or ⌈K·wᵢ/Σw⌉ times, so
    that means over the draws vary far less. The order keeps the draws of two oracles from being paired.

    >>> streams = Streams.fresh(4, np.random.default_rng(0))
    >>> sorted(resample(np.array([0.25, 0.0, 0.75]), streams).tolist())
    [0, 2, 2, 2]
    """
    drawn = np.empty((*weights.shape[:-1], streams.count), dtype=np.int64)
    uniforms = streams.uniforms(drawn.size).reshape(-1, streams.count)
    compiled.systematic(weights.reshape(-1, weights.shape[-1]), uniforms, drawn.reshape(-1, streams.count))
    return drawn


def rewards_around(
    prediction: FloatArray, uncertainty: FloatArray, streams: Streams, parts: IntArray | None = None
) -> FloatArray:
    """Return (K, ...): N(f̂, u) for each pair, cut to [0, 1]. `uncertainty` may be without steps.

    With `parts` (K,) there are several predictions, (P, ...), and draw k is around that of its part.

    >>> streams = Streams.fresh(2, np.random.default_rng(0))
    >>> rewards_around(np.array([[0.5, 0.5]]), np.array([[0.0, 100.0]]), streams)[:, 0, 0]
    array([0.5, 0.5])
    """
    around = np.asarray(prediction, dtype=np.float64)[parts]  # None is a new axis
    normals = streams.normals(around[0].size).reshape(-1, *around.shape[1:])
    drawn = around + np.sqrt(uncertainty) * normals
    return np.clip(drawn, 0.0, 1.0, out=drawn)


def rows_around(
    prediction: FloatArray, uncertainty: FloatArray, streams: Streams, parts: IntArray | None = None
) -> FloatArray:
    """Return (K, ...): rows from Dirichlet(α·P̂), α = (k-1)/(4u) - 1, where P̂ leads to k next states.

    Then E[D²] ≈ ¼·Σ Var/P̂ = u. If u = 0 or k = 1, the row is that of P̂. `parts` is as for `rewards_around`.
    """
    prediction = np.asarray(prediction, dtype=np.float64)
    freedoms = (prediction > 0.0).sum(axis=-1) - 1.0
    # Far outside these limits Dirichlet draws are a point or a corner in double precision anyway.
    totals = np.clip(0.25 * freedoms / np.maximum(uncertainty, 1e-300) - 1.0, WIDEST, NARROWEST)
    moving = (freedoms > 0.0) & (np.asarray(uncertainty) > 0.0)
    drawn = streams.rows(np.where(moving, totals, 0.0)[..., None] * prediction, parts)
    return np.where(moving[parts][..., None], drawn, prediction[parts])  # parts may be None, a new axis
