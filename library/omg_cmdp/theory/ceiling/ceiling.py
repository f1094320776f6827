"""A ceiling on regret that can be computed without the truth: Theorem F of docs/ceiling.md."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, Keyed, keyed
from omg_cmdp.mdp.bellman import scaled_returns, value_bounds
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import DynamicsOracle, Oracle, RewardOracle
from omg_cmdp.persistence import State, bounded, check_settings, joint_state, load_parts, numbers, read_state
from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory.ceiling.largest import Loss, largest_loss
from omg_cmdp.theory.ceiling.sets import Observed
from omg_cmdp.theory.ceiling.spaces import is_known, version_space
from omg_cmdp.theory.rounds import SURELY, mixed_policies
from omg_cmdp.validation import FloatArray, instance_of, probability, unit_scaled

DELTA = 0.05
"""The usual failure probability."""


@runtime_checkable
class Decider(Protocol):
    """What the ceiling needs to know of an agent: its space, its ranges, and the classes of its oracles."""

    @property
    def space(self) -> Space:
        """Sizes, horizon, start and admissible actions."""

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The interval in which rewards lie; None means (0, 1)."""

    @property
    def return_range(self) -> tuple[float, float] | None:
        """The interval in which their sum lies; None means H times the range of rewards."""

    @property
    def reward_oracle(self) -> Oracle | None:
        """The oracle of rewards."""

    @property
    def dynamics_oracle(self) -> Oracle | None:
        """The oracle of dynamics."""


class Replayed(Protocol):
    """An agent that decides and learns."""

    def decide(self, context: Context) -> Decision:
        """Return the policy, and what led to it."""

    def update(self, trajectory: Trajectory) -> None:
        """Learn from an episode."""


