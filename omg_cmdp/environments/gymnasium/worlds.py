"""Worlds made of Gymnasium environments: exact where these have tables, sampled where they do not.

*Tables*. Gymnasium's FrozenLake, Taxi and CliffWalking, and whatever else has `env.unwrapped.P`, become exact
contextual MDPs (`TableWorld`). Rewards r are rescaled to [0, 1] by one map for all contexts and states,

    r → (r - low)/(high - low),   low <= 0 <= high,

and the state in which ended episodes wait has the image of 0. An episode has H steps whatever happens, so that a
value V here is low·H + (high - low)·V there: the same policies are optimal, and regrets there are (high - low) times
those here. (Clipping, or rewards of 0 after the end in the place of the image of 0, would change what is optimal.)

*No tables*. The environment is played (`SampledWorld`), and nobody knows the optimum: what can be estimated is the
shortfall against the best policy known (`experiments.shortfall`), which is not regret.

*Contexts*. That they reach the environment is proven first: see `gymnasium_proofs`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context, alike, check_same_kind, context_key
from omg_cmdp.environments.base import KEPT_CONTEXTS, ContextualMDP
from omg_cmdp.environments.gymnasium.contextual_env import (
    Arguments,
    Door,
    Make,
    Numbering,
    gymnasium_space,
)
from omg_cmdp.environments.gymnasium.proofs import prove_episodes, prove_played, prove_tables
from omg_cmdp.environments.gymnasium.rollout import Stage, checked_range
from omg_cmdp.environments.gymnasium.tables import Outcomes
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.tabular import Space, TabularMDP
from omg_cmdp.validation import FloatArray, positive_integer, seed_number

if TYPE_CHECKING:
    import gymnasium

RESETS = 200
"""So many episodes are begun to see where they start, unless tables say it."""


def from_gymnasium(
    make: Make,
    contexts: Iterable[Context],
    *,
    arguments: Arguments = None,
    horizon: int | None = None,
    reward_range: tuple[float, float] | None = None,
    start: ArrayLike | None = None,
    tables: bool = True,
) -> TableWorld | SampledWorld:
    """Return a world of a Gymnasium environment with discrete observations and actions.

    `make` is an id, or a function that makes the environment. A context goes in by `reset(options={"context": …})`, or
    by `arguments` of the constructor: the name of one, or a function context -> arguments. `contexts` lists two of them
    at least, so that it can be proven that they matter. `horizon` is the time limit of the environment by default.
    `reward_range` must hold all rewards and 0; where there are tables, it is read off them by default. `start` is a
    state or a distribution over the states, the same for all contexts; by default it is read off the tables, or counted
    in 200 resets, the contexts in turn, which is not exact: beside tables it must then always be the same state.
    `tables` False samples episodes even where there are tables.

    >>> lake = from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=30)
    >>> [round(lake.optimal_value(rate), 3) for rate in lake.contexts]
    [0.354, 0.916]
    """
    listed = tuple(contexts)
    if len(alike(listed)) < 2:
        raise ValueError(f"`contexts` must list two at least, to prove that they matter, got {listed!r:.60}")
    for context in listed:
        check_same_kind("contexts", context, listed[0])
    door, other = Door(make, arguments), Door(make, arguments)
    env, _, _ = door.reset(listed[0], 0)
    gymnasium_space(env, horizon=horizon)  # refuses what is not discrete, or has no end
    exact = tables and hasattr(env.unwrapped, "P")
    if exact:
        start = _common_start(door, listed) if start is None else start
        read = [_read(door, context) for context in listed]
        prove_tables(read, _read(other, listed[0]))
        reward_range = _range_of(read) if reward_range is None else reward_range
    elif reward_range is None:
        raise ValueError("`reward_range` must be given for an environment without tables, got None")
    interval = checked_range(reward_range)
    if start is None:
        start = _frequent_starts(door, listed)
        if exact and start.max() < 1.0:
            raise ValueError("`start` must be given for tables without `initial_state_distrib`, got None")
    space = gymnasium_space(env, horizon=horizon, start=start)
    if exact:
        world = TableWorld(door, listed, space, interval)
        prove_played(world)
        return world
    sampled = SampledWorld(door, listed, space, interval)
    prove_episodes(sampled, other)
    return sampled


@final
class TableWorld(ContextualMDP):
    """A Gymnasium environment whose tables are known: `from_gymnasium` makes it.

    Any context of the kind of those listed has an MDP. State S is where ended episodes wait. Values and regrets are in
    units of rewards rescaled to [0, 1]; see `original_value`. Sampled rewards have their true distribution given state,
    action and next state.
    """

    def __init__(
        self, door: Door, contexts: tuple[Context, ...], space: Space, reward_range: tuple[float, float]
    ) -> None:
        self.door, self.contexts, self.space, self.reward_range = door, contexts, space, reward_range
        self._outcomes: OrderedDict[Hashable | None, Outcomes] = OrderedDict()

    def outcomes(self, context: Context) -> Outcomes:
        """Return the tables of `context` in the environment's units; those of recent contexts are kept."""
        key = context_key(context)
        if key not in self._outcomes:
            check_same_kind("context", context, self.contexts[0])
            _common_start(self.door, (self.contexts[0], context))  # raises
            made = _read(self.door, context)
            low, high = self.reward_range
            if made.rewards.min() < low or made.rewards.max() > high:
                got = f"[{made.rewards.min():g}, {made.rewards.max():g}] for {context!r:.60}"
                raise ValueError(f"`reward_range` must hold all rewards, got {self.reward_range} and {got}")
            if key is None:
                return made
            self._outcomes[key] = made
            if len(self._outcomes) > KEPT_CONTEXTS:
                self._outcomes.popitem(last=False)
        return self._outcomes[key]

    def mdp(self, context: Context) -> TabularMDP:
        """Return the MDP of `context`, rewards rescaled."""
        outcomes = self.outcomes(context)
        return self.space.mdp(transitions=outcomes.transitions(), rewards=self._rescaled(outcomes.mean_rewards()))

    def sample(self, context: Context, policy: FloatArray, generator: np.random.Generator) -> Episode:
        """Play `policy` for one episode; 4H + 1 random numbers are used."""
        e = super().sample(context, policy, generator)
        rewards = self._rescaled(self.outcomes(context).draw(e, generator.random(self.space.horizon)))
        return Episode.of_arrays(e.context, e.states, e.actions, rewards, e.propensities, e.length)

    def original_value(self, value: float) -> float:
        """Return low·H + (high - low)·value: what a value here is worth in the environment's units.

        >>> cliff = from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery", horizon=20)
        >>> round(cliff.original_value(cliff.optimal_value(False)), 9)  # 13 steps of -1
        -13.0
        """
        low, high = self.reward_range
        return low * self.space.horizon + (high - low) * value

    def _rescaled(self, rewards: FloatArray) -> FloatArray:
        low, high = self.reward_range
        return np.clip((rewards - low) / (high - low), 0.0, 1.0)


