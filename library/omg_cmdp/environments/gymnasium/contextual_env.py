"""Gymnasium environments that take contexts, and the numbering of their observations and actions."""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard, Union

import numpy as np

from omg_cmdp.contexts import Context, ContextCache
from omg_cmdp.environments.base import copied
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import float_table, positive_integer

if TYPE_CHECKING:
    import gymnasium

EnvMaker = Union[str, "gymnasium.Env[Any, Any]", Callable[..., "gymnasium.Env[Any, Any]"]]
"""The id of a registered environment, an environment, or a function that makes one."""

Arguments = str | Callable[[Context], Mapping[str, Any]] | None
"""The way in for a context: the name of a constructor's argument, a function that returns arguments, or `reset`."""

OPEN_ENVIRONMENTS = 64
"""The number of environments that stay open where every context has its own."""


class ContextualEnv:
    """A Gymnasium environment that takes contexts.

    With `arguments` None, one environment takes them all, by `reset(options={"context": context})`. Otherwise every
    context has an environment of its own, made with the argument of that name, or with the arguments that the function
    returns for the context.
    """

    def __init__(self, make: EnvMaker, arguments: Arguments = None) -> None:
        if arguments is not None and not isinstance(arguments, str) and not callable(arguments):
            raise ValueError(f"`arguments` must be a name, a function of the context or None, got {arguments!r:.60}")
        if arguments is not None and is_env(make):
            raise ValueError("`make` must be an id or a function where `arguments` are given, got an environment")
        self._make, self._arguments = _maker(make), arguments
        # An environment may hold a window or a simulator: it is closed when it is dropped.
        close = operator.methodcaller("close")
        self._open: ContextCache[gymnasium.Env[Any, Any]] = ContextCache(OPEN_ENVIRONMENTS, drop=close)

    def open(self, context: Context) -> gymnasium.Env[Any, Any]:
        """Return an environment for `context`; where `reset` takes the context, it is yet to be reset."""
        # One environment for all contexts where `reset` takes them, else one for each.
        return self._open.get("all" if self._arguments is None else context, lambda _: self._made(context))

    def reset(self, context: Context, seed: int) -> tuple[gymnasium.Env[Any, Any], Any, dict[str, Any]]:
        """Begin an episode of `context`; return the environment, its first observation and info."""
        env = self.open(context)
        if self._arguments is not None:
            return env, *env.reset(seed=seed)
        return env, *env.reset(seed=seed, options={"context": copied(context)})

    def _made(self, context: Context) -> gymnasium.Env[Any, Any]:
        if self._arguments is None:
            env = self._make()
        elif isinstance(self._arguments, str):
            env = self._make(**{self._arguments: copied(context)})
        else:
            found = self._arguments(copied(context))
            if not isinstance(found, Mapping):
                raise ValueError(f"`arguments` must return a mapping, got {type(found).__name__}")
            env = self._make(**found)
        if not is_env(env):
            raise ValueError(f"`make` must return a gymnasium.Env, got {type(env).__name__}")
        return env


def is_env(candidate: Any) -> TypeGuard[gymnasium.Env[Any, Any]]:
    """Return whether this is a Gymnasium environment; say what to install if Gymnasium is missing."""
    try:
        import gymnasium
    except ImportError as error:
        raise ImportError("this needs Gymnasium: pip install gymnasium") from error
    return isinstance(candidate, gymnasium.Env)


def _maker(make: Any) -> Callable[..., Any]:
    if is_env(make):
        return lambda: make
    if isinstance(make, str):
        import gymnasium

        try:
            gymnasium.spec(make)
        except gymnasium.error.Error as error:
            raise ValueError(f"`make` must be the id of an environment, got {make!r:.60}: {error}") from error
        return functools.partial(gymnasium.make, make)
    if not callable(make):
        raise ValueError(f"`make` must be the id of an environment or a function that makes one, got {make!r:.60}")
    return make  # type: ignore[no-any-return]


