"""Warm starts: an agent begins with what a log can teach.

The oracles are regressions: they learn f(c, s, a) and P(·|c, s, a) from any episodes, whichever policy played them,
provided that nothing unobserved influenced both the action and its outcome. Nor does the theorem ask for more:
an oracle's bound holds for any sequence of episodes, and errors on logged ones are not negative. So the errors on the
agent's own T episodes are bounded by the oracles' bounds for all n + T, logged ones first. The log need not help: if it
never tried an action, it says nothing about it.

The agent counts logged episodes as its own: rules for γ that depend on the episode number continue from n, and
`episodes`, where an agent takes it, is n + T.
"""

from __future__ import annotations

from typing import TypeVar

from omg_cmdp.agents.agent import Agent
from omg_cmdp.logs.log import Log
from omg_cmdp.persistence import undone_on_failure
from omg_cmdp.validation import instance_of

A = TypeVar("A", bound=Agent)


def warm_start(agent: A, log: Log) -> A:
    """Teach an agent all episodes of a log, in order, and return it.

    Parameters
    ----------
    agent : Agent
        An agent for the log's states, actions and horizon. If it refuses an episode, or is interrupted, it is given
        back what it had learned before, provided that it can be saved or copied.
    log : Log
        The episodes, with rewards in the agent's range.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> space = omg.Space(states=1, actions=2, horizon=1)
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> agent = omg.agents.Greedy(space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> episode = omg.Episode(context="c", states=[0, 0], actions=[1], rewards=[1.0])
    >>> warm_start(agent, Log(space, [episode] * 5)).policy("c")
    array([[[0., 1.]]])
    """
    instance_of("agent", agent, Agent)
    instance_of("log", log, Log)
    sizes, got = ((each.states, each.actions, each.horizon) for each in (agent.space, log.space))
    if sizes != got:
        raise ValueError(f"`log` must be of the agent's states, actions and horizon {sizes}, got {got}")
    with undone_on_failure(agent):
        for place, episode in enumerate(log.episodes):
            try:
                agent.update(episode)
            except Exception as error:
                rule = "hold episodes of the agent's kind"
                raise ValueError(f"`log` must {rule}, got episode {place}: {error}") from error
    return agent