@final
class SampledWorld:
    """A Gymnasium environment without tables: it can be played, and nobody knows its optimum."""

    def __init__(
        self, door: Door, contexts: tuple[Context, ...], space: Space, reward_range: tuple[float, float]
    ) -> None:
        self.door, self.contexts, self.space, self.reward_range = door, contexts, space, reward_range

    def returns(self, context: Context, policy: FloatArray, episodes: int, *, seed: int = 0) -> FloatArray:
        """Return what `policy` (H, S + 1, A) earned in so many episodes, in the environment's units."""
        check_same_kind("context", context, self.contexts[0])
        stage = Stage(self.door, self.space, self.reward_range)
        count, seed = positive_integer("episodes", episodes), seed_number(seed)
        return np.array([stage.play(context, policy, (seed, k)).rewards.sum() for k in range(count)])


def _read(door: Door, context: Context) -> Outcomes:
    """Return the tables of `context`, read after a reset: it may have changed them."""
    env, _, _ = door.reset(context, 0)
    sizes = (Numbering(kind, space).size for kind, space in _spaces(env))
    return Outcomes(env.unwrapped.P, *sizes)  # type: ignore[attr-defined]


def _spaces(env: gymnasium.Env[Any, Any]) -> list[tuple[str, gymnasium.Space[Any]]]:
    return [("observation", env.observation_space), ("action", env.action_space)]


def _range_of(read: list[Outcomes]) -> tuple[float, float]:
    """Return the smallest interval that holds 0 and all rewards; (0, 1) if there are none."""
    low = min(0.0, *(float(outcomes.rewards.min()) for outcomes in read))
    high = max(0.0, *(float(outcomes.rewards.max()) for outcomes in read))
    return (low, high) if low < high else (0.0, 1.0)


def _common_start(door: Door, contexts: tuple[Context, ...]) -> FloatArray | None:
    """Return the distribution of the first state, which must be the same for all; None if there is no table of it."""
    found = [_start(door, context) for context in contexts]
    if len({None if each is None else each.tobytes() for each in found}) > 1:
        raise ValueError(
            "`make` must make environments of one size that start alike whatever the context, got different initial "
            "distributions: add a first state from which each context moves to its own"
        )
    return found[0]


def _start(door: Door, context: Context) -> FloatArray | None:
    found = getattr(door.reset(context, 0)[0].unwrapped, "initial_state_distrib", None)
    return None if found is None else np.array(found)  # a copy: the next reset may change it


def _frequent_starts(door: Door, contexts: tuple[Context, ...]) -> FloatArray:
    """Return how often episodes started where, in so many resets with the contexts in turn.

    If they started in several states, one more reset is shared by all: others may start elsewhere.
    """
    env, _, _ = door.reset(contexts[0], 0)
    numbering = Numbering("observation", env.observation_space)
    counts = np.zeros(numbering.size)
    for trial in range(RESETS):
        _, observation, _ = door.reset(contexts[trial % len(contexts)], trial)
        counts[numbering.number(observation)] += 1.0
    if np.count_nonzero(counts) > 1:
        counts += 1.0 / len(counts)
    return np.asarray(counts / counts.sum())
