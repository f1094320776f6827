"""The log barrier on the policy, not on the occupancy: inverse gap weighting in every state, an ablation of OMG-CMDP!.

    π_h(a|s) = 1/(λ_h(s) + γ·(max Q_h(s, ·) - Q_h(s, a))),  Q_h = f̂ + P̂·V_{h+1},  V_h(s) = Σ_a π_h(a|s)·Q_h(s, a)

In each state this maximises ⟨π, Q⟩ + (1/γ)·Σ log π (Abe and Long 1999; Foster and Rakhlin 2020), where OMG has
Σ log q = Σ log d_h(s) + Σ log π: the term that leads to rarely visited states is missing, and a state that counts
little is explored as much as one on every path. At H = 1, from one state, both are the same. No guarantee for H > 1.

Source: ours, an ablation; the project's theory notes (§8) have its pseudo-code.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.agents.exploration.schedules import ROOT, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray

compiled = Lazy("omg_lab.rivals.compiled.inverse_gap")


@final
class LocalIGW(ModelAgent):
    """Play inverse gap weighting in every state, by the values of the policy itself at later steps.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Any two oracles; the model of a context is what they predict.
    gamma : float, Power or function of the episode
        γ; 30·√t by default, to be tuned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import LocalIGW
    >>> from omg_lab.worlds import Decoy
    >>> LocalIGW.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    settings = ("gamma",)

    def __init__(
        self, space: Space, reward_oracle: RewardOracle, dynamics_oracle: DynamicsOracle, gamma: Tuned = ROOT, **kw: Any
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **kw)
        self.gamma = Schedule(gamma)

    def decide(self, context: Context) -> Decision:
        """Return a policy that gives every admissible action a positive probability."""
        gamma, model = self.gamma(self.episodes_seen + 1), self.model(context)
        return Decision(policy=local_policy(model, gamma), model=model, gamma=gamma)


def local_policy(mdp: TabularMDP, gamma: float) -> FloatArray:
    """Return the policy (H, S, A) of inverse gap weighting in every state.

    >>> bandit = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[1.0, 0.0]]), horizon=1)
    >>> local_policy(bandit, 1.0).round(3)
    array([[[0.618, 0.382]]])
    """
    transitions, rewards, _, admissible = mdp.raw
    policy = np.empty((mdp.horizon, mdp.states, mdp.actions))
    compiled.local_policy(transitions, rewards, admissible, gamma, policy)
    return policy
