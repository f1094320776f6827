"""The contract of an adversary, which chooses every context and may look at the agent and the world first."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context, unchanging
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.fingerprints import UNTOLD, fingerprint
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.persistence import State, read_state
from omg_cmdp.records import context_rows
from omg_cmdp.validation import FloatArray


class View(Protocol):
    """The agent and the world as an adversary may look at them before it chooses. Looking changes nothing.

    `simulate` makes it: `environment` is the world, `policy(context)` the policy (H, S, A) that the agent would play
    now, `model(context)` the agent's model, or None.

    Examples
    --------
    >>> class Watchful(Adversary):
    ...     def context(self, episode, view, generator):
    ...         values = {c: view.environment.optimal_value(c) for c in ("a", "b")}
    ...         return min(values, key=values.get)
    """

    @property
    def environment(self) -> ContextualMDP:
        """The true world."""

    def policy(self, context: Context) -> FloatArray:
        """Return the policy (H, S, A) that the agent would play now if `context` came."""

    def model(self, context: Context) -> TabularMDP | None:
        """Return the agent's present model of `context`, or None if it has no model."""


class Adversary(abc.ABC):
    """The party that chooses the contexts. It is asked once for each episode, in order; episode 0 begins a new run.

    One of your own needs `context` alone, and `state` and `load_state` if it remembers something; with `settings`, a
    saved run tells it from others of its class. All its randomness comes from the generator it is given. To replay the
    contexts of a run, give them to `Sequence`.

    Examples
    --------
    >>> class Alternating(Adversary):
    ...     def context(self, episode, view, generator):
    ...         return "ab"[episode % 2]
    >>> [Alternating().context(t, view=None, generator=None) for t in range(3)]
    ['a', 'b', 'a']
    """

    contexts: tuple[Context, ...] = ()
    """The contexts that it chooses from, where these are listed."""
    settings: ClassVar[tuple[str, ...] | None] = None
    """The attributes that must be the same in a run that is saved and one that continues it; None: not declared."""

    def __repr__(self) -> str:
        own = {each: getattr(self, each) for each in self.settings or () if each != "contexts"}
        listed = [f"{len(self.contexts)} contexts"] if self.contexts else []
        return f"{type(self).__name__}({', '.join(listed + [f'{name}={value!r:.60}' for name, value in own.items()])})"

    @property
    def fingerprint(self) -> str:
        """A short text that tells adversaries apart; it ends with "?" for one that declares no `settings`."""
        shared = [getattr(self, each) for each in self.settings or ()]
        return f"{type(self).__name__} {fingerprint(shared)}{UNTOLD if self.settings is None else ''}"

    @abc.abstractmethod
    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return the context of `episode`, counted from 0."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what must be saved to continue a run: nothing by default."""
        return {}

    def load_state(self, state: State) -> None:
        """Load a state saved by an adversary with the same settings."""
        if read_state(state):
            raise ValueError(f"`state` must be empty for {type(self).__name__}, got {sorted(state)}")


def context_list(name: str, contexts: Iterable[Context]) -> tuple[Context, ...]:
    """Return a copy of the non-empty list `contexts`; a matrix or a table is a list of its rows."""
    # The order of a set changes from one process to the next, and with it the run.
    if isinstance(contexts, (set, frozenset)):
        raise ValueError(f"`{name}` must have an order, got a {type(contexts).__name__}")
    # Copies, because a caller may change a list or an array in place during the run.
    found = tuple(map(unchanging, context_rows(name, contexts)))
    if not found:
        raise ValueError(f"`{name}` must hold at least one context, got {contexts!r:.60}")
    return found
