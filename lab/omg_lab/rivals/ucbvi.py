"""UCBVI and UCBVI-BF (Azar, Osband and Munos, ICML 2017), one table per cell of contexts: no generalisation.

Each cell of a cover has counts N(s, a, s') and mean rewards f̂(s, a). An episode in a cell is planned with P̂ = N(s, a,
s')/N(s, a) and a bonus, in episode t with L = log(5·S·A·H·t/δ); V_h = max_a Q_h is clipped to what can be earned:

    UCBVI       Q_h = f̂ + P̂·V_{h+1} + c·H·√(L/N)                                                  (Hoeffding)
    UCBVI-BF    Q_h = f̂ + P̂·V_{h+1} + √(8L/N)·(√Var_P̂(V_{h+1}) + √(f̂(1 - f̂))) + (14/3)·H·L/N     (Bernstein)
                        + √((8/N)·Σ_s' P̂(s')·min(100²·H³S²A·L²/N(s'), H²))

A pair with N = 0 gets more than any tried pair can be worth. The model is stationary. With a `return_range` values are
clipped to what it leaves, and the H of the bonus is their range. Where rewards are known they are not estimated, and H
is the range of V_{h+1} alone; where transitions are known it is that of r, 1, and the terms with V are not there.

Theory. f̂ + P̂·V*_{h+1} is the mean of N independent numbers in [0, H]: by Hoeffding's inequality the bonus with c = 1
covers its error except with probability exp(-2L) for each (h, s, a, N), in all H·δ²/(15·S·A) at most. Otherwise, in a
cell that is an MDP, V_0 >= V* in every episode. The paper prints 7·H·L/√N, that is c = 7·√L, and for a single MDP the
regret 20·L·√(H³·S·A·T) + 250·H²·S²·A·L² (not confirmed); on K cells it grows by √K. A cell that holds different MDPs
has no guarantee: blind UCBVI has linear regret where contexts disagree about what is best.

Bernstein's first two terms hold for V*; the last pays for the variance of V in the place of that of V*. The paper's
regret is of order √(HSA·HT) + H²S²A, if HT is large enough: √H less than with Hoeffding's bonus. Where this differs:
the paper knows rewards, counts visits of s' at step h + 1, and never lets Q grow from one episode to the next. Here
r + V(s') is what Bernstein's inequality is for, visits are those of all steps, and Q may grow. Nothing is proven for
these changes; optimism is tested, and that without variance the bonus falls like 1/N.

Source: the pseudo-code of UCBVI is in the project's theory notes (§8); that of UCBVI-BF, with its three constants, was
read in public code.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, float_table, in_range, positive_number, probability
from omg_lab.rivals.cells import CellRival, Tally
from omg_lab.rivals.declared import Option, numbers_of
from omg_lab.rivals.optimism import optimistic_plan


class Optimist(CellRival):
    """An agent on the counts of a context's cell that adds a bonus of size `scale` and fails with probability δ."""

    _: dataclasses.KW_ONLY
    scale: Option[float, float] = Option(positive_number, 1.0)
    delta: Option[float, float] = Option(probability, 0.05)

    def logarithm(self) -> float:
        """Return L of the next episode."""
        pairs = 5.0 * self.space.states * self.space.actions
        return math.log(pairs * self.space.horizon * (self.episodes_seen + 1) / self.delta)


class Hoeffding(Optimist):
    """An agent with Hoeffding's bonus."""

    def bonus(self, visits: FloatArray) -> FloatArray:
        """Return c·H·√(L/N) for N = `visits`, H the `width`; where N = 0, more than any tried pair can be worth."""
        visits = float_table("visits", visits)
        in_range("visits", visits, 0.0, np.inf)
        widest = self.scale * self.width * math.sqrt(self.logarithm())
        return np.where(visits > 0.0, widest / np.sqrt(np.maximum(visits, 1.0)), self.hope + widest)


