"""The contract of agents, as checks that run on any agent: ours, or your own.

    from omg_cmdp.checks import check_agent
    check_agent(my_agent, contexts=[...])

Each check works on deep copies; your agent is not changed.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omg_cmdp.checks.subject import (
    Bits,
    Subject,
    accepted_contexts,
    bad_vectors,
    bits_of,
    require,
    saved_state,
    with_last,
)
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.persistence import write_arrays
from omg_cmdp.records import context_rows
from omg_cmdp.validation import FloatArray, listed, policy_table

EPISODES = 6


class AgentSubject(Subject):
    """An agent under test."""

    @property
    def reward_range(self) -> tuple[float, float]:
        """The agent's own, or [0, 1]."""
        low, high = self.learner.reward_range or (0.0, 1.0)
        return float(low), float(high)

    @property
    def return_range(self) -> tuple[float, float]:
        """The agent's own, or H times that of rewards."""
        low, high = self.reward_range
        horizon = self.learner.space.horizon
        least, most = self.learner.return_range or (horizon * low, horizon * high)
        return float(least), float(most)

    def episode(self, number: int) -> Trajectory:
        """Return the random episode of this number: admissible actions, any next states, every third one truncated."""
        generator, space = np.random.default_rng(number), self.learner.space
        states = [int(generator.choice(space.states, p=space.start / space.start.sum()))]
        actions = []
        for _ in range(space.horizon):
            actions.append(int(generator.choice(np.flatnonzero(space.admissible[states[-1]]))))
            states.append(int(generator.integers(space.states)))
        rewards = self._earning(generator.uniform(*self.reward_range, size=space.horizon))
        context = self.contexts[number % len(self.contexts)]
        seen = int(generator.integers(1, space.horizon + 1)) if number % 3 == 2 else space.horizon
        kinds, (low, high) = len(self.learner.cost_oracles), self.learner.cost_range
        costs = generator.uniform(low, high, size=(kinds, seen)) if kinds else None
        states, actions, rewards = states[: seen + 1], actions[:seen], rewards[:seen]
        return Trajectory(context=context, states=states, actions=actions, rewards=rewards, costs=costs)

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

    def answers(self, agent: Any) -> Bits:
        """Return the bits of the policies for all contexts, and of what would be saved."""
        state = saved_state(agent) or {}
        return bits_of([*state, *state.values(), *(agent.policy(context) for context in self.contexts)])


def check_agent(agent: Any, contexts: Sequence[Context] | None = None, *, progress: bool | None = None) -> None:
    """Raise AssertionError if `agent` breaks a rule of the contract; the message says which.

    Parameters
    ----------
    agent : Agent
        The agent; copies of it are checked, and it is not changed.
    contexts : list, optional
        Some that the agent accepts. By default those that its oracles list, or else 0, 1 or unit vectors, whichever it
        accepts.
    progress : bool, optional
        Whether to show a bar, with the time left. By default it appears after two seconds in a terminal or notebook.

    Examples
    --------
    >>> from omg_cmdp.agents import Greedy
    >>> from omg_cmdp.oracles import CountDynamics, CountRewards
    >>> sizes = {"states": 2, "actions": 2, "horizon": 3}
    >>> check_agent(Greedy(Space(**sizes), CountRewards(**sizes), CountDynamics(**sizes)))
    """
    require(isinstance(getattr(agent, "space", None), Space), "an agent must have a `space`")
    if contexts is None:
        known = accepted_contexts(lambda context: copy.deepcopy(agent).policy(context), _listed(agent))
    elif not (known := listed("contexts", context_rows("contexts", contexts))):
        raise ValueError("`contexts` must hold at least one context, got none")
    AgentSubject(agent, known).run("check_agent", AGENT_CHECKS, progress)


def check_policies_are_valid(subject: AgentSubject) -> None:
    """Policies are (H, S, A), distributions, zero on inadmissible actions: before any data, and after."""
    for agent in (subject.fresh(), subject.trained()):
        for context in subject.contexts:
            policy = agent.policy(context)
            _require_valid(subject, policy)
            same = np.array_equal(agent.decide(context).policy, policy)
            require(same, "`decide(context).policy` must be `policy(context)`")


def check_asking_changes_nothing(subject: AgentSubject) -> None:
    """`policy` is pure: asked twice, for other contexts in between, and after its answer was overwritten."""
    agent = subject.trained()
    before = subject.answers(agent)
    for context in (*subject.contexts, *reversed(subject.contexts)):
        for policy in (agent.policy(context), agent.decide(context).policy):
            if policy.flags.owndata:
                policy.setflags(write=True)
                policy[...] = 0.123
    require(before == subject.answers(agent), "asking must change nothing, nor may overwriting the answer")
    asked, silent = subject.fresh(), subject.trained()
    for number in range(EPISODES):
        asked.policy(subject.contexts[-1])
        subject.train(asked, [number])
    require(subject.answers(asked) == subject.answers(silent), "asking between updates must teach nothing")


