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

from omg_cmdp.checks.require import require
from omg_cmdp.checks.subject import (
    EPISODES,
    AgentSubject,
    bad_contexts,
    bad_episodes,
    changed,
    contexts_that_work,
    saved_state,
)
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.persistence import write_arrays
from omg_cmdp.records import context_rows
from omg_cmdp.validation import FloatArray, listed, policy_table


def check_agent(agent: Any, contexts: Sequence[Context] | None = None) -> None:
    """Raise AssertionError if `agent` breaks a rule of the contract; the message says which.

    Parameters
    ----------
    agent : Agent
        The agent; copies of it are checked, and it is not changed.
    contexts : list, optional
        Some that the agent accepts. By default those that its oracles list, or else 0, 1 or unit vectors, whichever it
        accepts.

    Examples
    --------
    >>> from omg_cmdp.agents import Greedy
    >>> from omg_cmdp.oracles import CountDynamics, CountRewards
    >>> sizes = {"states": 2, "actions": 2, "horizon": 3}
    >>> check_agent(Greedy(Space(**sizes), CountRewards(**sizes), CountDynamics(**sizes)))
    """
    require(isinstance(getattr(agent, "space", None), Space), "an agent must have a `space`")
    known = contexts_that_work(agent) if contexts is None else listed("contexts", context_rows("contexts", contexts))
    if not known:
        raise ValueError("`contexts` must hold at least one context, got none")
    subject = AgentSubject(agent, known)
    for check in AGENT_CHECKS:
        check(subject)


def check_policies_are_valid(subject: AgentSubject) -> None:
    """Policies are (H, S, A), distributions, zero on inadmissible actions: before any data, and after."""
    for agent in (subject.fresh(), subject.train(subject.fresh())):
        for context in subject.contexts:
            policy = agent.policy(context)
            _require_valid(subject, policy)
            same = np.array_equal(agent.decide(context).policy, policy)
            require(same, "`decide(context).policy` must be `policy(context)`")


def check_asking_changes_nothing(subject: AgentSubject) -> None:
    """`policy` is pure: asked twice, for other contexts in between, and after its answer was overwritten."""
    agent = subject.train(subject.fresh())
    before = subject.answers(agent)
    for context in (*subject.contexts, *reversed(subject.contexts)):
        for policy in (agent.policy(context), agent.decide(context).policy):
            if policy.flags.owndata:
                policy.setflags(write=True)
                policy[...] = 0.123
    require(before == subject.answers(agent), "asking must change nothing, nor may overwriting the answer")
    asked, silent = subject.fresh(), subject.train(subject.fresh())
    for number in range(EPISODES):
        asked.policy(subject.contexts[-1])
        subject.train(asked, [number])
    require(subject.answers(asked) == subject.answers(silent), "asking between updates must teach nothing")


def check_input_is_not_kept(subject: AgentSubject) -> None:
    """An agent keeps no reference to a trajectory or its context."""
    agent, twin = subject.fresh(), subject.train(subject.fresh())
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
    agent = subject.train(subject.fresh())
    before = subject.answers(agent)
    for what, trajectory in bad_episodes(subject):
        _require_refusal(what, agent.update, trajectory)
        require(before == subject.answers(agent), f"{what}: a refused update must change nothing")
    episode = subject.episode(0)
    for what, context in bad_contexts(subject):
        _require_refusal(what, agent.policy, context)
        _require_refusal(what, agent.update, changed(episode, context=context))
        require(before == subject.answers(agent), f"{what}: a refused context must change nothing")


def check_file_continues(subject: AgentSubject) -> None:
    """A restored agent continues bit for bit. An agent that cannot be saved raises NotImplementedError."""
    agent, restored = subject.train(subject.fresh()), subject.fresh()
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
    agent = subject.train(subject.fresh())
    state = saved_state(agent)
    if state is None:
        return
    other = subject.train(subject.fresh(), range(EPISODES, 3 * EPISODES))
    before = subject.answers(other)
    with tempfile.TemporaryDirectory() as folder:
        path, torn, foreign = (Path(folder) / name for name in ("agent", "torn", "foreign"))
        agent.save(path)
        torn.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        write_arrays(foreign, state, kind="something else", version=1)
        for what, file in (("a file of another kind", foreign), ("a torn file", torn)):
            _require_refusal(what, other.restore, file)
            require(before == subject.answers(other), f"{what}: a refused file must change nothing")
    for name in state:
        what = f"a state without {name!r}"
        _require_refusal(what, other.load_state, {key: state[key] for key in state if key != name})
        require(before == subject.answers(other), f"{what}: a refused state must change nothing")


AGENT_CHECKS: tuple[Callable[[AgentSubject], None], ...] = (
    check_policies_are_valid,
    check_asking_changes_nothing,
    check_input_is_not_kept,
    check_episodes_may_overlap,
    check_bad_input_is_refused,
    check_file_continues,
    check_other_files_are_refused,
)


def _require_valid(subject: AgentSubject, policy: FloatArray) -> None:
    space = subject.agent.space
    try:
        policy_table(policy, (space.horizon, space.states, space.actions), space.admissible)
    except ValueError as error:
        raise AssertionError(f"a policy must be a distribution over admissible actions: {error}") from error


def _require_refusal(what: str, method: Callable[..., Any], argument: Any) -> None:
    try:
        method(argument)
    except ValueError:
        return
    except Exception as error:
        raise AssertionError(f"{what} must be refused with a ValueError, got {error!r}") from error
    raise AssertionError(f"{what} must be refused with a ValueError")