@final
class UCBVI(Hoeffding):
    """Optimistic value iteration with Hoeffding's bonus on the counts of a context's cell.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    cover : Cover
        Which contexts share a cell: `Blind()`, `PerContext()` or `PerBall(radius)`.
    scale : float
        The constant c of the bonus, to be tuned: 1, the default, is the theory's; smaller ones such as 0.05 do better.
    delta : float
        The probability δ with which optimism may fail, 0.05 by default.
    known_rewards, known_transitions : function, optional
        From a context to the true tables, (S, A) and (S, A, S), where they are known; by default both are learned.
    reward_range, return_range
        As for every `Learner`.

    >>> import omg_cmdp as omg
    >>> from omg_lab.rivals import PerContext, UCBVI
    >>> agent = UCBVI(omg.Space(states=2, actions=2, horizon=3), PerContext(), scale=0.1)
    >>> agent.policy("anyone").shape
    (3, 2, 2)
    """

    def decide(self, context: Context) -> Decision:
        """Return an optimal policy, deterministic, of the cell's model with bonuses."""
        tally = self.tally(context)
        model = self._model(tally, context)
        optimistic = model.rewards + self.bonus(tally.counts.sum(axis=2))
        return Decision(policy=best_response(model, optimistic[None], bounds=self.value_bounds)[0], model=model)


class BernsteinOptimist(Optimist):
    """An agent whose bonus has three constants and grows with the variance of the values that follow."""

    _: dataclasses.KW_ONLY
    constants: Option[tuple[float, float, float], tuple[float, ...]]
    """Those of the paper are the default."""

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, optimal with the bonuses."""
        tally = self.tally(context)
        model = self._model(tally, context)
        return Decision(policy=self._plan(tally, model)[0], model=model)

    def optimistic_values(self, context: Context) -> FloatArray:
        """Return V, (H + 1, S)."""
        tally = self.tally(context)
        return self._plan(tally, self._model(tally, context))[1]

    def _plan(self, tally: Tally, model: TabularMDP) -> tuple[FloatArray, FloatArray]:
        """Return a policy (H, S, A), optimal for Q = base + P̂·V + roots·√Var(V), and its values (H + 1, S)."""
        base, roots = self._bonuses(tally, model)
        transitions = model.transitions

        def spread(values: FloatArray) -> FloatArray:
            off = values - (transitions @ values)[:, :, None]
            return np.asarray(roots * np.sqrt((transitions * off**2).sum(axis=2)))

        return optimistic_plan(model, base, spread, self.value_bounds)

    @abc.abstractmethod
    def _bonuses(self, tally: Tally, model: TabularMDP) -> tuple[FloatArray, FloatArray]:
        """Return `base`, rewards with what of the bonus is known before values are, and `roots`, (S, A) each."""


@final
class UCBVIBF(BernsteinOptimist):
    """UCBVI with bonuses by the variance of values, of Bernstein's kind.

    Parameters
    ----------
    space, cover, delta
        As for `UCBVI`.
    scale : float
        A factor of the whole bonus, to be tuned; 1 by default.
    constants : tuple of three floats
        The numbers of the bonus; by default 8, 14/3 and 100², as published.
    known_rewards, known_transitions : function, optional
        From a context to the true tables, (S, A) and (S, A, S), where they are known; by default both are learned.
    reward_range, return_range
        As for every `Learner`.

    >>> import omg_cmdp as omg
    >>> from omg_lab.rivals import Blind, UCBVIBF
    >>> UCBVIBF(omg.Space(states=2, actions=2, horizon=3), Blind(), scale=0.01).policy("anyone").shape
    (3, 2, 2)
    """

    _: dataclasses.KW_ONLY
    constants: Option[tuple[float, float, float], tuple[float, ...]] = Option(numbers_of(3), (8.0, 14.0 / 3.0, 1e4))

    def _bonuses(self, tally: Tally, model: TabularMDP) -> tuple[FloatArray, FloatArray]:
        visits, logarithm = tally.counts.sum(axis=2), self.logarithm()
        states, actions, horizon = self.space.states, self.space.actions, self.space.horizon
        by_variance, by_range, by_visits = self.constants
        span, tried = self.value_bounds.span, np.maximum(visits, 1.0)
        roots = self.scale * np.sqrt(by_variance * logarithm / tried)
        visited = by_visits * horizon * (states * logarithm) ** 2 * actions / np.maximum(visits.sum(axis=1), 1.0)
        unsure = self.learns_transitions * (model.transitions @ np.minimum(visited, 1.0))
        bonus = self.learns_rewards * roots * np.sqrt(model.rewards * (1.0 - model.rewards))
        bonus += self.scale * (self.width * by_range * logarithm / tried + span * np.sqrt(by_variance * unsure / tried))
        following = self.learns_transitions * span
        widest = 0.5 * roots * (self.learns_rewards + following)
        widest += self.scale * (self.width * by_range * logarithm + following * math.sqrt(by_variance))
        base = model.rewards + np.where(visits > 0.0, bonus, self.hope + widest)
        return base, np.where(visits > 0.0, self.learns_transitions * roots, 0.0)
