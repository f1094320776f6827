"""Boltzmann exploration: the log barrier replaced by the entropy of the actions, an ablation of OMG-CMDP!.

    π_h(a|s) ∝ exp(γ·Q_h(s, a)),  Q_h = f̂ + P̂·V_{h+1},  V_h(s) = (1/γ)·log Σ_a exp(γ·Q_h(s, a)),  V_H = 0

Q is the value of the soft policy itself with its entropy as a reward, not that of the greedy one: the policy then is
the exact maximiser of ⟨q, f̂⟩ - (1/γ)·Σ q·log π over occupancy measures (Ziebart 2010), and γ, the inverse temperature
that is often called β, stands in the same place as OMG's γ. No guarantee: an action that looks bad is tried with
probability exp(-γ·gap), where the barrier has 1/(γ·gap).

Source: the project's theory notes (§8) have its pseudo-code; an ablation of OMG-CMDP!.
"""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.agents.exploration.schedules import Power, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.planning.decision import Decision
from omg_lab.rivals.declared import ModelRival, Option, schedule

compiled = Lazy("omg_lab.rivals.compiled.entropy")

ROOT = Power(1.0, 0.5)
"""√t."""


@final
class Boltzmann(ModelRival):
    """Play the softmax of soft values at inverse temperature γ.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Any two oracles; the model of a context is what they predict.
    gamma : float, Power or function of the episode
        γ; √t by default, to be tuned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import Boltzmann
    >>> from omg_lab.worlds import Decoy
    >>> Boltzmann.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    gamma: Option[Tuned, Schedule] = Option(schedule, ROOT)

    def decide(self, context: Context) -> Decision:
        """Return a policy that gives every admissible action a positive probability, up to underflow."""
        gamma, model = self.gamma(self.episodes_seen + 1), self.model(context)
        transitions, rewards, _, admissible = model.raw
        policy = np.empty((model.horizon, model.states, model.actions))
        compiled.soft_plan(transitions, rewards, admissible, gamma, policy)
        return Decision(policy=policy, model=model, gamma=gamma)
