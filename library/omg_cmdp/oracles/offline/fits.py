"""Offline oracles: the empirical risk minimiser over all past episodes, as a *fit* that can be kept.

    rewards    f̂ = argmin Σ (f - r)²           least squares
    dynamics   P̂ = argmin Σ -log P(s'|s, a)    maximum likelihood

This is what algorithms for stochastic contexts ask for (UC³RL, RM-UCDD, FALCON). An adversary can choose the
outcomes against a forecaster that follows the leader, so nothing is proven and `regret_bound` is inf. What holds for
`OfflineFiniteRewards` and `OfflineFiniteDynamics` is *in-sample*. If the truth is among the N functions and rewards lie
in [0, 1], then with probability 1 - δ, after any number of episodes and for any choice of contexts and actions, summed
over all past (c, s, a),

    Σ (f̂ - f*)² <= 2·log(N/δ),     Σ D²(P*, P̂) <= 2·log(N/δ).

Proof. For every f, g = f - f* and ε = r - f*, exp(2Σεg - ½Σg²) is a supermartingale (ε has range 1), so that by Ville's
inequality 2Σεg <= ½Σg² + log(N/δ) for all f and t at once; and Σg² <= 2Σεg for the minimiser. For every P,
exp(½Σ log P/P* + ½Σ D²) is one, because E√(P/P*) = 1 - ½D² <= exp(-½D²); and Σ log P̂/P* >= 0. ∎ (The 1e-150 of log
loss adds 2e-75·√S for each example: docs/oracles.md, *What a forecast excludes*.)

The fits are refitted after every episode, incrementally:

    finite     the loss of each of the N functions is kept           O(N) numbers, O(N·H) an episode
    linear     the normal equations are kept, as a root R            O(S·A·d²) numbers, O(H·d²) and S·A small solves
    softmax    one line of counts for each (z, s, a) seen is kept    at most min(T·H, |C|·S·A) lines of d + S numbers;
               Newton's method from the fit before, for the pairs    O(S²d²) for each line of these pairs, and O(S³d³),
               that the episode visited                              times one to three steps
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.combined.composite import Composite
from omg_cmdp.oracles.frame import Frame
from omg_cmdp.oracles.losses import Examples, Loss
from omg_cmdp.validation import FloatArray, float_table, in_range, one_of_shapes


@runtime_checkable
class Offline(Protocol):
    """An oracle that predicts by one member of its class, the *fit*: `predict(c)` is `predict_with(parameters(), c)`.

    Keep `parameters()` to ask later what an earlier fit predicts for a context that was not known then.

    Examples
    --------
    >>> from omg_cmdp.oracles import OfflineFiniteRewards
    >>> isinstance(OfflineFiniteRewards({"c": [[[0.2]], [[0.6]]]}, horizon=1), Offline)
    True
    """

    def parameters(self) -> FloatArray:
        """Return the fit as an array of numbers, always of one shape."""

    def predict_with(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return what the fit `parameters` predicts, a table like that of `predict`."""


def current_fit(self: Frame[Any]) -> FloatArray:
    """Return the fit as an array of numbers: the `parameters` of an offline oracle."""
    return np.array(self.forecasters.fit)


def predict_with_fit(self: Frame[Any], parameters: FloatArray, context: Context) -> FloatArray:
    """Return what the fit `parameters` predicts: the `predict_with` of an offline oracle."""
    return np.array(self.forecasters.table_of(parameters, self.forecasters.prepare(context)))


class Fitted(Composite):
    """A fit, and beside it the online oracle of the same class, which learns the same and knows its uncertainty."""

    learned: ClassVar[tuple[str, ...]] = ("fit",)
    fit: FloatArray

    def __init__(self, online: Any, loss: Loss) -> None:
        super().__init__([online], loss, online.horizon)
        self.online = online

    @abc.abstractmethod
    def table_of(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return what the fit `parameters` predicts."""

    def forecasts(self, context: Context) -> FloatArray:
        """Return the table of the fit."""
        return self.table_of(self.fit, context)[None]

    def learn(self, context: Context, episode: Examples) -> None:
        """Let the online oracle learn; a subclass then improves the fit."""
        self.online.update(context, episode.states, episode.actions, episode.outcomes)

    def expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        """Return the online oracle's uncertainty, and how far its prediction is from the fit's."""
        # The fit has no posterior of its own; the online oracle has seen the same examples.
        moved = self.loss.divergence(self.online.predict(context), prediction)
        return np.asarray(self.online.uncertainty(context) + moved)

    def draws(self, context: Context, count: int, generator: np.random.Generator) -> FloatArray:
        """Return draws of the online oracle."""
        return np.asarray(self.online.draws(context, count, generator))

    def best_loss(self) -> float:
        """Return the best loss of the online oracle."""
        return float(self.online.best_loss())


def checked_fit(parameters: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return `parameters`, if they are a fit of `shape`: finite numbers."""
    table = float_table("parameters", parameters)
    one_of_shapes("parameters", table, shape)
    in_range("parameters", table, -np.inf, np.inf)
    return table
