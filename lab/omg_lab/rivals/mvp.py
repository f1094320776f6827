"""MVP, monotonic value propagation (Zhang, Ji and Du, COLT 2021), one table per cell of contexts.

Each pair (s, a) has what was seen of it when its number of visits last passed a power of two: n visits, the mean reward
r̂ and the frequencies P̂. Between these moments the plan does not change, so that in T episodes a cell is planned at
most S·A·(1 + log₂(HT)) times. Values are clipped to what can be earned, of which B is the range (H, without a
`return_range`; less where rewards or transitions are known, as in `ucbvi.py`):

    Q_h = r̂ + P̂·V_{h+1} + c₁·√(Var_P̂(V_{h+1})·ι/n) + c₂·√(r̂·ι/n) + c₃·B·ι/n,    V_h = max_a Q_h, clipped,
    ι = log(4·S·A·(H + 1)·n²/δ).

The paper has B = 1, a regret of order (√(SAT) + S²A) up to logarithms, whatever H, and the constants (460/9, 2√2,
544/9) of the default. Its ι is one number that knows how many episodes there will be; ours needs no such number. Its
tables are renewed within an episode, from what was seen since the last time; here that happens at the end of an
episode, with all that was seen.

Proven here: with c₁ = 3.4, c₂ = 2, c₃ = 17 (or more, if c₃ >= c₁² + 14/3) values are optimistic, V_h >= V*_h in every
episode, with probability 1 - δ, in a cell that is an MDP.

1. *Monotone.* g(v) = P̂·v + max(c·√(Var_P̂(v)·ι/n), c²·B·ι/n) does not decrease in any v(s') for v of range at most B:
   where the first is larger, √Var >= c·B·√(ι/n), and its slope is at least P̂(s')·(1 - c·√(ι/n)·B/√Var) >= 0.
2. *Concentration.* By the empirical Bernstein inequality (Maurer and Pontil 2009), with n - 1 >= n/2, except with
   probability δ in all for any (h, s, a, n >= 2),

       (P - P̂)·V*_{h+1} <= 2·√(Var_P̂(V*)·ι/n) + (14/3)·B·ι/n,    f - r̂ <= 2·√(r̂·ι/n) + (14/3)·B·ι/n,

   since rewards in [0, 1] have variance at most r̂. With x and y for the two terms, max(c·x, c²·y) >= 2x + (c² - 2c)·y,
   and c² - 2c >= 14/3 at c = 3.4.
3. So V_{h+1} >= V*_{h+1} gives Q_h >= r̂ + 2·√(r̂ι/n) + (14/3)·B·ι/n + g(V_{h+1}) >= f + g(V*_{h+1}) >= f + P·V*_{h+1}.
   With n = 1 the bonus alone is above B, with n = 0 more than any tried pair can be worth.

Source: the pseudo-code with its constants is Algorithm 1 of Zhang, Chen, Lee and Du, *Settling the sample complexity of
online reinforcement learning* (COLT 2024), which takes the algorithm over for transitions that depend on the step.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.cells import Tally
from omg_lab.rivals.declared import Option, numbers_of
from omg_lab.rivals.ucbvi import BernsteinOptimist

PUBLISHED = (460.0 / 9.0, 2.0 * math.sqrt(2.0), 544.0 / 9.0)


@final
class MVP(BernsteinOptimist):
    """Monotonic value propagation: bonuses by variance, and a new plan only when the visits of a pair have doubled.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    cover : Cover
        Which contexts share a cell: `Blind()`, `PerContext()` or `PerBall(radius)`.
    scale : float
        A factor of the whole bonus, to be tuned; 1 by default.
    constants : tuple of three floats
        The numbers c₁, c₂ and c₃ of the bonus; by default 460/9, 2√2 and 544/9, as published.
    delta : float
        The probability δ with which optimism may fail, 0.05 by default.
    known_rewards, known_transitions : function, optional
        From a context to the true tables, (S, A) and (S, A, S), where they are known; by default both are learned.
    reward_range, return_range
        As for every `Learner`.

    >>> import omg_cmdp as omg
    >>> from omg_lab.rivals import MVP, PerContext
    >>> MVP(omg.Space(states=2, actions=2, horizon=3), PerContext(), scale=0.001).policy("anyone").shape
    (3, 2, 2)
    """

    _: dataclasses.KW_ONLY
    constants: Option[tuple[float, float, float], tuple[float, ...]] = Option(numbers_of(3), PUBLISHED)

    def _bonuses(self, tally: Tally, model: TabularMDP) -> tuple[FloatArray, FloatArray]:
        visits = tally.counts[1].sum(axis=2)
        by_variance, by_reward, by_range = (self.scale * constant for constant in self.constants)
        by_variance, by_reward = by_variance * self.learns_transitions, by_reward * self.learns_rewards
        tried, width = np.maximum(visits, 1.0), self.width
        pairs = self.space.states * self.space.actions
        shares = np.log(4.0 * pairs * (self.space.horizon + 1) * tried**2 / self.delta) / tried  # ι/n falls in n
        bonus = by_reward * np.sqrt(model.rewards * shares) + by_range * width * shares
        widest = (by_reward + 0.5 * by_variance * width) * np.sqrt(shares) + by_range * width * shares
        base = model.rewards + np.where(visits > 0.0, bonus, self.hope + widest)
        return base, np.where(visits > 0.0, by_variance * np.sqrt(shares), 0.0)

    def _empty_tally(self) -> Tally:
        """Return two tables of each kind: all that was seen, and what the plan knows of it."""
        counts, rewards = super()._empty_tally()
        return Tally(np.stack([counts, counts]), np.stack([rewards, rewards]))

    def _add(self, tally: Tally, trajectory: Trajectory, rewards: FloatArray) -> None:
        before = tally.counts[0].sum(axis=2)
        super()._add(Tally(tally.counts[0], tally.rewards[0]), trajectory, rewards)
        doubled = np.frexp(tally.counts[0].sum(axis=2))[1] > np.frexp(before)[1]
        for tables in tally:
            tables[1][doubled] = tables[0][doubled]

    def _model(self, tally: Tally, context: Context) -> TabularMDP:
        return super()._model(Tally(tally.counts[1], tally.rewards[1]), context)
