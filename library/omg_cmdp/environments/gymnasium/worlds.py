"""Worlds made of Gymnasium environments: exact where these have tables, sampled where they do not.

*Tables*. Gymnasium's FrozenLake, Taxi and CliffWalking, and any other with `env.unwrapped.P`, become exact
contextual MDPs (`TableWorld`). Rewards r are rescaled to [0, 1] by one map for all contexts and states,

    r → (r - low)/(high - low),   low <= 0 <= high,

and in the state where ended episodes stay the reward is the image of 0. An episode always has H steps, so that a value
V here is low·H + (high - low)·V there: the same policies are optimal, and regrets there are (high - low) times those
here. (Clipping, or rewards of 0 after the end in place of the image of 0, would change what is optimal.)

*No tables*. The environment is played (`SampledWorld`), and its optimum is unknown: what can be estimated is the
shortfall against the best policy known (`omg_cmdp.shortfall`), which is not regret.

*Contexts*. That they reach the environment is proven first: see `gymnasium.proofs`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import KEPT_BYTES, Context, ContextCache, alike, check_same_kind
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.environments.gymnasium.contextual_env import (
    Arguments,
    ContextualEnv,
    EnvMaker,
    Numbering,
    gymnasium_space,
)
from omg_cmdp.environments.gymnasium.proofs import prove_episodes, prove_played, prove_tables
from omg_cmdp.environments.gymnasium.rollout import EnvironmentPlayer, checked_range
from omg_cmdp.environments.gymnasium.tables import Outcomes
from omg_cmdp.mdp.bellman import scaled_returns
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.episode import ROUNDING, Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.records import context_rows
from omg_cmdp.validation import (
    FloatArray,
    instance_of,
    listed,
    positive_integer,
    real_number,
    return_interval,
    seed_number,
)

RESETS = 200
"""How many episodes are begun to see where they start, unless tables say so."""


def from_gymnasium(
    make: EnvMaker,
    contexts: Iterable[Context],
    *,
    arguments: Arguments = None,
    horizon: int | None = None,
    reward_range: tuple[float, float] | None = None,
    return_range: tuple[float, float] | None = None,
    start: ArrayLike | None = None,
    tables: bool = True,
) -> TableWorld | SampledWorld:
    """Return a world of a Gymnasium environment with discrete observations and actions.

    It is proven first that contexts reach the environment, and that its tables, if it has some, are true.

    Parameters
    ----------
    make : str, gymnasium.Env or callable
        The id of a registered environment, an environment, or a function that makes one.
    contexts : iterable of contexts, or a table
        At least two contexts of one kind, so that it can be proven that they matter.
    arguments : str or callable, optional
        The name of the constructor's argument that takes the context, or a function context -> arguments. By default
        the context goes in by `reset(options={"context": context})`.
    horizon : int, optional
        The number of steps H; by default the environment's time limit.
    reward_range : pair of float, optional
        An interval that holds all rewards and 0, in the environment's units; by default it is read off the tables.
    return_range : pair of float, optional
        An interval that holds what an episode earns in all; by default the horizon times the range of rewards.
    start : int or array_like, shape (S,), optional
        A state or a distribution over states, the same for all contexts. By default it is read off the tables, or
        counted in 200 resets with the contexts in turn; since counts are not exact, tables then need a single start
        state.
    tables : bool, default True
        Whether to read tables where there are some; with False, episodes are sampled all the same.

    Returns
    -------
    TableWorld or SampledWorld
        An exact contextual MDP if the environment has tables, `env.unwrapped.P`, and otherwise a world that can be
        played.

    Examples
    --------
    >>> lake = from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=30)
    >>> [round(lake.optimal_value(rate), 3) for rate in lake.contexts]
    [0.354, 0.916]
    """
    known = tuple(listed("contexts", context_rows("contexts", contexts)))
    if len(alike(known)) < 2:
        raise ValueError(f"`contexts` must list at least two, to prove that they matter, got {known!r:.60}")
    for context in known:
        check_same_kind("contexts", context, known[0])
    instance_of("tables", tables, bool)
    contextual, other = ContextualEnv(make, arguments), ContextualEnv(make, arguments)
    env, _, _ = contextual.reset(known[0], 0)
    gymnasium_space(env, horizon=horizon)  # raises if a space is not discrete, or there is no horizon
    exact = tables and hasattr(env.unwrapped, "P")
    if exact:
        start = _common_start(contextual, known) if start is None else start
        read = [_read(contextual, context) for context in known]
        prove_tables(read, _read(other, known[0]))
        reward_range = _range_of(read) if reward_range is None else reward_range
    elif reward_range is None:
        raise ValueError("`reward_range` must be given for an environment without tables, got None")
    interval = checked_range(reward_range)
    if start is None:
        start = _frequent_starts(contextual, known)
        if exact and start.max() < 1.0:
            raise ValueError("`start` must be given for tables without `initial_state_distrib`, got None")
    space = gymnasium_space(env, horizon=horizon, start=start)
    parts = Parts(contextual, known, space, interval, return_interval(return_range, space.horizon, interval))
    if exact:
        world = TableWorld(parts)
        prove_played(world)
        return world
    sampled = SampledWorld(parts)
    prove_episodes(sampled, other)
    return sampled


class Parts(NamedTuple):
    """What both kinds of worlds are made of, checked by `from_gymnasium`; ranges are in the environment's units."""

    env: ContextualEnv
    contexts: tuple[Context, ...]
    space: Space
    reward_range: tuple[float, float]
    return_range: tuple[float, float] | None


