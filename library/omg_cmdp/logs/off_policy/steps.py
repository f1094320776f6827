"""The steps of a log as arrays, beside what a policy would do there and what a model expects of it.

An episode that *ended* is continued to its full length in an absorbing state, with reward 0 and propensity 1. One that
was *cut off* has fewer than H steps, and what came later is unknown: such a log is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from omg_cmdp.agents.agent import Agent
from omg_cmdp.contexts import alike
from omg_cmdp.logs.log import Log
from omg_cmdp.mdp.bellman import policy_values
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import ROW_SUM_TOLERANCE, FloatArray, IntArray, first_index, function, instance_of

Policy = Callable[[Any], FloatArray]
"""context -> (H, S, A), such as `agent.policy`."""

Model = Callable[[Any], TabularMDP | None]
"""context -> MDP with rewards in [0, 1], which stand for the log's `reward_range`, such as `agent.model`."""


class UnfitLogError(ValueError):
    """A log that does not say what the policy is worth."""


class LoggedSteps:
    """The n episodes of a log, and what a policy would do in the M places where they were.

    A place is a context with a state. `policy` and `model` are called once for each distinct context.
    """

    def __init__(self, log: Log, policy: Policy, model: Model | None = None) -> None:
        instance_of("log", log, Log)
        function("policy", policy)
        if not len(log):
            raise ValueError("`log` must hold at least one episode, got none")
        _check_range(model, log.reward_range)
        self.space, self.reward_range, steps = log.space, log.reward_range, np.arange(log.space.horizon)
        log.require_whole()
        self.actions, self.rewards, self.propensities = log.actions, log.rewards, log.propensities
        states = log.states
        # Where the last action led may be unknown, and does not matter: nothing follows.
        states[:, -1] = np.where(states[:, -1] < 0, states[:, -2], states[:, -1])
        alike_ones, groups = alike(log.contexts), np.empty(len(log), dtype=np.int64)
        for group, members in enumerate(alike_ones):
            groups[members] = group
        self.contexts = [log.episodes[members[0]].context for members in alike_ones]
        """The distinct contexts."""
        # Places that were never visited have no row: a log of many contexts sees few of their states.
        keys, places = np.unique(groups[:, None] * log.space.states + states, return_inverse=True)
        self.places: IntArray = places.reshape(states.shape)
        """The place of each episode at each step, (n, H + 1)."""
        self.owners, self.states = np.divmod(keys, log.space.states)
        """The context and the state of each place, (M,)."""
        self.policy = np.empty((log.space.horizon, len(keys), log.space.actions))
        """π_h(·|place), (H, M, A)."""
        self.first = np.zeros(len(log))
        """V̂_0(s_0) of the policy in the model, (n,); 0 without one."""
        self.gains = self.rewards.copy()
        """r_h + V̂_{h+1}(s_{h+1}) - Q̂_h(s_h, a_h), (n, H): observed less expected; the rewards without a model."""
        low, high = log.reward_range
        for group, (context, members) in enumerate(zip(self.contexts, alike_ones, strict=True)):
            table = log.space.checked_policy(policy(context))
            here = slice(*np.searchsorted(self.owners, [group, group + 1]))
            self.policy[:, here] = table[:, self.states[here]]
            if model is not None:
                believed = _checked_model(log.space, model(context))
                values, action_values = policy_values(believed, table, low + (high - low) * believed.reward_steps)
                visited = states[members]
                self.first[members] = values[0, visited[:, 0]]
                self.gains[members] += values[steps + 1, visited[:, 1:]]
                self.gains[members] -= action_values[steps, visited[:, :-1], self.actions[members]]

    @property
    def return_range(self) -> tuple[float, float]:
        """The least and the most that an episode can earn."""
        low, high = self.reward_range
        return self.space.horizon * low, self.space.horizon * high

    def ratios(self) -> FloatArray:
        """Return ρ_h = π_h(a_h|s_h)/p_h, (n, H); raise where the log could not do what the policy may do."""
        if self.propensities is None:
            rule = "`log` must hold propensities, the probabilities with which its actions were taken"
            raise UnfitLogError(f"{rule}, got none")
        chosen = self.policy[np.arange(self.space.horizon), self.places[:, :-1], self.actions]
        followed = np.logical_and.accumulate(chosen > 0.0, axis=1)
        followed = np.hstack([np.ones_like(followed[:, :1]), followed[:, :-1]])  # before the step
        # Policies are distributions up to this tolerance.
        nearly = 1.0 - ROW_SUM_TOLERANCE
        lacking = followed & (self.propensities > nearly) & (chosen < nearly)
        if lacking.any():
            episode, step = first_index(lacking)
            got = f"an action of probability {chosen[episode, step]:g} that the log took with probability 1"
            raise UnfitLogError(
                f"`policy` must do only what had a chance in the log, got {got} at step {step} of episode {episode}"
            )
        return np.asarray(chosen / self.propensities)


def _check_range(model: Model | None, reward_range: tuple[float, float]) -> None:
    """Raise if `model` is a method of an agent or a world whose [0, 1] stands for other rewards than the log's."""
    owner, known = getattr(model, "__self__", None), [reward_range]
    if isinstance(owner, Agent) and owner.reward_range is not None:
        known = [owner.reward_range]
    elif isinstance(owner, Environment):
        known = [owner.reward_range, owner.paid_range]  # a log has either: of `play` the first, of `sample` the other
    if reward_range not in known:
        raise ValueError(
            f"`model` is of rewards in {known[0]}, and `log` of {reward_range}: make a log of the same range, "
            "`Log(log.space, log.episodes, reward_range=...)`"
        )


def _checked_model(space: Space, model: TabularMDP | None) -> TabularMDP:
    if not isinstance(model, TabularMDP):
        raise ValueError(f"`model` must return a TabularMDP, got {type(model).__name__}")
    sizes, got = ((each.states, each.actions, each.horizon) for each in (space, model))
    if sizes != got:
        raise ValueError(f"`model` must return an MDP of the log's states, actions and horizon {sizes}, got {got}")
    return model
