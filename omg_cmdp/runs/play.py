"""The loop of a user: contexts arrive, an agent answers them, a Gymnasium environment is played, the agent learns."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.base import Agent
from omg_cmdp.contexts import Context, alike
from omg_cmdp.environments.gymnasium.contextual_env import Door, check_same_kind, is_env
from omg_cmdp.environments.gymnasium.rollout import Played, Stage
from omg_cmdp.environments.gymnasium.worlds import SampledWorld, TableWorld
from omg_cmdp.logs.writers import Decisions, write_obp, write_vw
from omg_cmdp.mdp.tabular import Space
from omg_cmdp.persistence import whole_file
from omg_cmdp.validation import FloatArray, seed_number

if TYPE_CHECKING:
    import gymnasium
    import pandas

FORMS = (".csv", ".parquet", ".npz", ".vw")
"""What a log can be written as."""


def play(
    env: gymnasium.Env[Any, Any] | TableWorld | SampledWorld,
    agent: Agent,
    contexts: Iterable[Context],
    *,
    log: EpisodeLog | str | os.PathLike[str] | None = None,
    seed: int = 0,
) -> EpisodeLog:
    """Play one episode for each of `contexts`, and return the log, with the propensity of every action.

    `env` is an environment with discrete observations and actions whose `reset` takes the context in its options, or a
    world of `environments.from_gymnasium`, which proves that it does, or gives it to the constructor. The agent's space
    has one state more than `env`, for the rest of episodes that terminate (`environments.gymnasium_space`), and its
    `reward_range` holds the rewards of `env`, as they are, and 0.

    `log` is a log to go on with, or a new file, written at the end or when something stops it: see `EpisodeLog.write`.
    Episode k has a seed of its own, made of `seed` and the number of episodes in the log before it: with the same log
    and agent it goes on in the same way.

    What is wrong with an episode is an error, after which the agent has learned of all episodes before, and nothing of
    this one. These are in `log`, and the rest of `contexts` can be played.

    >>> import omg_cmdp as omg
    >>> lake = omg.environments.from_gymnasium("FrozenLake-v1", [0.5, 0.9], arguments="success_rate", horizon=20)
    >>> sizes = {"states": lake.space.states, "actions": lake.space.actions, "horizon": 20}
    >>> agent = omg.OMG(lake.space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> log = play(lake, agent, [0.5, 0.9, 0.5])
    >>> len(log), agent.episodes_seen, sorted(log.table()["context"].unique().tolist())
    (3, 3, [0.5, 0.9])
    """
    if not isinstance(agent, Agent):
        raise ValueError(f"`agent` must be an Agent, got {type(agent).__name__}")
    stage = Stage(_door(env), agent.space, getattr(agent, "reward_range", (0.0, 1.0)))
    kept = log if isinstance(log, EpisodeLog) else EpisodeLog(agent.space, reward_range=stage.reward_range)
    kept.check(agent.space, stage.reward_range)
    seed = seed_number(seed)
    target = None if log is None or isinstance(log, EpisodeLog) else Path(log)
    if target is not None and (target.suffix not in FORMS or not target.parent.is_dir() or target.exists()):
        rule = f"be an EpisodeLog, or a new file in a folder that exists, with a name that ends in {', '.join(FORMS)}"
        raise ValueError(f"`log` must {rule}, got {os.fspath(target)!r}")
    if target is not None:
        kept.write(target)  # where nothing can be written, nothing is played
    try:
        for context in contexts:
            kept.check_context(context)
            if isinstance(env, (TableWorld, SampledWorld)):
                check_same_kind("contexts", context, env.contexts[0])
            played = stage.play(context, agent.policy(context), (seed, len(kept)))
            agent.update(played.trajectory)
            kept.add(played)
    finally:
        if target is not None:
            kept.write(target)
    return kept


def _door(env: Any) -> Door:
    if isinstance(env, (TableWorld, SampledWorld)):
        return env.door
    if not is_env(env):
        kinds = "a gymnasium.Env or a world of `environments.from_gymnasium`"
        raise ValueError(f"`env` must be {kinds}, got {type(env).__name__}")
    return Door(env)


class EpisodeLog:
    """Episodes that were played, with the probability of every action; rewards are the environment's."""

    def __init__(self, space: Space, *, reward_range: tuple[float, float] = (0.0, 1.0)) -> None:
        self.space, self.reward_range = space, reward_range
        self.episodes: list[Played] = []

    def __len__(self) -> int:
        return len(self.episodes)

    def __getitem__(self, chosen: slice) -> EpisodeLog:
        """Return some of the episodes as a log of their own."""
        if not isinstance(chosen, slice):
            raise TypeError(f"an EpisodeLog is cut by slices, got {chosen!r:.60}: one by one they are in `episodes`")
        part = EpisodeLog(self.space, reward_range=self.reward_range)
        part.episodes = self.episodes[chosen]
        return part

    @property
    def contexts(self) -> list[Context]:
        """The context of each episode."""
        return [played.trajectory.context for played in self.episodes]

    @property
    def returns(self) -> FloatArray:
        """What each episode earned, (T,)."""
        return np.array([played.trajectory.rewards.sum() for played in self.episodes])

    def add(self, played: Played) -> None:
        """Append an episode."""
        self.episodes.append(played)

    def check(self, space: Space, reward_range: tuple[float, float]) -> None:
        """Raise unless episodes of such a space can be added."""
        ours, theirs = ((each.states, each.actions, each.horizon) for each in (self.space, space))
        if ours != theirs or self.reward_range != reward_range:
            wanted, got = f"{theirs} and {reward_range}", f"{ours} and {self.reward_range}"
            raise ValueError(f"`log` must be of the agent's sizes and reward range, {wanted}, got {got}")

    def check_context(self, context: Context) -> None:
        """Raise unless the context is of the kind of those before."""
        if self.episodes:
            check_same_kind("contexts", context, self.episodes[0].trajectory.context)

    def table(self) -> pandas.DataFrame:
        """Return a data frame with a row per step, H for each episode: what `logged.read_frame` reads.

        A context is in the column `context`, or if it is a vector in `context_0`, `context_1`, ... Steps after the end
        of an episode are in the last state, with its only action, reward 0 and propensity 1.
        """
        import pandas

        count, horizon = len(self), self.space.horizon
        columns: dict[str, Any] = {
            "episode": np.repeat(np.arange(count), horizon),
            "step": np.tile(np.arange(horizon), count),
        }
        contexts = self.contexts
        if contexts and np.ndim(contexts[0]):
            vectors = np.array(contexts).reshape(count, -1)
            columns |= {f"context_{place}": np.repeat(each, horizon) for place, each in enumerate(vectors.T)}
        else:
            columns["context"] = [context for context in contexts for _ in range(horizon)]
        steps = self._steps()
        return pandas.DataFrame(columns | {name: table.reshape(-1) for name, table in steps.items()})

    def decisions(self) -> Decisions:
        """Return the steps before the end of each episode: those that somebody decided about."""
        count, horizon = len(self), self.space.horizon
        contexts, visited = self.contexts, np.empty(count, dtype=np.int64)
        groups = alike(contexts)
        for number, places in enumerate(groups):
            visited[places] = number
        lengths = np.array([played.length for played in self.episodes], dtype=np.int64).reshape(count, 1)
        decided = np.arange(horizon) < lengths
        steps = self._steps()
        return Decisions(
            contexts=[contexts[places[0]] for places in groups],
            places=np.repeat(visited, lengths[:, 0]),
            steps=np.broadcast_to(np.arange(horizon), (count, horizon))[decided],
            states=steps["state"][decided],
            actions=steps["action"][decided],
            rewards=steps["reward"][decided],
            propensities=steps["propensity"][decided],
        )

    def _steps(self) -> dict[str, NDArray[Any]]:
        """Return tables (T, H) by the name of their column."""
        paths, shape = [played.trajectory for played in self.episodes], (len(self), self.space.horizon)
        return {
            "state": np.array([path.states[:-1] for path in paths], dtype=np.int64).reshape(shape),
            "action": np.array([path.actions for path in paths], dtype=np.int64).reshape(shape),
            "reward": np.array([path.rewards for path in paths], dtype=np.float64).reshape(shape),
            "next_state": np.array([path.next_states for path in paths], dtype=np.int64).reshape(shape),
            "propensity": np.array([played.propensities for played in self.episodes]).reshape(shape),
        }

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the log: as .csv or .parquet the table, as .npz for Open Bandit Pipeline, as .vw for Vowpal Wabbit.

        What is there is replaced, when all of it is on disk.
        """
        target = Path(path)
        if target.suffix not in FORMS:
            raise ValueError(f"`path` must end in {', '.join(FORMS)}, got {os.fspath(path)!r}")
        with whole_file(target) as file:
            if target.suffix == ".csv":
                self.table().to_csv(file, index=False)
            elif target.suffix == ".parquet":
                self.table().to_parquet(file, index=False)
            elif target.suffix == ".npz":
                write_obp(file, self.decisions(), self.space)
            else:
                write_vw(file, self.decisions(), best_reward=self.reward_range[1])
        return target