@final
class TableWorld(ContextualMDP):
    """A Gymnasium environment whose tables are known, as an exact contextual MDP: `from_gymnasium` makes it.

    Any context of the same kind as those listed has an MDP. Ended episodes stay in state S. Values and regrets are in
    units of rewards rescaled to [0, 1]; see `original_value`. Sampled rewards have their true distribution given state,
    action and next state.

    Examples
    --------
    >>> lake = from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=30)
    >>> lake.space.states, lake.reward_range
    (17, (0.0, 1.0))
    """

    def __init__(self, parts: Parts) -> None:
        self.env, self.contexts, self.space, self.reward_range, self.return_range = parts
        self._outcomes: ContextCache[Outcomes] = ContextCache(KEPT_BYTES, size=operator.attrgetter("nbytes"))

    @property
    def paid_returns(self) -> tuple[float, float]:
        """`return_range` for rewards rescaled to [0, 1], as `simulate` pays them."""
        return scaled_returns(self.return_range, self.space.horizon, self.reward_range)

    def outcomes(self, context: Context) -> Outcomes:
        """Return the tables of `context` in the environment's units; those of recent contexts are kept."""
        return self._outcomes.get(context, self._read)

    def _read(self, context: Context) -> Outcomes:
        check_same_kind("context", context, self.contexts[0])
        _common_start(self.env, (self.contexts[0], context))  # raises if it differs
        made = _read(self.env, context)
        low, high = self.reward_range
        if made.rewards.min() < low or made.rewards.max() > high:
            got = f"[{made.rewards.min():g}, {made.rewards.max():g}] for {context!r:.60}"
            raise ValueError(f"`reward_range` must hold all rewards, got {self.reward_range} and {got}")
        if self.return_range is not None:
            least, most = made.returns(self.space.horizon, self.space.start)
            slack = ROUNDING * self.space.horizon * max(-low, high)
            if least < self.return_range[0] - slack or most > self.return_range[1] + slack:
                got = f"{self.return_range} and [{least:g}, {most:g}] for {context!r:.60}"
                raise ValueError(f"`return_range` must hold what every episode earns, got {got}")
        return made

    def mdp(self, context: Context) -> TabularMDP:
        """Return the MDP of `context`, rewards rescaled."""
        outcomes = self.outcomes(context)
        return self.space.mdp(transitions=outcomes.transitions(), rewards=self._rescaled(outcomes.mean_rewards()))

    def sample(self, context: Context, policy: FloatArray, generator: np.random.Generator) -> Episode:
        """Play `policy` for one episode; 4H + 1 random numbers are used."""
        e = super().sample(context, policy, generator)
        rewards = self._rescaled(self.outcomes(context).draw(e, generator.random(self.space.horizon)))
        return e.with_rewards(rewards)

    def original_value(self, value: float) -> float:
        """Return low·H + (high - low)·value: a value of this world in the environment's units.

        >>> cliff = from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery", horizon=20)
        >>> round(cliff.original_value(cliff.optimal_value(False)), 9)  # 13 steps of -1
        -13.0
        """
        low, high = self.reward_range
        number = real_number(value)
        if not math.isfinite(number):
            raise ValueError(f"`value` must be a finite number, got {value!r:.60}")
        return low * self.space.horizon + (high - low) * number

    def _rescaled(self, rewards: FloatArray) -> FloatArray:
        low, high = self.reward_range
        return np.clip((rewards - low) / (high - low), 0.0, 1.0)


