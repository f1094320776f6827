"""The loop of a user: contexts arrive, an agent answers them, an environment is played, the agent learns."""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omg_cmdp.agents.agent import Agent
from omg_cmdp.contexts import Context, check_same_kind, context_to_json
from omg_cmdp.environments.gymnasium.contextual_env import ContextualEnv, is_env
from omg_cmdp.environments.gymnasium.rollout import EnvironmentPlayer
from omg_cmdp.environments.gymnasium.worlds import SampledWorld, TableWorld
from omg_cmdp.logs.lines import episode_line, lines_path
from omg_cmdp.logs.log import Log
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.progress import Bar, say_stopped
from omg_cmdp.records import context_rows
from omg_cmdp.runs.sampled import Seen
from omg_cmdp.transactions import interrupts_held
from omg_cmdp.validation import function, instance_of, seed_number

if TYPE_CHECKING:
    import gymnasium


def play(
    env: gymnasium.Env[Any, Any] | TableWorld | SampledWorld,
    agent: Agent,
    contexts: Iterable[Context],
    *,
    log: Log | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    seed: int = 0,
    observe: Callable[[Seen], None] | None = None,
    progress: bool | None = None,
) -> Log:
    """Play one episode for each of `contexts`, and return the log, with the propensity of every action.

    Every episode has a seed of its own, made of `seed` and the number of episodes in the log before it: with the same
    log and agent, play continues in the same way. An episode in which something goes wrong raises an error. The agent
    has then learned from all episodes before it and nothing from this one. Those before it are in `log`, and the rest
    of `contexts` can still be played. Ctrl-C ends the loop: the log of all episodes that were learned is returned, and
    its `interrupted` is True. The episode that was being played is dropped; while the agent learns, Ctrl-C waits, and a
    second one does not.

    Parameters
    ----------
    env : gymnasium.Env or a world of `environments.from_gymnasium`
        An environment with discrete observations and actions whose `reset` takes the context in its options; of a
        world it is known that contexts reach the environment.
    agent : Agent
        Its space has one state more than `env`, for episodes that have ended (`environments.gymnasium_space`). Its
        `reward_range` holds 0 and the rewards of `env`, in the units of `env`.
    contexts : iterable
        The contexts, one for each episode; of a pandas DataFrame the rows, dictionaries by column.
    log : Log or path, optional
        A log to continue, or a new file whose name ends in .jsonl. It grows by a line with every episode, before the
        next one begins. `logs.read_log` reads it, and what a crash leaves of it.
    overwrite : bool, default False
        Whether a file that exists is replaced, with the episodes in it.
    seed : int, default 0
        The seed of the episodes.
    observe : callable, optional
        Called with the round of each episode, before the agent learns from it; a `RegretCeiling` is such a function.

    progress : bool, optional
        Whether to show a bar, with the time left. By default it appears after two seconds in a terminal or notebook.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> lake = omg.environments.from_gymnasium("FrozenLake-v1", [0.5, 0.9], arguments="success_rate", horizon=20)
    >>> sizes = {"states": lake.space.states, "actions": lake.space.actions, "horizon": 20}
    >>> agent = omg.OMG(lake.space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> log = play(lake, agent, [0.5, 0.9, 0.5])
    >>> len(log), agent.episodes_seen, sorted(log.table()["context"].unique().tolist())
    (3, 3, [0.5, 0.9])
    """
    instance_of("agent", agent, Agent)
    if observe is not None:
        function("observe", observe)
    player = EnvironmentPlayer(_contextual(env), agent.space, agent.reward_range or (0.0, 1.0))
    seed = seed_number(seed)
    asked = iter(context_rows("contexts", contexts))  # they may arrive one by one
    instance_of("overwrite", overwrite, bool)
    bar = Bar("play", operator.length_hint(asked) or None, show=progress)
    kept, file = _opened(log, player.space, player.reward_range, overwrite)
    known = [*kept.contexts[:1], *(env.contexts[:1] if isinstance(env, (TableWorld, SampledWorld)) else [])]
    kept.interrupted, learning = False, False
    with _kept_on_disk(kept, file) as keep, bar:
        try:
            for context in asked:
                for first in known:
                    check_same_kind("contexts", context, first)
                if file is not None:
                    context_to_json(context)  # raises now, and not when the episode has been played
                decision = agent.decide(context)
                episode = player.play(context, decision.policy, (seed, len(kept)))
                with interrupts_held():  # what was learned is in the log
                    learning = True
                    if observe is not None:
                        observe(Seen.of(len(kept) + 1, decision, episode))
                    agent.update(episode)
                    kept.episodes.append(episode)  # which the player has checked
                    keep(episode)
                    learning = False
                known = known or [context]
                bar.update()
        except KeyboardInterrupt:
            if learning:
                raise
            kept.interrupted = True
    if kept.interrupted:
        say_stopped("play", bar.done, bar.total, "the log has them")
    return kept


@contextlib.contextmanager
def _kept_on_disk(log: Log, file: Path | None) -> Iterator[Callable[[Episode], object]]:
    """Yield a function that writes an episode of `log` to `file` at once."""
    if file is None:
        yield lambda episode: None
        return
    log.write(file)  # what cannot be written is found out before anything is played
    # 1: every line goes out as soon as it is written.
    with file.open("a", buffering=1, encoding="utf-8") as lines:
        try:
            yield lambda episode: lines.write(episode_line(episode))
        finally:
            os.fsync(lines.fileno())


def _opened(
    log: Log | str | os.PathLike[str] | None, space: Space, reward_range: tuple[float, float], overwrite: bool
) -> tuple[Log, Path | None]:
    """Return the log to continue or a new one, and its file, if any."""
    if isinstance(log, Log):
        ours, theirs = ((each.states, each.actions, each.horizon) for each in (log.space, space))
        if ours != theirs or log.reward_range != reward_range:
            wanted, got = f"{theirs} and {reward_range}", f"{ours} and {log.reward_range}"
            raise ValueError(f"`log` must be of the agent's sizes and reward range, {wanted}, got {got}")
        return log, None
    made = Log(space, reward_range=reward_range)
    if log is None:
        return made, None
    file = lines_path("log", log)
    if not file.parent.is_dir():
        raise ValueError(f"`log` must be a Log, or a new file in a folder that exists, got {os.fspath(file)!r}")
    if file.exists() and not overwrite:
        advice = "give `overwrite=True` to replace it, or continue it with `log=omg_cmdp.logs.read_log(...)`"
        raise ValueError(f"the file {os.fspath(file)!r} of `log` exists already; {advice}")
    return made, file


def _contextual(env: Any) -> ContextualEnv:
    if isinstance(env, (TableWorld, SampledWorld)):
        return env.env
    if not is_env(env):
        kinds = "a gymnasium.Env or a world of `environments.from_gymnasium`"
        raise ValueError(f"`env` must be {kinds}, got {type(env).__name__}")
    return ContextualEnv(env)
