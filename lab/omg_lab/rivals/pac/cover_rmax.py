"""Cover-Rmax (Modi, Jiang, Singh and Tewari, ALT 2018): Rmax in every ball of a cover of the contexts.

A smooth contextual MDP has ‖P_c - P_c'‖₁ <= L_p·φ(c, c') and |f_c - f_c'| <= L_r·φ(c, c') for a metric φ. Contexts
within r of a centre share a table. A pair is known in a ball once it was visited m times there; later visits teach
nothing. Contexts may be chosen by anyone.

The paper proves, up to constants and logarithms, that with probability 1 - δ at most N·S·A·H²·(S + log 1/δ)/ε³ episodes
are worse than ε, N the covering number of the contexts for r, and ε in units of the mean reward of a step (from notes,
not certain). For ε in units of the whole episode its numbers are, from notes too, with factors 8 and 128 that are not
certain,

    r = min(ε/(8·H²·L_p), ε/(8·H·L_r)),    m = 128·(S·log 2 + log(S·A/δ))·H⁴/ε².

Contexts in a ball then differ by at most 3ε/8 in the value of any policy: H·2r·L_r + (H²/2)·2r·L_p. N grows like r to
the minus dimension, and so must it for smooth classes.

Proven here: the inequality of `rmax.py`. In a ball the contexts differ by at most 2r, so that the mean of any of their
tables is within η_r = 2r·L_r and η_p = 2r·L_p of each of them, apart from noise.

Source: named in the paper of this project; pseudo-code in the project's theory notes (§5).
"""

from __future__ import annotations

import dataclasses
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_integer
from omg_lab.rivals.cells import CellRival, Tally
from omg_lab.rivals.declared import Option
from omg_lab.rivals.pac.rmax import induced_mdp


@final
class CoverRmax(CellRival):
    """Rmax on the counts of a context's cell.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    cover : Cover
        Which contexts share a cell; `PerBall(radius)` as published.
    visits : int
        The number m of visits after which a pair is known, and believed for ever. The published number
        is in the millions for H = 5 and ε = ½; 20, the default, is what can be played.
    known_rewards, known_transitions : function, optional
        From a context to the true tables, (S, A) and (S, A, S), where they are known; by default both are learned.
    reward_range, return_range
        As for every `Learner`.

    >>> import omg_cmdp as omg
    >>> from omg_lab.rivals import CoverRmax, PerContext
    >>> agent = CoverRmax(omg.Space(states=2, actions=2, horizon=3), PerContext(), visits=5)
    >>> agent.policy("anyone").shape
    (3, 2, 2)
    """

    _: dataclasses.KW_ONLY
    visits: Option[int, int] = Option(positive_integer, 20)

    def decide(self, context: Context) -> Decision:
        """Return an optimal policy, deterministic, of the induced MDP."""
        model = self.model(context)
        return Decision(policy=optimal_policy(model, bounds=self.value_bounds)[0], model=model)

    def _model(self, tally: Tally, context: Context) -> TabularMDP:
        """Return the induced MDP of a cell; with known transitions an unknown pair pays 1, and leads where it leads."""
        model, known = super()._model(tally, context), tally.counts.sum(axis=2) >= self.visits
        if self.learns_transitions:
            return induced_mdp(self.space, model.transitions, model.rewards, known)
        rewards = np.where(known, model.rewards, 1.0) if self.learns_rewards else model.rewards
        return self.space.mdp(transitions=model.transitions, rewards=rewards)

    def _add(self, tally: Tally, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Count the visits of pairs that are not known."""
        steps = zip(trajectory.states[:-1], trajectory.actions, trajectory.next_states, rewards, strict=True)
        for state, action, next_state, reward in steps:
            if tally.counts[state, action].sum() < self.visits:
                tally.counts[state, action, next_state] += 1.0
                tally.rewards[state, action] += reward
