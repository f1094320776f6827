"""Proofs that contexts reach an environment, and that its tables are true; without them there is no world.

A context that does not get through makes a world in which contexts do not matter, and no error. So with the same seed,
or read twice, one context must do what it did before, and another something else; or the environment must report the
context in the info of `reset`. That two contexts differ proves that the way is open; it does not prove that all do.
Tables are compared with episodes: what happens in one must have a positive probability in the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.environments.gymnasium.contextual_env import Door
from omg_cmdp.environments.gymnasium.rollout import Stage
from omg_cmdp.environments.gymnasium.tables import Outcomes
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.tabular import Space
from omg_cmdp.validation import FloatArray

if TYPE_CHECKING:
    from omg_cmdp.environments.gymnasium.worlds import SampledWorld, TableWorld

TRIALS = 200
"""So many episodes of each of two contexts are played at most, to see them differ."""

REPEATED = 30
"""So many episodes are played twice, to see them alike."""

COMPARED = 50
"""So many episodes, of four contexts at most, are compared with the tables."""

ANY_REWARD = (-1e300, 1e300)
"""Whatever an episode pays is compared with the tables."""

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
    """Raise if an episode does what the tables exclude: a wrapper may change rewards, or hidden state transitions."""
    stage = Stage(world.door, world.space, ANY_REWARD)
    for trial in range(COMPARED):
        context = world.contexts[:4][trial % min(4, len(world.contexts))]
        policy = 0.5 * _uniform(world.space) + 0.5 * world.truth(context).best[0]  # goes everywhere, and to the goal
        episode = stage.play(context, policy, (trial,))
        step = world.outcomes(context).first_impossible_step(episode)
        if step is not None:
            h, (s, a, after) = step, (episode.states[step], episode.actions[step], episode.states[step + 1])
            raise ValueError(
                f"`P` of the environment must say what it does, got reward {episode.rewards[h]:g} and state {after} "
                f"after action {a} in state {s}, which it excludes: pass tables=False, and episodes are sampled"
            )


def prove_episodes(world: SampledWorld, other: Door) -> None:
    """Raise unless the first context behaves the same twice under one seed, and another one differently."""
    first, *rest = world.contexts
    policy = _uniform(world.space)
    stage, again = (Stage(door, world.space, world.reward_range) for door in (world.door, other))
    for trial in range(REPEATED):
        if _differ(stage.play(first, policy, (trial,)), again.play(first, policy, (trial,))):
            raise ValueError(
                "`make` must make environments that repeat an episode if `reset` gets the same seed, got another "
                "episode: draw all random numbers from `self.np_random`"
            )
    for trial in range(TRIALS):
        second = rest[trial % len(rest)]
        if _differ(stage.play(first, policy, (trial,)), stage.play(second, policy, (trial,))):
            return
        if _reported(world.door, (first, second)):
            return
    raise ValueError(_UNPROVEN.format("the same episodes"))


def _differ(one: Episode, other: Episode) -> bool:
    return not (np.array_equal(one.states, other.states) and np.array_equal(one.rewards, other.rewards))


def _reported(door: Door, contexts: tuple[Context, ...]) -> bool:
    """Return whether the environment says in the info of `reset` that it has each of the contexts."""
    infos = [door.reset(context, 0)[2] for context in contexts]
    pairs = zip(infos, contexts, strict=True)
    return all("context" in info and np.array_equal(info["context"], context) for info, context in pairs)


def _uniform(space: Space) -> FloatArray:
    shares = space.admissible / space.admissible.sum(axis=1, keepdims=True)
    return np.repeat(shares[None], space.horizon, axis=0)
