"""RLSVI on counts (Osband, Van Roy and Wen 2016; Russo 2019), one table per cell of contexts: noise for optimism.

Before each episode every tuple gets noise w ~ N(0, σ²), and the noisy values are maximised. With n the visits of (s,
a),

    Q_h = [Σ r + Σ_s' N(s, a, s')·V_{h+1}(s')]/(n + 1) + w_h(s, a),    V_h = max_a Q_h,    not clipped,
    σ² = β_t/(n + 1),    β_t = ½·S·H³·log(2·H·S·A·t).

For a single MDP whose tables may differ from step to step Russo proves a regret of order H³·S^{3/2}·√(AT), up to
logarithms (β and the order as public summaries have them); Agrawal, Chen and Jiang (2021) prove H²·S·√(A·HT) for a
variant that clips. Here the counts are shared by all steps, as worlds are stationary, and the H² of a value is the
square of its range. Where rewards are known, r stands for Σ r/(n + 1) and the range is that of V_{h+1}; where
transitions are known, P·V for the sum over N and the range is that of r.

Proven here, for any data of a cell that is an MDP: if the estimates err by at most √e where σ² = S·H·e, that is,

    |(Σ r + Σ N·V*_{h+1})/(n + 1) - Q*_h(s, a)| <= √e(s, a)    for all (h, s, a),

then the sampled value is at least V* with probability Φ(-1) = .16 or more. With q the occupancy of π* in the estimated
model, V_0 - V* >= Σ q·(w - √e), where Σ q·w is normal with standard deviation √(Σ q²·S·H·e) >= Σ q·√e, by Cauchy and
Schwarz: π* is deterministic, and q is positive at S·H tuples at most.

Source: the loop (noisy tables, one backward induction, greedy) was read in public code, rlberry's `RLSVIAgent`, whose
noise has another size; β follows Russo (2019) as public summaries have it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.cells import CellRival, Tally
from omg_lab.rivals.declared import Option, finite, seed_value

compiled = Lazy("omg_cmdp.mdp.compiled")


@final
class RLSVI(CellRival):
    """Randomised least-squares value iteration: maximise values with noise that shrinks with the visits of a pair.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    cover : Cover
        Which contexts share a cell: `Blind()`, `PerContext()` or `PerBall(radius)`.
    scale : float
        A factor of the variance β, to be tuned: 1, the default, is the theory's, 0 is greedy.
    seed : int
        Seeds the draws, a function of it and the number of episodes seen, so that asking twice changes nothing.
    known_rewards, known_transitions : function, optional
        From a context to the true tables, (S, A) and (S, A, S), where they are known; by default both are learned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import RLSVI
    >>> from omg_lab.worlds import Decoy
    >>> RLSVI.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    _: dataclasses.KW_ONLY
    scale: Option[float, float] = Option(finite, 1.0)
    seed: Option[int, int] = Option(seed_value, 0)

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, optimal with the noise."""
        tally = self.tally(context)
        return Decision(policy=self._plan(tally, context)[0], model=self._model(tally, context))

    def sampled_values(self, context: Context) -> FloatArray:
        """Return V of the next episode, (H + 1, S)."""
        return self._plan(self.tally(context), context)[1]

    def variances(self, context: Context) -> FloatArray:
        """Return σ², (S, A), the same at every step."""
        return self._variances(self.tally(context))

    def _variances(self, tally: Tally) -> FloatArray:
        states, actions, horizon = self.space.states, self.space.actions, self.space.horizon
        logarithm = math.log(2.0 * horizon * states * actions * (self.episodes_seen + 1))
        beta = 0.5 * states * horizon * self.width**2 * logarithm
        return np.asarray(self.scale * beta / (tally.counts.sum(axis=2) + 1.0))

    def _plan(self, tally: Tally, context: Context) -> tuple[FloatArray, FloatArray]:
        generator = np.random.default_rng((self.seed, self.episodes_seen))
        states, actions, horizon = self.space.states, self.space.actions, self.space.horizon
        weights = tally.counts.sum(axis=2) + 1.0
        noise = np.sqrt(self._variances(tally)) * generator.standard_normal((horizon, states, actions))
        policy, values = np.empty((horizon, states, actions)), np.empty((horizon + 1, states))
        no_bound = np.full(horizon + 1, np.inf)
        # Less than a distribution: what is missing is worth 0.
        transitions = self._told("known_transitions", context, tally.counts / weights[:, :, None])
        rewards = self._told("known_rewards", context, tally.rewards / weights) + noise
        _, admissible = self.space.raw
        compiled.best_response(transitions[None], rewards, admissible, -no_bound, no_bound, policy, values)
        return policy, values