@final
class RegretCeiling:
    """A bound on the regret so far that holds with probability 1 - δ at all times, whatever the agent plays.

    Before it learns from an episode it adds

        w = max V*(c) - V^π(c)   over all models of the oracles' classes that the data have not refuted.

    If the truth is in the classes, it is among these models, and so the total of the w is at least the regret, whoever
    chooses the contexts. Neither the truth nor the agent's own beliefs are used: a ceiling that stops growing shows
    that the agent plays well, and one that keeps growing shows that nobody can know yet.

    Parameters
    ----------
    agent : Agent
        The agent that plays. Only its space, its ranges and the classes of its oracles are used.
    delta : float, default 0.05
        The probability δ with which the ceiling may fail at some time.
    reward_oracle, dynamics_oracle : Oracle, optional
        Oracles whose classes hold the truth, for agents that have none; by default those of the agent.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> class Coins(omg.ContextualMDP):
    ...     space = omg.Space(states=1, actions=2, horizon=1)
    ...     def mdp(self, context):
    ...         return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=[[context, 1.0 - context]])
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1, "contexts": (0.2, 0.9)}
    >>> agent = omg.OMG(Coins.space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> ceiling = RegretCeiling(agent)
    >>> ledger = omg.simulate(Coins(), omg.adversaries.IID([0.2, 0.9]), agent, episodes=300, observe=ceiling)
    >>> bool(ledger.regret.sum() <= ceiling.total < 150.0)  # of 300
    True

    References
    ----------
    docs/ceiling.md, Theorem F.
    """

    def __init__(
        self,
        agent: Decider,
        *,
        delta: float = DELTA,
        reward_oracle: Oracle | None = None,
        dynamics_oracle: Oracle | None = None,
    ) -> None:
        instance_of("agent", agent, Decider)
        self.delta = probability("delta", delta)
        self._space = agent.space
        self._range = agent.reward_range or (0.0, 1.0)
        horizon = agent.space.horizon
        self._bounds = value_bounds(horizon, scaled_returns(agent.return_range, horizon, self._range))
        oracles = {
            "rewards": _chosen("reward_oracle", reward_oracle, agent.reward_oracle, RewardOracle),
            "dynamics": _chosen("dynamics_oracle", dynamics_oracle, agent.dynamics_oracle, DynamicsOracle),
        }
        # A known table spends nothing: if it is refuted wrongly the ceiling becomes inf, and still holds.
        learned = max(sum(not is_known(oracle) for oracle in oracles.values()), 1)
        self._versions = {name: version_space(oracle, self.delta / learned) for name, oracle in oracles.items()}
        self._unknown = [type(oracles[name]).__name__ for name, versions in self._versions.items() if versions is None]
        self._most: list[float] = []
        self._settled: list[float] = []

    @property
    def total(self) -> float:
        """The ceiling: with probability 1 - δ, the regret so far is at most this."""
        return math.fsum(self._most)

    @property
    def episodes(self) -> FloatArray:
        """What each episode can have cost at most, (T,)."""
        return np.array(self._most)

    @property
    def settled(self) -> FloatArray:
        """For each episode, the share of its reachable (step, state) where all plausible models agree on an action."""
        return np.array(self._settled)

    @property
    def reason(self) -> str:
        """Why the ceiling is infinite; empty if it is not."""
        if self._unknown:
            return f"no set of plausible models is known for {' and '.join(self._unknown)}"
        refuted = [name for name, versions in self._versions.items() if versions is not None and versions.refuted]
        return f"the data refute the oracle's class of {' and of '.join(refuted)}" if refuted else ""

    def __call__(self, seen: Any) -> Loss:
        """Add the round of an episode: the `observe` of `simulate` and `play`."""
        return self._add(seen.played.known, *mixed_policies(seen.decision), seen.played)

    def add(self, context: Context, policy: ArrayLike, trajectory: Trajectory) -> float:
        """Add an episode: the policy (H, S, A) that was decided for the context, and what was seen of it.

        Returns the most that the episode can have cost: V*(c) - V^π(c), in the units of the rewards.
        """
        instance_of("trajectory", trajectory, Trajectory)
        trajectory.check(self._space, self._range)
        policy = self._space.checked_policy(policy)
        states, actions, _ = trajectory.raw
        length = trajectory.length if isinstance(trajectory, Episode) else len(actions)
        if not (policy[np.arange(length), states[:length], actions[:length]] > 0.0).all():
            raise ValueError("`policy` must be the one that was played, got one that never plays these actions")
        return self._add(keyed(context), policy[None], SURELY, trajectory).most

    def loss(self, context: Context, policy: ArrayLike) -> Loss:
        """Return what a policy loses at most in a context, given all that is known now; nothing is added."""
        return self._loss(keyed(context), self._space.checked_policy(policy)[None], SURELY)

    def replay(self, episodes: Iterable[Episode], agent: Replayed) -> None:
        """Add the episodes of a finished log.

        `agent` is the one that played them, as it was before the first: it decides each again and learns from it. An
        episode that it would have played with other probabilities is refused; those before it have been added.
        """
        for number, episode in enumerate(episodes, 1):
            instance_of("episodes", episode, Episode)
            decision = agent.decide(episode.context)
            policies, probabilities = mixed_policies(decision)
            length, chances = episode.length, episode.propensities
            if chances is not None and len(policies) == 1:
                own = policies[0][np.arange(length), episode.states[:length], episode.actions[:length]]
                if np.abs(own - chances[:length]).max() > 1e-6:
                    raise ValueError(f"`agent` must be the one that played: episode {number} has other probabilities")
            self._add(episode.known, policies, probabilities, episode)
            agent.update(episode)

    def learn(self, trajectory: Trajectory, *, late: bool = False) -> None:
        """Learn from an episode without counting it, such as one of an earlier log.

        With `late` only its rewards, which came after it was added without them: the others are None.
        """
        instance_of("trajectory", trajectory, Trajectory)
        instance_of("late", late, bool)
        trajectory.check(self._space, self._range)
        self._learn(trajectory, late=late)

    def __str__(self) -> str:
        """Return what was lost at most, and how much is settled."""
        if not self._most:
            return "no episodes"
        confidence = f"with {1.0 - self.delta:.0%} confidence"
        if self.reason:
            return f"{confidence} nothing can be said of what {len(self._most)} episodes lost: {self.reason}"
        last = self._settled[-1]
        return (
            f"{confidence} {len(self._most)} episodes lost at most {self.total:.3g}; in the last one's context "
            f"{last:.0%} of the decisions are settled"
        )

    def _settings(self) -> str:
        kinds = ", ".join(f"{name} {type(each).__name__}" for name, each in self._versions.items())
        return f"RegretCeiling, delta {self.delta}, {kinds}"

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the totals, and all that was learned."""
        known = {name: each for name, each in self._versions.items() if each is not None}
        told = {"settings": np.array(self._settings()), "most": bounded(self.episodes), "shares": self.settled}
        return {**told, **joint_state(known)}

    def load_state(self, state: State) -> None:
        """Load the state of a ceiling for an agent with the same oracles; it continues bit for bit."""
        state = read_state(state)
        check_settings(state, self._settings())
        try:
            most = numbers("most", state, (None,)).tolist()
            shares = numbers("shares", state, (len(most),)).tolist()
            load_parts(state, {name: each for name, each in self._versions.items() if each is not None})
        except ValueError as error:
            raise ValueError(f"`state` must be that of a RegretCeiling with the same oracles, got {error!r}") from error
        self._most, self._settled = most, shares

    def _learn(self, trajectory: Trajectory, *, late: bool = False) -> None:
        context, (states, actions, rewards) = trajectory.known, trajectory.raw
        steps, pairs = np.arange(len(actions)), states[:-1] * self._space.actions + actions
        if (versions := self._versions["dynamics"]) is not None and not late:
            versions.learn(context, Observed(steps, pairs, states[1:]))
        told = np.flatnonzero(~np.isnan(rewards))
        if (versions := self._versions["rewards"]) is not None and len(told):
            versions.learn(context, Observed(steps[told], pairs[told], unit_scaled(rewards[told], self._range)))

    def _add(self, context: Keyed, policies: FloatArray, probabilities: FloatArray, trajectory: Trajectory) -> Loss:
        lost = self._loss(context, policies, probabilities)
        self._most.append(lost.most)
        self._settled.append(lost.settled)
        self._learn(trajectory)
        return lost

    def _loss(self, context: Keyed, policies: FloatArray, probabilities: FloatArray) -> Loss:
        rewards, dynamics = self._versions["rewards"], self._versions["dynamics"]
        if rewards is None or dynamics is None or rewards.refuted or dynamics.refuted:
            return Loss(math.inf, 0.0, np.repeat(self._space.admissible[None], self._space.horizon, axis=0))
        plausible = rewards.plausible(context), dynamics.plausible(context)
        lost = largest_loss(self._space, *plausible, policies, probabilities, self._bounds)
        return lost._replace(most=lost.most * (self._range[1] - self._range[0]))


def _chosen(name: str, given: Oracle | None, own: Oracle | None, kind: type) -> Oracle:
    """Return the oracle that was given, else the agent's own."""
    oracle = own if given is None else given
    if oracle is None:
        raise ValueError(f"the agent has no `{name}`; pass `{name}=` with one whose class holds the truth")
    instance_of(name, oracle, kind)
    return oracle
