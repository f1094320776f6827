"""UCBVI (Azar, Osband and Munos, ICML 2017), one table per cell of contexts: what can be done without generalisation.

Each cell of a cover has counts N(s, a, s') and mean rewards f̂(s, a). An episode in a cell is planned with P̂ = N(s, a,
s')/N(s, a) and a bonus of Hoeffding's kind,

    Q_h = f̂ + P̂·V_{h+1} + c·H·√(L/N),   V_h = min(H - h, max_a Q_h),   L = log(5·S·A·H·t/δ),

where t is the episode; a pair with N = 0 gets more than any tried pair can be worth. The model is stationary. With a
`return_range` values are clipped to what it leaves, and the H of the bonus is their range.

Theory. f̂ + P̂·V*_{h+1} is the mean of N independent numbers in [0, H]: by Hoeffding's inequality the bonus with c = 1
covers its error except with probability exp(-2L) for each (h, s, a, N), in all H·δ²/(15·S·A) at most. Otherwise, in a
cell that is an MDP, V_0 >= V* in every episode. The paper prints 7·H·L/√N, that is c = 7·√L, and for a single MDP the
regret 20·L·√(H³·S·A·T) + 250·H²·S²·A·L² (both from notes, not certain); on K cells it grows by √K. A cell that holds
different MDPs has no guarantee: blind UCBVI has linear regret where contexts disagree about what is best.
"""

from __future__ import annotations

import math
from typing import Unpack, final

import numpy as np

from omg_cmdp.agents.base import Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.mdp.space import Space
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, float_table, in_range, positive_number, probability
from omg_lab.rivals.cells import CellLearner
from omg_lab.rivals.covers import Cover


@final
class UCBVI(CellLearner):
    """Optimistic value iteration on the counts of a context's cell; `cover` says which contexts share one.

    `scale` is c, the constant to tune: 1 is the theory's, smaller ones such as 0.05 do better. `delta` is δ.
    """

    settings = ("cover", "scale", "delta")

    def __init__(
        self,
        space: Space,
        cover: Cover,
        *,
        scale: float = 1.0,
        delta: float = 0.05,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, cover, **ranges)
        self.scale = positive_number("scale", scale)
        self.delta = probability("delta", delta)

    def decide(self, context: Context) -> Decision:
        """Return an optimal policy, deterministic, of the cell's model with bonuses."""
        tally = self.tally(context)
        model = self._model(tally)
        optimistic = model.rewards + self.bonus(tally.counts.sum(axis=2))
        return Decision(policy=best_response(model, optimistic[None], bounds=self.value_bounds)[0], model=model)

    def bonus(self, visits: FloatArray) -> FloatArray:
        """Return c·H·√(L/N) for N = `visits`; where N = 0, more than any tried pair can be worth."""
        visits = float_table("visits", visits)
        in_range("visits", visits, 0.0, np.inf)
        states, actions, horizon = self.space.states, self.space.actions, self.space.horizon
        logarithm = math.log(5.0 * states * actions * horizon * (self.episodes_seen + 1) / self.delta)
        widest = self.scale * self.value_bounds.span * math.sqrt(logarithm)
        return np.where(visits > 0.0, widest / np.sqrt(np.maximum(visits, 1.0)), horizon + widest)