@final
class SampledWorld(Environment):
    """A Gymnasium environment without tables, which can be played: `from_gymnasium` makes it. Its optimum is unknown.

    Examples
    --------
    >>> rates, rewards = [0.4, 0.9], (0.0, 1.0)
    >>> lake = from_gymnasium("FrozenLake-v1", rates, arguments="success_rate", reward_range=rewards, tables=False)
    >>> shares = lake.space.admissible / lake.space.admissible.sum(axis=1, keepdims=True)
    >>> uniform = np.repeat(shares[None], lake.space.horizon, axis=0)
    >>> lake.returns(0.9, uniform, episodes=3).shape
    (3,)
    """

    def __init__(self, parts: Parts) -> None:
        self.env, self.contexts, self.space, self.reward_range, self.return_range = parts
        self._player = EnvironmentPlayer(self.env, self.space, self.reward_range)

    @property
    def paid_range(self) -> tuple[float, float]:
        """The range of rewards, which are paid in the environment's units."""
        return self.reward_range

    def sample(self, context: Context, policy: FloatArray, generator: np.random.Generator) -> Episode:
        """Play `policy` (H, S + 1, A) for one episode, rewards in the environment's units."""
        check_same_kind("context", context, self.contexts[0])
        instance_of("generator", generator, np.random.Generator)
        episode = self._player.play(context, policy, (int(generator.integers(2**63)),))
        episode.check(self.space, self.reward_range, self.return_range)
        return episode

    def returns(self, context: Context, policy: FloatArray, episodes: int, *, seed: int = 0) -> FloatArray:
        """Return the returns (n,) of `policy` (H, S + 1, A) in n `episodes`, in the environment's units."""
        check_same_kind("context", context, self.contexts[0])
        count, seed = positive_integer("episodes", episodes), seed_number(seed)
        played = [self._player.play(context, policy, (seed, k)) for k in range(count)]
        for episode in played:
            episode.check(self.space, self.reward_range, self.return_range)
            if len(episode.actions) < self.space.horizon:
                got = f"one truncated after {len(episode.actions)}"
                raise ValueError(f"`env` must run for {self.space.horizon} steps or terminate, got {got}")
        return np.array([episode.rewards.sum() for episode in played])


def _read(contextual: ContextualEnv, context: Context) -> Outcomes:
    """Return the tables of `context`, read after a reset, which may change them."""
    env, _, _ = contextual.reset(context, 0)
    states, actions = Numbering("observation", env.observation_space), Numbering("action", env.action_space)
    return Outcomes(env.unwrapped.P, states.size, actions.size)  # type: ignore[attr-defined]


def _range_of(read: list[Outcomes]) -> tuple[float, float]:
    """Return the smallest interval that holds 0 and all rewards; (0, 1) if there are none."""
    low = min(0.0, *(float(outcomes.rewards.min()) for outcomes in read))
    high = max(0.0, *(float(outcomes.rewards.max()) for outcomes in read))
    return (low, high) if low < high else (0.0, 1.0)


def _common_start(contextual: ContextualEnv, contexts: tuple[Context, ...]) -> FloatArray | None:
    """Return the distribution of the first state, which must be the same for all; None if there is no table of it."""
    found = [_start(contextual, context) for context in contexts]
    if len({None if each is None else each.tobytes() for each in found}) > 1:
        raise ValueError(
            "`make` must make environments of one size with one start for all contexts, got different initial "
            "distributions: add a first state from which each context moves to its own"
        )
    return found[0]


def _start(contextual: ContextualEnv, context: Context) -> FloatArray | None:
    found = getattr(contextual.reset(context, 0)[0].unwrapped, "initial_state_distrib", None)
    return None if found is None else np.array(found)  # a copy: the next reset may change it


def _frequent_starts(contextual: ContextualEnv, contexts: tuple[Context, ...]) -> FloatArray:
    """Return how often episodes started in each state, in 200 resets with the contexts in turn.

    If they started in several states, one more reset is shared among all states: other episodes may start elsewhere.
    """
    env, _, _ = contextual.reset(contexts[0], 0)
    numbering = Numbering("observation", env.observation_space)
    counts = np.zeros(numbering.size)
    for trial in range(RESETS):
        _, observation, _ = contextual.reset(contexts[trial % len(contexts)], trial)
        counts[numbering.number(observation)] += 1.0
    if np.count_nonzero(counts) > 1:
        counts += 1.0 / len(counts)
    return np.asarray(counts / counts.sum())
