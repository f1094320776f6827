"""What the agents of this room share, as methods: they have oracles, a `history` and a `_round`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.episode import Trajectory
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.counterfactual.histories import EpochFits, History, ListedContexts
from omg_lab.rivals.counterfactual.rounds import Round, Tables


def history_of(agent: ModelAgent, a_round: Round, contexts: Iterable[Context] | None) -> History:
    """Return the memory of an agent: of listed `contexts`, or of the fits of its epochs."""
    oracles = agent.reward_oracle, agent.dynamics_oracle
    return EpochFits(a_round, oracles) if contexts is None else ListedContexts(a_round, oracles, contexts)


def decide(self: Any, context: Context) -> Decision:
    """Return the policy of one round."""
    tables, history = self.history.tables(context), self.history
    policies, _ = self._round.play(tables, history.memory(context), history.fitted, history.length)
    return Decision(policy=policies[0], model=as_mdp(self, tables))


def model(self: Any, context: Context) -> TabularMDP:
    """Return the fits of this round as an MDP."""
    return as_mdp(self, self.history.tables(context))


def as_mdp(self: Any, fits: Tables) -> TabularMDP:
    """Return the tables of one context as an MDP."""
    rewards, transitions = (steps[0] if len(steps) == 1 else steps for (steps,) in fits)
    found: TabularMDP = self.space.mdp(transitions=transitions, rewards=rewards)
    return found


def visits(self: Any, context: Context) -> FloatArray:
    """Return W (H, S, A): 1 + how often (h, s, a) would have been visited, had `context` come in every round."""
    return np.asarray(self.history.memory(context)[0, 0])


def learn(self: Any, trajectory: Trajectory, rewards: FloatArray) -> None:
    """Teach both oracles, and play the round for every context."""
    ModelAgent._learn(self, trajectory, rewards)
    self.history.advance()


def learned(self: Any) -> dict[str, NDArray[Any]]:
    """Return what both oracles learned, and the memory or the kept fits."""
    return {**ModelAgent._learned(self), **self.history.state()}


def load_learned(self: Any, state: State, episodes: int) -> None:
    """Load both oracles, and the memory or the kept fits."""
    arrays = self.history.read(state, episodes)
    ModelAgent._load_learned(self, state, episodes)
    self.history.resume(arrays, episodes)
