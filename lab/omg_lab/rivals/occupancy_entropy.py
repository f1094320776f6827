"""The log barrier replaced by entropy: an ablation of OMG-CMDP!.

    maximise ⟨q, f̂⟩ - (1/γ)·Σ q·log q    over occupancy measures q of the estimated model

This is the entropy of the occupancy itself, of states and actions together; that of the actions given the state is
`Boltzmann`. Where the barrier keeps q·gap at about 1/γ, entropy lets q fall like exp(-γ·gap): what looks bad is hardly
tried again. No regret bound is known, and at γ·gap = log T a tuple is seen once in T episodes.

The program has no closed form, but an iteration with a proven rate. Let B_k(q, q') = Σ q·log(π_k/π'_k), summed over
step k, be the divergence of the policies at that step. By the chain rule and data processing the marginals satisfy
KL(d_h‖d'_h) <= Σ_{k<h} B_k(q, q'), so that Σ q·log q is 1-smooth relative to Σ_k (H - k)·B_k, and at least
1/H-strongly convex. Mirror ascent with this divergence is a soft backward induction at temperature (H - k)/γ in each
iteration; it needs no line search, and comes closer by a factor of 1 - 1/H at least. (Longer steps diverge on
deterministic transitions.) Every plan carries its duality gap.

Source: ours, an ablation; the project's theory notes (§8) have its program.
"""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.agents.exploration.schedules import Power, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.declared import ModelRival, Option, schedule

compiled = Lazy("omg_lab.rivals.compiled.entropy")

ROOT = Power(3.0, 0.5)
"""3·√t."""

TOLERANCE = 1e-8
"""On γ times the gap, which is Σ_h KL(q_h‖q*_h) for the optimal q*: a total variation of 7e-5 at most at any step."""


@final
class OccupancyEntropy(ModelRival):
    """Play the occupancy measure that maximises reward plus 1/γ times its entropy.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Any two oracles; the model of a context is what they predict.
    gamma : float, Power or function of the episode
        γ; 3·√t by default, to be tuned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import OccupancyEntropy
    >>> from omg_lab.worlds import Decoy
    >>> OccupancyEntropy.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    gamma: Option[Tuned, Schedule] = Option(schedule, ROOT)

    def decide(self, context: Context) -> Decision:
        """Return the policy of that occupancy measure."""
        gamma = self.gamma(self.episodes_seen + 1)
        model = self.model(context)
        policy, certificate, iterations = entropy_plan(model, gamma)
        return Decision(
            policy=policy,
            model=model,
            gamma=gamma,
            certificate=certificate,
            regulariser="entropy",
            iterations=iterations,
        )


def entropy_plan(mdp: TabularMDP, gamma: float) -> tuple[FloatArray, float, int]:
    """Return the policy, a proven bound on γ times its distance from the optimum, and the number of iterations."""
    transitions, rewards, start, admissible = mdp.raw
    policy = np.empty((mdp.horizon, mdp.states, mdp.actions))
    tables = transitions, rewards, start, admissible
    certificate, iterations = compiled.entropy_plan(*tables, gamma, TOLERANCE, policy)
    return policy, certificate, iterations