def check_input_is_not_kept(subject: AgentSubject) -> None:
    """An agent keeps no reference to a trajectory or its context."""
    agent, twin = subject.fresh(), subject.trained()
    for number in range(EPISODES):
        episode = subject.episode(number)
        given = changed(episode, context=copy.deepcopy(episode.context))
        agent.update(given)
        for array in (given.context, given.states, given.actions, given.rewards):
            if isinstance(array, np.ndarray):
                array.setflags(write=True)
                array[...] = 0
    require(subject.answers(agent) == subject.answers(twin), "`update` must keep no reference to its input")


def check_episodes_may_overlap(subject: AgentSubject) -> None:
    """Several policies are asked for before the trajectories arrive, in any order."""
    forward = range(max(EPISODES, len(subject.contexts)))
    for order in (forward, forward[::-1], [*forward[1::2], *forward[::2]]):
        agent = subject.fresh()
        for number in forward:
            agent.policy(subject.episode(number).context)
        subject.train(agent, order)
        for context in subject.contexts:
            _require_valid(subject, agent.policy(context))


def check_bad_input_is_refused(subject: AgentSubject) -> None:
    """Bad episodes and contexts raise ValueError, and change nothing."""
    agent, episode = subject.trained(), subject.episode(0)
    calls = [(what, agent.update, (trajectory,)) for what, trajectory in bad_episodes(subject)]
    unlisted = [("a context that is not listed", ("no", "such", "context"))] if _listed(agent) else []
    for what, context in bad_vectors(episode.context) or unlisted:
        calls.append((what, agent.policy, (context,)))
        calls.append((what, agent.update, (changed(episode, context=context),)))
    subject.require_refusals(agent, calls)


def check_file_continues(subject: AgentSubject) -> None:
    """A restored agent continues bit for bit. An agent that cannot be saved raises NotImplementedError."""
    agent, restored = subject.trained(), subject.fresh()
    if saved_state(agent) is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent")
        require([p.name for p in Path(folder).iterdir()] == ["agent"], "`save` must write to `path` and nowhere else")
        restored.restore(Path(folder) / "agent")
    require(subject.answers(agent) == subject.answers(restored), "a restored agent must equal the saved one")
    more = range(EPISODES, 2 * EPISODES)
    ours, theirs = (subject.answers(subject.train(each, more)) for each in (agent, restored))
    require(ours == theirs, "a restored agent must continue bit for bit")


def check_other_files_are_refused(subject: AgentSubject) -> None:
    """A file of another kind, a torn one, a state with a part missing: ValueError, and nothing changes."""
    agent = subject.trained()
    state = saved_state(agent)
    if state is None:
        return
    other = subject.train(subject.fresh(), range(EPISODES, 3 * EPISODES))
    with tempfile.TemporaryDirectory() as folder:
        path, torn, foreign = (Path(folder) / name for name in ("agent", "torn", "foreign"))
        agent.save(path)
        torn.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        write_arrays(foreign, state, kind="something else", version=1)
        files = ("a file of another kind", foreign), ("a torn file", torn)
        subject.require_refusals(other, [(what, other.restore, (file,)) for what, file in files])
    parts = {name: {key: state[key] for key in state if key != name} for name in state}
    subject.require_refusals(
        other, [(f"a state without {name!r}", other.load_state, (part,)) for name, part in parts.items()]
    )


AGENT_CHECKS: tuple[Callable[[AgentSubject], None], ...] = tuple(
    each for name, each in vars().items() if name.startswith("check_") and each is not check_agent
)


def _require_valid(subject: AgentSubject, policy: FloatArray) -> None:
    space = subject.learner.space
    try:
        policy_table(policy, (space.horizon, space.states, space.actions), space.admissible)
    except ValueError as error:
        raise AssertionError(f"a policy must be a distribution over admissible actions: {error}") from error


def changed(episode: Trajectory, **changes: Any) -> Trajectory:
    """Return the episode with other parts."""
    fields = {name: getattr(episode, name) for name in ("context", "states", "actions", "rewards")} | changes
    steps = np.arange(len(fields["actions"])) % len(episode.actions)
    return Trajectory(**fields, costs=None if episode.costs is None else episode.costs[:, steps])


def bad_episodes(subject: AgentSubject) -> list[tuple[str, Any]]:
    """Return what the agent must refuse to learn from, each with its description."""
    episode, space, (low, high) = subject.episode(0), subject.learner.space, subject.reward_range
    parts = {name: getattr(episode, name) for name in ("states", "actions", "rewards")}
    changes: list[tuple[str, dict[str, Any]]] = [
        ("an episode longer than the horizon", {name: np.append(part, part[-1:]) for name, part in parts.items()}),
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


def _listed(agent: Any) -> list[Context]:
    """Return the contexts that both of an agent's oracles list, or the only one that has a list."""
    oracles = [each for each in (agent.reward_oracle, agent.dynamics_oracle) if each is not None]
    lists = [list(oracle.contexts) for oracle in oracles if oracle.contexts is not None]
    return [context for context in lists[0] if all(context in known for known in lists)] if lists else []
