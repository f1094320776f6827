"""What any environment says of itself, for those that build agents, oracles and reports for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from omg_cmdp.contexts import Context, unchanging
from omg_cmdp.fingerprints import UNTOLD, fingerprint
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import BoolArray, FloatArray


class Environment:
    """The declarations of an environment. Only `space` is required; each default says that nothing more is known."""

    space: Space
    contexts: Sequence[Context] = ()
    """The contexts that may come, where they can be listed."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """The least and the largest reward of a step, in the environment's own units."""
    return_range: tuple[float, float] | None = None
    """The least and the most that an episode can earn, in the same units; None: H times `reward_range`."""
    state_names: Sequence[str] = ()
    """Names of the states for readers of a report; () if they have only numbers."""
    action_names: Sequence[str] = ()
    """Names of the actions."""
    feature_names: Sequence[str] = ()
    """Names of the entries of a context, if it is a vector."""
    support: BoolArray | None = None
    """A mask (S, A, S) of the next states that can follow a pair in any context, for oracles; None: all can."""
    mdp: Callable[[Context], TabularMDP] | None = None
    """The true MDP of a context; None if its tables are unknown."""
    features: Callable[[Context], FloatArray] | None = None
    """The features (d,) of a context for parametric oracles; None: the context itself, if it is a vector."""
    costs: Any = None
    """What decisions cost on average: (J, S, A) or (J, H, S, A), or context -> such a table; None: nothing."""
    budgets: Any = None
    """What an episode may cost in expectation, (J,), or context -> (J,); with `costs`, or None."""
    reward_functions: Callable[[Context], FloatArray] | None = None
    """A finite class of reward functions at a context, (N, S, A); None if there is no class."""
    transition_functions: Callable[[Context], FloatArray] | None = None
    """A finite class of transitions at a context, (M, S, A, S); None if there is no class."""
    takes_keyed: ClassVar[bool] = False
    """Whether `sample` takes a context with its key (`contexts.Keyed`): where it looks nothing else up."""
    product_class = False
    """True if a member of the class may choose its function separately for every context and state."""

    def __repr__(self) -> str:
        listed = f", {len(self.contexts)} contexts" if len(self.contexts) else ""
        space = getattr(self, "space", "no space yet")  # a user's class may set it late
        return f"{type(self).__name__}: {space!r}{listed}, rewards in {self.reward_range}"

    def fingerprint(self, contexts: Sequence[Context] = ()) -> str:
        """Return a short text that tells worlds apart: by their class, space, ranges and contexts.

        Where the world lists no contexts, these `contexts` stand for them. The text ends with "?" if the world could
        differ in what is not compared: without tables, or without contexts to look them up.
        """
        return f"{type(self).__name__} {fingerprint(*self._facts(self._witnesses(contexts)))}{UNTOLD}"

    def _witnesses(self, contexts: Sequence[Context]) -> list[Context]:
        """Return up to 16 contexts, evenly from the list; fewer if tables are large."""
        listed = self.contexts if len(self.contexts) else contexts
        count = max(2, min(16, 2**22 // (self.space.states**2 * self.space.actions), len(listed)))
        places = {place * (len(listed) - 1) // (count - 1) for place in range(count)} if len(listed) else set()
        return [unchanging(listed[place]) for place in sorted(places)]

    def _facts(self, witnesses: list[Context]) -> tuple[object, ...]:
        space = self.space
        tables = space.states, space.actions, space.horizon, space.start, space.admissible
        ranges = self.reward_range, self.paid_range, self.paid_returns
        return tables, ranges, len(self.contexts), witnesses

    @property
    def paid_range(self) -> tuple[float, float]:
        """The range of the rewards that `sample` pays, as an agent is to be told; [0, 1] where there are tables."""
        return 0.0, 1.0

    @property
    def paid_returns(self) -> tuple[float, float] | None:
        """The range of their sum over an episode; None: H times `paid_range`."""
        return self.return_range


NAMED = ("state_names", "action_names", "feature_names")
"""What an environment may name for readers of a report."""


def set_names(world: Environment, **names: Sequence[str] | None) -> None:
    """Name the states, actions and features of `world`; None leaves them as they are."""
    for kind, checked in checked_names(world, **names).items():
        setattr(world, kind, checked)


def checked_names(world: Environment, **names: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Return the names that are given, if they fit the world.

    Where the last state is that of ended episodes, it need not be named. A label is one feature.
    """
    space, found = world.space, {}
    features = np.size(world.contexts[0]) if len(world.contexts) else None
    sizes = dict(zip(NAMED, (space.states, space.actions, features), strict=True))
    for kind, given in names.items():
        if given is None:
            continue
        listed = [] if isinstance(given, str) else list(given)
        ends = kind == "state_names" and space.admissible[-1].sum() == 1
        found[kind] = (*listed, "ended") if ends and len(listed) == space.states - 1 else tuple(listed)
        if len(found[kind]) != sizes[kind] or not all(isinstance(each, str) for each in listed):
            less = " (the last, of ended episodes, may be left out)" if ends else ""
            raise ValueError(f"`{kind}` must be {sizes[kind]} texts{less}, got {given!r:.80}")
    return found
