"""Every agent, rival and oracle of the catalogues as a file of arrays, which one built alike reads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lab.tests.rivals import catalogue as rivals
from library.tests.agents import catalogue as agents
from library.tests.oracles import catalogue as oracles
from omg_cmdp.checks.agents import AgentSubject
from omg_cmdp.checks.oracles import OracleSubject
from omg_cmdp.checks.subject import bits_of
from omg_cmdp.persistence import AGENT_FILE, read_arrays, write_arrays

HORIZON = 4
FOUND: Mapping[str, Callable[[], Mapping[str, tuple[Any, Any]]]] = {
    "agent": agents.each_agent,
    "rival": rivals.each_agent,
    "oracle": functools.partial(oracles.each_oracle, HORIZON),
}
"""Kind -> name -> (contexts, learner)."""


def subject(kind: str, learner: Any, contexts: Any) -> AgentSubject | OracleSubject:
    """Return a learner with what it is asked."""
    if kind == "oracle":
        return OracleSubject(learner, contexts, HORIZON)
    return AgentSubject(learner, contexts)


SUBJECTS = {
    f"{kind}-{number}.npz": (kind, subject(kind, learner, contexts))
    for kind, found in FOUND.items()
    for number, (contexts, learner) in enumerate(found().values())
}


def write(name: str, path: Path) -> None:
    """Let a learner learn a few episodes, and write what it has learned."""
    write_arrays(path, SUBJECTS[name][1].trained().state(), **AGENT_FILE)


def read(name: str, path: Path) -> None:
    """Load a state into a learner built alike, which then goes on; one that is refused changes nothing."""
    (kind, of), arrays = SUBJECTS[name], read_arrays(path, **AGENT_FILE)
    learner, episode = of.fresh(), of.episode(0)
    before = bits_of(learner.state().values())
    try:
        learner.load_state(arrays)
    except ValueError:
        assert bits_of(learner.state().values()) == before, "a state that was refused has changed the learner"
        raise
    learner.update(*episode) if kind == "oracle" else learner.update(episode)
    of.answers(learner)
