"""An agent under test, and what it is tested with: good episodes, bad ones, contexts that it must refuse."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.checks.require import require, with_last
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.validation import FloatArray

EPISODES = 6


@dataclasses.dataclass(frozen=True)
class AgentSubject:
    """An agent under test, never changed itself, and contexts that it accepts."""

    agent: Any
    contexts: Sequence[Context]

    @property
    def reward_range(self) -> tuple[float, float]:
        """The agent's own, or [0, 1]."""
        low, high = self.agent.reward_range or (0.0, 1.0)
        return float(low), float(high)

    @property
    def return_range(self) -> tuple[float, float]:
        """The agent's own, or H times that of rewards."""
        low, high = self.reward_range
        given = self.agent.return_range
        least, most = given or (self.agent.space.horizon * low, self.agent.space.horizon * high)
        return float(least), float(most)

    def fresh(self) -> Any:
        """Return a copy."""
        return copy.deepcopy(self.agent)

    def episode(self, number: int) -> Trajectory:
        """Return a random episode, the same for the same number: admissible actions, any next states.

        Every third one is truncated.
        """
        generator, space = np.random.default_rng(number), self.agent.space
        states = [int(generator.choice(space.states, p=space.start / space.start.sum()))]
        actions = []
        for _ in range(space.horizon):
            actions.append(int(generator.choice(np.flatnonzero(space.admissible[states[-1]]))))
            states.append(int(generator.integers(space.states)))
        rewards = self._earning(generator.uniform(*self.reward_range, size=space.horizon))
        context = self.contexts[number % len(self.contexts)]
        seen = int(generator.integers(1, space.horizon + 1)) if number % 3 == 2 else space.horizon
        return Trajectory(context=context, states=states[: seen + 1], actions=actions[:seen], rewards=rewards[:seen])

    def _earning(self, rewards: FloatArray) -> FloatArray:
        """Return `rewards` moved to one end of their range, all by the same share, until their sum is in its range."""
        total, (low, high) = rewards.sum(), self.reward_range
        wanted = np.clip(total, *self.return_range)
        if wanted == total:
            return rewards
        end = low if wanted < total else high
        share = (wanted - len(rewards) * end) / (total - len(rewards) * end)
        return np.asarray(np.clip(end + share * (rewards - end), low, high))

    def train(self, agent: Any, numbers: Sequence[int] = range(EPISODES)) -> Any:
        """Update `agent` with random episodes, and return it."""
        for number in numbers:
            try:
                agent.update(self.episode(number))
            except ValueError as error:
                raise AssertionError(f"`update` must take any episode, in any order, but raised: {error}") from error
        return agent

    def answers(self, agent: Any) -> list[tuple[Any, ...]]:
        """Return the bytes of the policies for all contexts, and of what would be saved."""
        state = saved_state(agent) or {}
        arrays = {**state, **{f"policy {i}": np.asarray(agent.policy(c)) for i, c in enumerate(self.contexts)}}
        return [(name, a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()]


def saved_state(agent: Any) -> dict[str, NDArray[Any]] | None:
    """Return what would be saved; None for an agent that cannot be saved."""
    try:
        state: dict[str, NDArray[Any]] = agent.state()
    except NotImplementedError:
        return None
    plain = all(isinstance(a, np.ndarray) and a.dtype.kind in "biufU" for a in state.values())
    require(plain, "`state` must be arrays of numbers and text")
    return state


def changed(episode: Trajectory, **changes: Any) -> Trajectory:
    """Return the episode with other parts."""
    fields = {name: getattr(episode, name) for name in ("context", "states", "actions", "rewards")}
    return Trajectory(**{**fields, **changes})


def bad_episodes(subject: AgentSubject) -> list[tuple[str, Any]]:
    """Return what the agent must refuse to learn from, each with its description."""
    episode, space, (low, high) = subject.episode(0), subject.agent.space, subject.reward_range
    parts = {name: getattr(episode, name) for name in ("states", "actions", "rewards")}
    changes: list[tuple[str, dict[str, Any]]] = [
        ("a long episode", {name: np.append(part, part[-1:]) for name, part in parts.items()}),
        ("a state out of range", {"states": with_last(episode.states, space.states)}),
        ("a negative state", {"states": with_last(episode.states, -1)}),
        ("an action out of range", {"actions": with_last(episode.actions, space.actions)}),
        ("a negative action", {"actions": with_last(episode.actions, -1)}),
        ("a reward above its range", {"rewards": with_last(episode.rewards, 2.0 * high - low)}),
        ("a reward below its range", {"rewards": with_last(episode.rewards, 2.0 * low - high)}),
    ]
    for what, bound, end in zip(("below", "above"), subject.return_range, (low, high), strict=True):
        if abs(bound - space.horizon * end) > 1e-3 * space.horizon * (high - low):
            changes.append((f"a return {what} its range", {"rewards": np.full(space.horizon, end)}))
    for state, action in np.argwhere(~space.admissible)[:1]:
        states = np.append(episode.states[:-2], [state, episode.states[-1]])
        changes.append(("an inadmissible action", {"states": states, "actions": with_last(episode.actions, action)}))
    refused = [(what, changed(episode, **change)) for what, change in changes]
    return [*refused, ("what is not a Trajectory", {"context": episode.context, **parts}), ("nothing at all", None)]


def bad_contexts(subject: AgentSubject) -> list[tuple[str, Context]]:
    """Return contexts that the agent cannot accept: known for vectors, and for labels that its oracles list."""
    context = subject.contexts[0]
    if isinstance(context, np.ndarray):
        return [
            ("a context with a NaN", np.full_like(context, np.nan, dtype=np.float64)),
            ("a context of another dimension", np.append(context, 0.0)),
        ]
    return [("a context that is not listed", ("no", "such", "context"))] if _listed(subject.agent) else []


def _listed(agent: Any) -> list[Context]:
    """Return the contexts that both of an agent's oracles list, or the only one that has a list."""
    oracles = [each for each in (agent.reward_oracle, agent.dynamics_oracle) if each is not None]
    lists = [list(oracle.contexts) for oracle in oracles if oracle.contexts is not None]
    return [context for context in lists[0] if all(context in known for known in lists)] if lists else []


def contexts_that_work(agent: Any) -> list[Context]:
    """Return contexts that `agent` accepts: listed by its oracles, or found by trying."""
    vectors = [[np.eye(d)[0], np.eye(d)[-1], np.full(d, 1.0 / d)] for d in range(1, 65)]
    for candidates in (_listed(agent), [0, 1], *vectors):
        with contextlib.suppress(Exception):  # whatever a user's function raises on a foreign context
            for context in candidates:
                copy.deepcopy(agent).policy(context)
            if candidates:
                return candidates
    raise ValueError("`contexts` must be given: the agent accepts neither 0 nor a unit vector of up to 64 dimensions")
