"""The base of the worlds: arguments, a list of contexts, a finite function class, and a dial.

With ε the dial `misspecification`, f_i and P_j the class, i* and j* drawn with the world's structure:

    rewards      f*(c) = (1-ε)·f_{i*}(c) + ε·g(c)
    transitions  P*(c) = (1-ε)·P_{j*}(c) + ε·Q(c)

g and Q are the means of the class, Σ f_i/N and Σ P_j/M, if a world says nothing else: a truth that is less decided than
any function of its class. What is known, a class of one, does not move. At ε = 0 the truth is a member, bit for bit.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context, context_numbers
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.jit import one_thread
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray, float_table, frozen, in_range, integer, positive_integer, seed_number


@dataclasses.dataclass(kw_only=True, eq=False)
class World(ContextualMDP):
    """A contextual MDP with `contexts`, a class around the truth, and the dial `misspecification`.

    The functions of the class are `reward_functions(context)`, (N, S, A), and `transition_functions(context)`,
    (M, S, A, S), as `FiniteRewards` and `FiniteDynamics` take them. Rewards or transitions that the agent knows have a
    class of one function.

    A world is a dataclass, its arguments are fields with defaults, and `_draw` makes the rest of it. Integers are
    sizes, of at least 1; the usual ones are called `states`, `actions`, `horizon` and `context_count`.

    Parameters
    ----------
    misspecification : float
        The dial ε in [0, 1).
    seed : int
        Draws the structure.

    >>> from omg_lab.worlds import Arms
    >>> isinstance(Arms(), World), Arms().contexts
    (True, (0, 1))
    """

    misspecification: float = 0.0
    seed: int = 0

    takes_keyed = True

    reward_index = 0
    """The index of the true reward function, from which the dial moves away."""

    transition_index = 0
    """The index of the true transition function."""

    package: ClassVar[str | None] = None
    """The package that must be installed beside ours, by the name that pip knows; None: there is none."""

    def __post_init__(self) -> None:
        """Check the arguments that worlds share, and draw the structure."""
        self.misspecification = fraction("misspecification", self.misspecification)
        for field in dataclasses.fields(self):
            if type(field.default) is int and field.name != "seed":
                setattr(self, field.name, positive_integer(field.name, getattr(self, field.name)))
        with one_thread():  # the same bits on every machine
            self._draw()
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)  # an agent or a user that is handed it must not change the world

    def _facts(self, witnesses: list[Context]) -> tuple[object, ...]:
        """Return what tells worlds apart beside their tables: the arguments, which determine the rest."""
        arguments = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return (*super()._facts(witnesses), arguments)

    @abc.abstractmethod
    def _draw(self) -> None:
        """Set `space`, `contexts`, the indices of the truth, and what the functions of the class are made of."""

    def features(self, context: Context) -> FloatArray:
        """Return the features (d,) of `context` for parametric oracles: a vector itself, or a label's unit vector."""
        numbers = context_numbers(context)
        return np.eye(len(self.contexts))[self._label(context)] if numbers is None else numbers

    def _label(self, context: Context) -> int:
        """Return `context` as one of the labels 0, 1, ….

        Where the tables are the same for all, it is called for its refusal of what is no context.
        """
        return integer("context", context, 0, len(self.contexts) - 1)

    @abc.abstractmethod
    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) of the N functions of the class."""

    @abc.abstractmethod
    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) of the M functions of the class."""

    def mdp(self, context: Context) -> TabularMDP:
        """Return the true MDP of `context`."""
        transitions, rewards = self._transition_member(context), self._reward_member(context)
        if share := self.misspecification:
            transitions = transitions + share * (self._outside_transitions(context) - transitions)
            rewards = rewards + share * (self._outside_rewards(context) - rewards)
        return self.space.mdp(transitions=transitions, rewards=rewards)

    def _reward_member(self, context: Context) -> FloatArray:
        return np.asarray(self.reward_functions(context)[self.reward_index])

    def _transition_member(self, context: Context) -> FloatArray:
        return np.asarray(self.transition_functions(context)[self.transition_index])

    def _outside_rewards(self, context: Context) -> FloatArray:
        """Return g(context), (S, A)."""
        return np.asarray(self.reward_functions(context).mean(axis=0))

    def _outside_transitions(self, context: Context) -> FloatArray:
        """Return Q(context), (S, A, S)."""
        return np.asarray(self.transition_functions(context).mean(axis=0))


class Noiseless(World):
    """A world whose rewards have no noise."""

    def draw_reward(self, mean: float, uniform: float) -> float:
        """Return the mean."""
        return float(mean)


class OneState(World):
    """A world of one state, in which only rewards have to be learned."""

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (1, 1, A, 1)."""
        return np.ones((1, 1, self.reward_functions(context).shape[-1], 1))  # which refuses what is no context


class Waves(World):
    """A world of vectors whose dial moves towards tables outside of all classes.

    These are rewards ½ + ½·sin(ω(s, a)·c) and transitions ∝ exp(2·sin(ω(s, a, s')·c)), with frequencies ω of standard
    deviation 4.
    """

    def _draw_waves(self, generator: np.random.Generator, dimension: int) -> None:
        pairs = (self.space.states, self.space.actions)
        self._reward_waves = generator.normal(scale=4.0, size=(*pairs, dimension))
        self._transition_waves = generator.normal(scale=4.0, size=(*pairs, self.space.states, dimension))

    def _outside_rewards(self, context: Context) -> FloatArray:
        return np.asarray(0.5 + 0.5 * np.sin(self._reward_waves @ context))

    def _outside_transitions(self, context: Context) -> FloatArray:
        return softmax(2.0 * np.sin(self._transition_waves @ context))


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


def patient(context: Context, dimension: int) -> FloatArray:
    """Return 1 and the features of a patient, `dimension` numbers in [-1, 1]."""
    features = vector(context, dimension)
    in_range("context", features, -1.0, 1.0)
    return np.concatenate([[1.0], features])


def streams(seed: int, count: int) -> list[np.random.Generator]:
    """Return independent generators for the parts of a world's structure."""
    return np.random.default_rng(seed_number(seed)).spawn(count)


def unit_vectors(generator: np.random.Generator, count: int, dimension: int) -> tuple[FloatArray, ...]:
    """Return `count` directions in R^d, read-only."""
    drawn = generator.normal(size=(count, dimension))
    return tuple(frozen(direction) for direction in drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def shuffled(generator: np.random.Generator, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array (N, *shape): the N entries of `values`, shuffled separately in every place."""
    return np.moveaxis(generator.permuted(np.broadcast_to(values, (*shape, len(values))), axis=-1), -1, 0)


def softmax(logits: FloatArray) -> FloatArray:
    """Return exp(x)/Σ exp(x) over the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def sigmoid(logits: FloatArray) -> FloatArray:
    """Return 1/(1 + exp(-x)), for any x."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits))
