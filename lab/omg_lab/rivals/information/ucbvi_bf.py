"""UCBVI-BF (Azar, Osband and Munos, ICML 2017), one table per cell of contexts: UCBVI with bonuses by variance.

With N the visits of (s, a), N' those of a next state and L = log(5·S·A·H·t/δ) in episode t,

    Q_h = r̂ + P̂·V_{h+1} + √(8L/N)·(√Var_P̂(V_{h+1}) + √(r̂(1 - r̂))) + (14/3)·H·L/N
                        + √((8/N)·Σ_s' P̂(s')·min(100²·H³S²A·L²/N'(s'), H²)),

V_h = max_a Q_h, clipped to what can be earned. Bernstein's first two terms hold for V*; the last pays for the variance
of V in the place of that of V*. The three numbers (8, 14/3, 100²) come from notes and are not certain; they are
`constants`. The regret of the paper is of order √(HSA·HT) + H²S²A for T episodes, up to logarithms and if HT is large
enough: √H less than with Hoeffding's bonus.

Where this differs: the paper knows the rewards; here r + V(s') is what Bernstein's inequality is for, and the standard
deviation of a sum is at most the sum of both. It counts visits of s' at step h + 1; here they are counted over all
steps, like those of pairs, as the model is stationary. It never lets Q grow from one episode to the next; here Q may. H
in the bonus is the range of values, as for `UCBVI`. Nothing is proven for these changes; `MVP` has a bonus of the same
kind that is. Optimism is tested, and that without variance the bonus falls like 1/N.
"""

from __future__ import annotations

import math
from typing import Unpack, final

import numpy as np

from omg_cmdp.agents.base import Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_number, probability
from omg_lab.rivals.cells import CellLearner, Tally
from omg_lab.rivals.covers import Cover
from omg_lab.rivals.information.mvp import optimistic_plan, three_constants

PRINTED = (8.0, 14.0 / 3.0, 1e4)


@final
class UCBVIBF(CellLearner):
    """UCBVI with bonuses by the variance of values, of Bernstein's kind; `cover` says which contexts share a cell.

    `scale` multiplies the bonus, the constant to tune. `constants` are 8, 14/3 and 100² above; `delta` is δ.
    """

    settings = ("cover", "scale", "constants", "delta")

    def __init__(
        self,
        space: Space,
        cover: Cover,
        *,
        scale: float = 1.0,
        constants: tuple[float, float, float] = PRINTED,
        delta: float = 0.05,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, cover, **ranges)
        self.scale = positive_number("scale", scale)
        self.constants = three_constants(constants)
        self.delta = probability("delta", delta)

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, optimal with the bonuses."""
        tally = self.tally(context)
        return Decision(policy=self._plan(tally)[0], model=self._model(tally))

    def optimistic_values(self, context: Context) -> FloatArray:
        """Return V, (H + 1, S)."""
        return self._plan(self.tally(context))[1]

    def _plan(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        model, visits = self._model(tally), tally.counts.sum(axis=2)
        states, actions, horizon = self.space.states, self.space.actions, self.space.horizon
        logarithm = math.log(5.0 * states * actions * horizon * (self.episodes_seen + 1) / self.delta)
        by_variance, by_range, by_visits = self.constants
        span, tried = self.value_bounds.span, np.maximum(visits, 1.0)
        roots = self.scale * np.sqrt(by_variance * logarithm / tried)
        visited = by_visits * horizon * (states * logarithm) ** 2 * actions / np.maximum(visits.sum(axis=1), 1.0)
        unsure = model.transitions @ np.minimum(visited, 1.0)
        bonus = roots * np.sqrt(model.rewards * (1.0 - model.rewards))
        bonus += self.scale * span * (by_range * logarithm / tried + np.sqrt(by_variance * unsure / tried))
        widest = roots * (0.5 + 0.5 * span) + self.scale * span * (by_range * logarithm + math.sqrt(by_variance))
        base = np.where(visits > 0.0, model.rewards + bonus, horizon + widest)
        return optimistic_plan(self, model, base, np.where(visits > 0.0, roots, 0.0))
