"""What the worlds of this package share: contexts one can list, a finite function class, and a dial.

With ε the dial `misspecification`, f_i and P_j the class, i* and j* drawn with the world's structure:

    rewards      f*(c) = (1-ε)·f_{i*}(c) + ε·g(c)
    transitions  P*(c) = (1-ε)·P_{j*}(c) + ε·Q(c)

g and Q lie outside the class. At ε = 0 the truth is a member of it, bit for bit.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.mdp.tabular import Space, TabularMDP
from omg_cmdp.validation import FloatArray, float_table, frozen


class World(ContextualMDP):
    """A contextual MDP with `contexts`, a class around the truth, and the dial `misspecification`.

    The functions of the class are `reward_functions(context)`, (N, S, A), and `transition_functions(context)`,
    (M, S, A, S): what `FiniteRewards` and `FiniteDynamics` take. What is known to the agent is a class of one.
    """

    product_class = False
    """True if a member of the class may pick its function anew in every pair of a context and a state."""

    reward_index = 0
    """Which of the reward functions is the truth, or is moved away from by the dial."""

    transition_index = 0
    """The same for the transition functions."""

    def __init__(self, *, space: Space, contexts: tuple[Context, ...], misspecification: float) -> None:
        self.space = space
        self.contexts = contexts
        self.misspecification = fraction("misspecification", misspecification)

    @abc.abstractmethod
    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) that the N functions of the class say."""

    @abc.abstractmethod
    def transition_functions(self, context: Context) -> FloatArray:
        """Return the kernels (M, S, A, S) that the M functions of the class say."""

    def mdp(self, context: Context) -> TabularMDP:
        """Return the true MDP of `context`."""
        return self.space.mdp(
            transitions=self._moved(context, self._transition_member, self._outside_transitions),
            rewards=self._moved(context, self._reward_member, self._outside_rewards),
        )

    def _reward_member(self, context: Context) -> FloatArray:
        return np.asarray(self.reward_functions(context)[self.reward_index])

    def _transition_member(self, context: Context) -> FloatArray:
        return np.asarray(self.transition_functions(context)[self.transition_index])

    def _outside_rewards(self, context: Context) -> FloatArray | None:
        """Return g(context), (S, A); None where the dial leaves the rewards alone."""
        return None

    def _outside_transitions(self, context: Context) -> FloatArray | None:
        """Return Q(context), (S, A, S); None where the dial leaves the transitions alone."""
        return None

    def _moved(
        self,
        context: Context,
        member: Callable[[Context], FloatArray],
        outside: Callable[[Context], FloatArray | None],
    ) -> FloatArray:
        """Return the member, moved by the dial; at 0 nothing outside is computed."""
        inside, target = member(context), outside(context) if self.misspecification else None
        if target is None:
            return inside
        return (1.0 - self.misspecification) * inside + self.misspecification * target


def fraction(name: str, value: Any) -> float:
    """Return `value` as a float in [0, 1)."""
    number = float(value) if isinstance(value, (int, float, np.integer, np.floating)) else np.nan
    if not 0.0 <= number < 1.0 or isinstance(value, bool):
        raise ValueError(f"`{name}` must lie in [0, 1), got {value!r}")
    return number


def vector(context: Context, dimension: int) -> FloatArray:
    """Return `context` as a vector (d,) of finite numbers."""
    array = float_table("context", context)
    if array.shape != (dimension,) or not np.isfinite(array).all():
        raise ValueError(f"`context` must be a vector of {dimension} finite numbers, got {context!r:.80}")
    return array


def label(context: Context, count: int) -> int:
    """Return `context` as a label in 0..count-1."""
    try:
        number = operator.index(context)
    except TypeError:
        number = -1
    if not 0 <= number < count or isinstance(context, (bool, np.bool_)):
        raise ValueError(f"`context` must be a label in 0..{count - 1}, got {context!r:.80}")
    return number


def unit_vectors(generator: np.random.Generator, count: int, dimension: int) -> tuple[FloatArray, ...]:
    """Return `count` directions in R^d, read-only."""
    drawn = generator.normal(size=(count, dimension))
    return tuple(frozen(direction) for direction in drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def dealt(generator: np.random.Generator, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array (N, *shape): in every place the N entries of `values`, in an order of their own."""
    return np.moveaxis(generator.permuted(np.broadcast_to(values, (*shape, len(values))), axis=-1), -1, 0)


def softmax(logits: FloatArray) -> FloatArray:
    """Return exp(x)/Σ exp(x) over the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def sigmoid(logits: FloatArray) -> FloatArray:
    """Return 1/(1 + exp(-x)), for any x."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits))
