"""Proofs that contexts reach an environment, and that its tables are true; without them there is no world.

A context that does not get through makes a world in which contexts do not matter, and raises no error. So one context,
read or played twice with the same seed, must do the same both times, and another context something else; or the
environment must report the context in the info of `reset`. If two contexts differ, contexts get through; that all of
them differ is not proven. Tables are compared with episodes: what happens in one must have a positive probability in
the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.environments.gymnasium.contextual_env import ContextualEnv
from omg_cmdp.environments.gymnasium.rollout import EnvironmentPlayer
from omg_cmdp.environments.gymnasium.tables import Outcomes
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.occupancy import uniform_policy

if TYPE_CHECKING:
    from omg_cmdp.environments.gymnasium.worlds import SampledWorld, TableWorld

TRIALS = 200
"""The largest number of episodes of two contexts that are played until they differ."""

REPEATED = 30
"""The number of episodes that are played twice, and must be the same."""

COMPARED = 50
"""The number of episodes, of four contexts at most, that are compared with the tables."""

ANY_REWARD = (-1e300, 1e300)
"""No reward is refused before it is compared with the tables."""

_UNPROVEN = (
    "`contexts` must reach the environment, got {} for all of them: read `options['context']` in `reset` (and repeat "
    "it in the info), or name the constructor's argument that takes it, arguments='...'"
)


def prove_tables(read: list[Outcomes], again: Outcomes) -> None:
    """Raise unless the first context gives the same tables twice, and another one different tables."""
    if not again.same_as(read[0]):
        raise ValueError(
            "`make` must make the same environment for the same context, got different tables: give the constructor "
            "all that it would draw at random"
        )
    if all(outcomes.same_as(read[0]) for outcomes in read):
        raise ValueError(_UNPROVEN.format("the same tables"))


def prove_played(world: TableWorld) -> None:
    """Raise if an episode does what the tables exclude, as when a wrapper or hidden state changes what happens."""
    player = EnvironmentPlayer(world.env, world.space, ANY_REWARD)
    for trial in range(COMPARED):
        # A few contexts, many episodes each: what a wrapper changes, it changes in all.
        context = world.contexts[:4][trial % min(4, len(world.contexts))]
        # It reaches every state, and the goal.
        policy = 0.5 * uniform_policy(world.space) + 0.5 * world.truth(context).best[0]
        episode = player.play(context, policy, (trial,))
        step = world.outcomes(context).first_impossible_step(episode)
        if step is not None:
            h, (s, a, after) = step, (episode.states[step], episode.actions[step], episode.states[step + 1])
            raise ValueError(
                f"`P` of the environment must say what it does, got reward {episode.rewards[h]:g} and state {after} "
                f"after action {a} in state {s}, which it excludes: pass tables=False, and episodes are sampled"
            )


def prove_episodes(world: SampledWorld, other: ContextualEnv) -> None:
    """Raise unless the first context behaves the same twice under one seed, and another one differently."""
    first, *rest = world.contexts
    policy = uniform_policy(world.space)
    player, again = (EnvironmentPlayer(env, world.space, world.reward_range) for env in (world.env, other))
    for trial in range(REPEATED):
        if _differ(player.play(first, policy, (trial,)), again.play(first, policy, (trial,))):
            raise ValueError(
                "two environments of `make` played different episodes after `reset` with the same seed and context: "
                "draw all random numbers from `self.np_random`"
            )
    for trial in range(TRIALS):
        second = rest[trial % len(rest)]
        # The same seed and actions: only the context can make a difference.
        if _differ(player.play(first, policy, (trial,)), player.play(second, policy, (trial,))):
            return
        if _reported(world.env, (first, second)):
            return
    raise ValueError(_UNPROVEN.format("the same episodes"))


def _differ(one: Episode, other: Episode) -> bool:
    return not (np.array_equal(one.states, other.states) and np.array_equal(one.rewards, other.rewards))


def _reported(env: ContextualEnv, contexts: tuple[Context, ...]) -> bool:
    """Return whether the info of `reset` repeats each of the contexts."""
    infos = [env.reset(context, 0)[2] for context in contexts]
    pairs = zip(infos, contexts, strict=True)
    return all("context" in info and np.array_equal(info["context"], context) for info, context in pairs)
