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

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context, alike, check_same_kind
from omg_cmdp.environments.base import copied
from omg_cmdp.environments.gymnasium.contextual_env import (
    Arguments,
    ContextualEnv,
    EnvMaker,
    Numbering,
    gymnasium_space,
)
from omg_cmdp.environments.gymnasium.proofs import prove_episodes, prove_played, prove_tables
from omg_cmdp.environments.gymnasium.rollout import checked_range
from omg_cmdp.environments.gymnasium.tables import Outcomes
from omg_cmdp.environments.gymnasium.worlds import Parts, SampledWorld, TableWorld, common_start, read_outcomes
from omg_cmdp.mdp.environment import set_names
from omg_cmdp.records import context_rows
from omg_cmdp.validation import FloatArray, instance_of, listed, return_interval

RESETS = 200
"""The number of episodes begun to see where they start, unless tables say so."""


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
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
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
    state_names, action_names, feature_names : list of str, optional
        What observations, actions and the entries of a context are called in reports; by default they have numbers.

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
    known = tuple(map(copied, listed("contexts", context_rows("contexts", contexts))))
    if len(alike(known)) < 2:
        raise ValueError(f"`contexts` must list at least two, to prove that they matter, got {known!r:.60}")
    for context in known:
        check_same_kind("contexts", context, known[0])
    instance_of("tables", tables, bool)
    # Two of them: what one does, the other must repeat, if the context and the seed are all that decides.
    contextual, other = ContextualEnv(make, arguments), ContextualEnv(make, arguments)
    env, _, _ = contextual.reset(known[0], 0)
    gymnasium_space(env, horizon=horizon)  # raises if a space is not discrete, or there is no horizon
    exact = tables and hasattr(env.unwrapped, "P")
    if exact:
        start = common_start(contextual, known) if start is None else start
        read = [read_outcomes(contextual, context) for context in known]
        prove_tables(read, read_outcomes(other, known[0]))
        reward_range = _range_of(read) if reward_range is None else reward_range
    elif reward_range is None:
        raise ValueError("`reward_range` must be given for an environment without tables, got None")
    interval = checked_range(reward_range)
    if start is None:
        start = _frequent_starts(contextual, known)
        # Counted starts are estimates, and a world with tables promises exact values.
        if exact and start.max() < 1.0:
            raise ValueError("`start` must be given for tables without `initial_state_distrib`, got None")
    space = gymnasium_space(env, horizon=horizon, start=start)
    parts = Parts(contextual, known, space, interval, return_interval(return_range, space.horizon, interval))
    world = TableWorld(parts) if exact else SampledWorld(parts)
    set_names(world, state_names=state_names, action_names=action_names, feature_names=feature_names)
    if isinstance(world, TableWorld):
        prove_played(world)
    else:
        prove_episodes(world, other)
    return world


def _range_of(read: list[Outcomes]) -> tuple[float, float]:
    """Return the smallest interval that holds 0 and all rewards; (0, 1) if there are none."""
    low = min(0.0, *(float(outcomes.rewards.min()) for outcomes in read))
    high = max(0.0, *(float(outcomes.rewards.max()) for outcomes in read))
    return (low, high) if low < high else (0.0, 1.0)


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
        # An episode may begin where none of these did, and agents plan from states of positive probability only.
        counts += 1.0 / len(counts)
    return np.asarray(counts / counts.sum())
