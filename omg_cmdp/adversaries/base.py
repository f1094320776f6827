"""What an adversary is: it chooses the context of every episode, and may look at the agent and the world before."""

from __future__ import annotations

import abc
import copy
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.persistence import State
from omg_cmdp.validation import FloatArray, frozen


class Tables(Protocol):
    """What is read of a model; `TabularMDP` has it. Step h uses entry h mod K, and K is 1 or H."""

    @property
    def kernel(self) -> FloatArray:
        """The transitions (K, S, A, S)."""

    @property
    def reward_steps(self) -> FloatArray:
        """The mean rewards (K, S, A)."""


class View(Protocol):
    """What an adversary may look at before it chooses. Looking changes nothing."""

    @property
    def environment(self) -> ContextualMDP:
        """The true world."""

    def policy(self, context: Context) -> FloatArray:
        """Return (H, S, A): what the agent would play now, were `context` to come."""

    def model(self, context: Context) -> Tables | None:
        """Return the MDP that the agent believes in now (a `TabularMDP`), or None if it has no model."""


class Adversary(abc.ABC):
    """Who chooses the contexts. It is asked once for each episode, in order; episode 0 begins a new run.

    All its randomness comes from the generator that it is given. What it has shown can be shown again by `Sequence`.
    """

    @abc.abstractmethod
    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return the context of `episode`, counted from 0."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what must be saved for going on after a crash: by default nothing."""
        return {}

    def load_state(self, state: State) -> None:
        """Load a state saved by an adversary with the same settings."""
        if len(state):
            raise ValueError(f"`state` must be empty for {type(self).__name__}, got {sorted(state)}")


def listed(name: str, contexts: Iterable[Context]) -> tuple[Context, ...]:
    """Return a copy of the non-empty list `contexts`; the rows of a matrix are contexts, too."""
    if isinstance(contexts, (set, frozenset)):
        raise ValueError(f"`{name}` must have an order, got a {type(contexts).__name__}")
    try:
        entries = iter(contexts)
    except TypeError:
        raise ValueError(f"`{name}` must be a list of contexts, got {contexts!r:.60}") from None
    found = tuple(own(context) for context in entries)
    if not found:
        raise ValueError(f"`{name}` must hold at least one context, got {contexts!r:.60}")
    return found


def own(context: Context) -> Context:
    """Return a copy, read-only if an array, which no later change by the caller reaches."""
    if isinstance(context, np.ndarray):
        return frozen(context.copy())
    return copy.deepcopy(context) if isinstance(context, (list, tuple, dict)) else context
