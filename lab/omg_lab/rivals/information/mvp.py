"""MVP, monotonic value propagation (Zhang, Ji and Du, COLT 2021), one table per cell of contexts.

Each pair (s, a) has what was seen of it when its number of visits last passed a power of two: n visits, the mean reward
r̂ and the frequencies P̂. Between these moments the plan does not change, so that in T episodes a cell is planned at
most S·A·(1 + log₂(HT)) times. Values are clipped to what can be earned, of which B is the range (H, without a
`return_range`):

    Q_h = r̂ + P̂·V_{h+1} + c₁·√(Var_P̂(V_{h+1})·ι/n) + c₂·√(r̂·ι/n) + c₃·B·ι/n,    V_h = max_a Q_h, clipped,
    ι = log(4·S·A·(H + 1)·n²/δ).

The paper has B = 1, a regret of order (√(SAT) + S²A) up to logarithms, whatever H, and the constants (460/9, 2√2,
544/9) of the default; constants and what its ι holds come from notes and are not certain. Its tables are renewed within
an episode and its rewards are those since the last time; here both happen at the end of an episode, with all rewards.

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
"""

from __future__ import annotations

import math
from typing import Unpack, final

import numpy as np

from omg_cmdp.agents.base import Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.episode import Trajectory
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_number, probability
from omg_lab.rivals.cells import CellLearner, Tally
from omg_lab.rivals.covers import Cover

compiled = Lazy("omg_lab.rivals.compiled.bernstein")

PRINTED = (460.0 / 9.0, 2.0 * math.sqrt(2.0), 544.0 / 9.0)
"""The paper's c₁, c₂, c₃."""
PROVEN = (3.4, 2.0, 17.0)
"""Those of the proof above."""


@final
class MVP(CellLearner):
    """Optimistic values with bonuses by variance, planned anew when a pair's visits double.

    `cover` says which contexts share a cell. `scale` multiplies the bonus, the constant to tune; `constants` are c₁,
    c₂, c₃, and `delta` is δ.
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
        model, visits = self._model(tally), tally.counts[1].sum(axis=2)
        by_variance, by_reward, by_range = (self.scale * constant for constant in self.constants)
        tried, span = np.maximum(visits, 1.0), self.value_bounds.span
        pairs = self.space.states * self.space.actions
        shares = np.log(4.0 * pairs * (self.space.horizon + 1) * tried**2 / self.delta) / tried  # ι/n falls in n
        bonus = by_reward * np.sqrt(model.rewards * shares) + by_range * span * shares
        widest = (by_reward + 0.5 * by_variance * span) * np.sqrt(shares) + by_range * span * shares
        base = np.where(visits > 0.0, model.rewards + bonus, self.space.horizon + widest)
        return optimistic_plan(self, model, base, np.where(visits > 0.0, by_variance * np.sqrt(shares), 0.0))

    def _empty_tally(self, cell: int) -> Tally:
        """Return two tables of each kind: all that was seen, and what the plan knows of it."""
        counts, rewards = super()._empty_tally(cell)
        return Tally(np.stack([counts, counts]), np.stack([rewards, rewards]))

    def _add(self, tally: Tally, trajectory: Trajectory, rewards: FloatArray) -> None:
        before = tally.counts[0].sum(axis=2)
        super()._add(Tally(tally.counts[0], tally.rewards[0]), trajectory, rewards)
        doubled = np.frexp(tally.counts[0].sum(axis=2))[1] > np.frexp(before)[1]
        for tables in tally:
            tables[1][doubled] = tables[0][doubled]

    def _model(self, tally: Tally) -> TabularMDP:
        return super()._model(Tally(tally.counts[1], tally.rewards[1]))


def three_constants(given: tuple[float, float, float]) -> tuple[float, ...]:
    """Return the constants of a bonus, checked."""
    if not isinstance(given, tuple | list) or len(given) != 3:
        raise ValueError(f"`constants` must be three positive numbers, got {given!r:.60}")
    return tuple(positive_number("constants", constant) for constant in given)


def optimistic_plan(
    agent: CellLearner, model: TabularMDP, base: FloatArray, roots: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return a policy (H, S, A), optimal for Q = base + P̂·V + roots·√Var(V), and its values (H + 1, S), clipped."""
    policy = np.empty((model.horizon, model.states, model.actions))
    values = np.empty((model.horizon + 1, model.states))
    kernel, _, _, admissible = model.raw
    compiled.optimistic_response(kernel[0], base, roots, admissible, *agent.value_bounds, policy, values)
    return policy, values
