"""Which transitions can happen: masks of next states, and smoothing over them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.oracles.losses import Episode
from omg_cmdp.persistence import fingerprint
from omg_cmdp.validation import FloatArray


def support_mask(support: ArrayLike | None, states: int, actions: int) -> NDArray[np.bool_]:
    """Return the boolean mask (S, A, S) of possible transitions; None admits all."""
    if support is None:
        return np.ones((states, actions, states), dtype=np.bool_)
    try:
        mask = np.array(support)
    except ValueError:
        raise ValueError(f"`support` must be a boolean table, got {support!r:.60}") from None
    if mask.dtype != np.bool_ or mask.shape != (states, actions, states):
        wanted = f"boolean of shape {(states, actions, states)}"
        raise ValueError(f"`support` must be {wanted}, got {mask.dtype} of shape {mask.shape}")
    if not mask.any(axis=-1).all():
        pair = tuple(int(i) for i in np.argwhere(~mask.any(axis=-1))[0])
        raise ValueError(f"`support` must leave a next state for every (state, action), got none for {pair}")
    return mask


class Smoothing:
    """P → (1-ν)·P + ν·uniform over the support: P̂ is never zero on a transition that can happen."""

    def __init__(self, amount: float, support: ArrayLike | None) -> None:
        number = amount if isinstance(amount, (int, float)) else math.nan
        if not 0.0 <= number < 1.0:
            raise ValueError(f"`smoothing` must be a number in [0, 1), got {amount!r}")
        self.amount = float(number)
        self._uniform: FloatArray | None = None
        if support is not None:
            try:
                states, actions, _ = np.shape(support)
            except ValueError:
                raise ValueError(f"`support` must have shape (S, A, S), got {support!r:.60}") from None
            mask = support_mask(support, states, actions)
            self._uniform = mask / mask.sum(axis=-1, keepdims=True)

    def __call__(self, tables: FloatArray) -> FloatArray:
        """Return `tables` (..., S, A, S), smoothed."""
        if self.amount == 0.0:
            return tables
        return (1.0 - self.amount) * tables + self.amount * self._target(tables.shape[-3:])

    def examples(self, shape: tuple[int, ...], episode: Episode) -> tuple[float, FloatArray]:
        """Return k and b such that the transitions seen have probability k·P + b after smoothing."""
        if self.amount == 0.0:
            return 1.0, np.zeros(len(episode.cells))
        seen = self._target(shape[-3:])[episode.states, episode.actions, episode.outcomes]
        return 1.0 - self.amount, self.amount * seen

    def __str__(self) -> str:
        support = "" if self._uniform is None else f" over {fingerprint(self._uniform)}"
        return f"smoothing {self.amount}{support}"

    def price(self, examples: int) -> float:
        """Return what smoothing adds to the log loss of any kernel, at most."""
        return -examples * math.log1p(-self.amount)

    def _target(self, shape: tuple[int, ...]) -> FloatArray:
        if self._uniform is None:
            return np.full(shape, 1.0 / shape[-1])
        if self._uniform.shape != shape:
            raise ValueError(f"`support` must have shape {shape}, got {self._uniform.shape}")
        return self._uniform