class Numbering:
    """The elements of a discrete space as numbers 0..size-1.

    >>> import gymnasium
    >>> cards = Numbering("observation", gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(n) for n in (32, 11, 2)]))
    >>> cards.size, cards.number((20, 10, 1)), cards.element(461)
    (704, 461, (20, 10, 1))
    """

    def __init__(self, kind: str, space: gymnasium.Space[Any]) -> None:
        from gymnasium.spaces import Discrete, MultiDiscrete, Tuple

        parts = space.spaces if isinstance(space, Tuple) else [space]
        discrete = [part for part in parts if isinstance(part, Discrete)]
        if isinstance(space, MultiDiscrete) and space.nvec.ndim == 1:
            self._counts, self._starts = tuple(space.nvec.tolist()), space.start
        elif len(discrete) == len(parts):
            self._counts = tuple(int(part.n) for part in discrete)
            self._starts = np.array([int(part.start) for part in discrete])
        else:
            raise ValueError(f"`env` must have discrete {kind}s, got {space}: {_ADVICE[kind]}")
        self._kind, self._space = kind, space
        self._single, self._vector = isinstance(space, Discrete), isinstance(space, MultiDiscrete)
        self.size = math.prod(self._counts)

    def number(self, element: Any) -> int:
        """Return the number of an element of the space."""
        found = np.atleast_1d(np.asarray(element))
        if found.shape == (len(self._counts),) and found.dtype.kind in "biu":
            with contextlib.suppress(ValueError):  # it is beyond the counts
                return int(np.ravel_multi_index((found.astype(np.int64) - self._starts).tolist(), self._counts))
        raise ValueError(f"`env` must return {self._kind}s of its space {self._space}, got {element!r:.60}")

    def element(self, number: int) -> Any:
        """Return the element with this number."""
        offsets = np.array(np.unravel_index(number, self._counts)) + self._starts
        if self._vector:
            return offsets.astype(self._space.dtype)
        return int(offsets[0]) if self._single else tuple(offsets.tolist())


_ADVICE = {
    "observation": "wrap it with `gymnasium.wrappers.TransformObservation`, which picks a part or makes cells",
    "action": "wrap it with `gymnasium.wrappers.TransformAction`, which turns a number into one of its actions",
}


def time_limit(env: gymnasium.Env[Any, Any]) -> int | None:
    """Return the number of steps after which `env` truncates its episodes; None if it does not say."""
    from gymnasium import Wrapper
    from gymnasium.wrappers import TimeLimit

    limits = [] if env.spec is None or env.spec.max_episode_steps is None else [env.spec.max_episode_steps]
    while isinstance(env, Wrapper):
        if isinstance(env, TimeLimit):
            # Gymnasium has no public name for it.
            limits.append(env._max_episode_steps)
        env = env.env
    return min(limits, default=None)


def checked_horizon(env: gymnasium.Env[Any, Any], horizon: int | None) -> int:
    """Return `horizon`, or the environment's own time limit if it is None."""
    limit = time_limit(env)
    if horizon is None and limit is None:
        raise ValueError("`horizon` must be given for an environment without a time limit, got None")
    steps = positive_integer("horizon", limit if horizon is None else horizon)
    if limit is not None and steps > limit:
        raise ValueError(f"`horizon` must be at most the environment's time limit {limit}, got {steps}")
    return steps


def gymnasium_space(env: gymnasium.Env[Any, Any], *, horizon: int | None = None, start: Any = 0) -> Space:
    """Return the `Space` of an agent for a Gymnasium environment, with one more state for episodes that have ended.

    In the last state, where ended episodes stay, only action 0 is admissible.

    Parameters
    ----------
    env : gymnasium.Env
        An environment with discrete observations and actions.
    horizon : int, optional
        The number of steps H; by default the environment's time limit.
    start : int or array_like, shape (S,), default 0
        A state, or a distribution over the states of `env` that is positive wherever an episode can begin: agents plan
        from it.

    Examples
    --------
    >>> import gymnasium
    >>> space = gymnasium_space(gymnasium.make("FrozenLake-v1"))
    >>> space.states, space.actions, space.horizon
    (17, 4, 100)
    """
    if not is_env(env):
        raise ValueError(f"`env` must be a gymnasium.Env, got {type(env).__name__}")
    states = Numbering("observation", env.observation_space).size
    actions = Numbering("action", env.action_space).size
    admissible = np.ones((states + 1, actions), dtype=np.bool_)
    # Ended episodes have nothing to choose, and should not count as exploration.
    admissible[-1, 1:] = False
    if not np.isscalar(start):
        start = float_table("start", start)
        start = np.append(start, 0.0) if start.shape == (states,) else start
    return Space(
        states=states + 1, actions=actions, horizon=checked_horizon(env, horizon), start=start, admissible=admissible
    )
