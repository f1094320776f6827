"""The contract of oracles: online regressors of rewards, or of dynamics, that learn one whole episode at a time."""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.draws import Streams, rewards_around, rows_around
from omg_cmdp.persistence import State
from omg_cmdp.recipes.recipe import Made, episodes_in_words, given_arguments, shown_arguments
from omg_cmdp.validation import ROW_SUM_TOLERANCE, FloatArray, whole_number


class Oracle(Made, abc.ABC):
    """The contract of both kinds of oracles: predict, update, tell an uncertainty and a bound. The rest is optional."""

    takes_keyed: ClassVar[bool] = False
    """Whether a context may come with its key, and a call with it be trusted: for oracles of the library."""
    surely_learns: bool = False
    """Whether `update` takes every episode of a context that `predict` has answered, and whose steps `check_steps` has
    let pass: then it never has to be undone."""
    loss: float = math.nan
    """The total loss of the predictions made so far; nan if the oracle does not keep it."""
    episodes: int | None = None
    """The number of episodes learned from; None if the oracle does not count them."""
    horizon: int | None = None
    """The number of steps H that an episode has at most; None if the oracle takes episodes of any length."""
    sizes: tuple[int, int] | None = None
    """The numbers of states and actions, by which an agent sees that the oracle fits; None if they are not declared."""
    contexts: tuple[Context, ...] | None = None
    """The contexts that the oracle can be asked about, where these are listed; None if any may come."""
    product_class: ClassVar[bool] = False
    """Whether a member of the class may choose one of `functions` for every context and state."""

    def __repr__(self) -> str:
        loss = f", loss {self.loss:.4g}" if self.episodes else ""
        learned = "" if self.episodes is None else f" after {episodes_in_words(self.episodes)}{loss}"
        return f"{type(self).__name__}({shown_arguments(self)}){learned}"

    @abc.abstractmethod
    def uncertainty(self, context: Context) -> FloatArray:
        """Return (S, A): the oracle's own estimate of E(f* - f̂)², or of E[D²(P*, P̂)], for what `predict` returns."""

    @abc.abstractmethod
    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return a bound on the loss minus the best loss, proven for any contexts and outcomes; or `math.inf`."""

    def delayed_regret_bound(self, episodes: int, horizon: int, delay: int, *, constant: bool = False) -> float:
        """Return a bound on the same if outcomes come late; or `math.inf`.

        The loss is that of the predictions with which episodes were played.

        Parameters
        ----------
        episodes, horizon : int
            The number of episodes T, and the number of their steps H.
        delay : int
            The number of other updates that may lie between a prediction and its own.
        constant : bool, default False
            Whether that number is always `delay` after the first episodes, so that outcomes come in order.
        """
        return self.regret_bound(episodes, horizon) if whole_number("delay", delay) == 0 else math.inf

    @abc.abstractmethod
    def draws(self, context: Context, count: int, generator: np.random.Generator) -> FloatArray:
        """Return (count, ...): tables like that of `predict`, drawn from what is plausible now. Pure.

        Both kinds of oracles have one that needs only `predict` and `uncertainty`.
        """

    def draws_from(self, context: Context, streams: Streams) -> FloatArray:
        """Return (count, ...): the same for an agent that draws in every episode, by the numbers of `streams`.

        Those of the library are the same for some episodes, as far as nothing was learned. By default these are new
        `draws` in every episode.
        """
        drawn = np.ascontiguousarray(self.draws(context, streams.count, streams.generator), dtype=np.float64)
        if drawn.size and not (drawn.min() >= 0.0 and drawn.max() <= 1.0 + ROW_SUM_TOLERANCE):  # nor is nan
            raise ValueError(f"`draws` must lie in [0, 1], got numbers from {drawn.min()} to {drawn.max()}")
        return drawn

    def check_steps(self, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike) -> None:
        """Raise if `update` would refuse these steps because they cannot happen. Pure; by default all can."""

    def best_loss(self) -> float:
        """Return the total loss of the best function in hindsight; nan where that cannot be computed."""
        return math.nan

    def functions(self, context: Context) -> FloatArray | None:
        """Return the tables of all N functions of the class at a context, (N, ...); None where they are not listed.

        They must not change. An audit computes from them what it does not take on trust: the best loss of the class,
        and how far it is from the truth.
        """
        return None

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, as arrays of numbers and text."""
        raise NotImplementedError(f"{type(self).__name__} cannot be saved: it needs `state` and `load_state`")

    def load_state(self, state: State) -> None:
        """Load a state saved by an oracle with the same settings; learning continues bit for bit."""
        raise NotImplementedError(f"{type(self).__name__} cannot load a state")


def given_sizes(oracle: Oracle) -> tuple[int, int] | None:
    """Return S and A of an oracle that was made with both; None if it was not."""
    given = given_arguments(oracle)
    return (given["states"], given["actions"]) if {"states", "actions"} <= set(given) else None


class RewardOracle(Oracle):
    """An online regressor of mean rewards, judged by Σ (f̂ - r)² over the steps of all episodes.

    One of your own needs `predict`, `update`, `uncertainty` and `regret_bound`; `omg_cmdp.checks.check_oracle` tells
    whether it keeps the contract.

    Examples
    --------
    >>> class Halves(RewardOracle):
    ...     def predict(self, context):
    ...         return np.full((1, 2), 0.5)
    ...     def update(self, context, states, actions, rewards):
    ...         pass
    ...     def uncertainty(self, context):
    ...         return np.full((1, 2), 0.25)
    ...     def regret_bound(self, episodes, horizon):
    ...         return math.inf
    >>> Halves().draws("any", 1000, np.random.default_rng(0)).mean(axis=0).round(1)
    array([[0.5, 0.5]])
    """

    @abc.abstractmethod
    def predict(self, context: Context) -> FloatArray:
        """Return (S, A) or (H, S, A), in [0, 1]. Pure: asking changes nothing, from however many threads."""

    def draws(self, context: Context, count: int, generator: np.random.Generator) -> FloatArray:
        """Return (count, ...): N(f̂, u) for each pair, cut to [0, 1]."""
        return rewards_around(self.predict(context), self.uncertainty(context), Streams.fresh(count, generator))

    @abc.abstractmethod
    def update(self, context: Context, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from one whole episode, H entries each."""


class DynamicsOracle(Oracle):
    """An online forecaster of transitions, judged by Σ -log(P̂(s'|s, a) + 1e-150) over the steps of all episodes.

    One of your own needs `predict`, `update`, `uncertainty` and `regret_bound`; `omg_cmdp.checks.check_oracle` tells
    whether it keeps the contract.

    Examples
    --------
    >>> class Anywhere(DynamicsOracle):
    ...     def predict(self, context):
    ...         return np.full((2, 1, 2), 0.5)
    ...     def update(self, context, states, actions, next_states):
    ...         pass
    ...     def uncertainty(self, context):
    ...         return np.full((2, 1), 0.1)
    ...     def regret_bound(self, episodes, horizon):
    ...         return math.inf
    >>> Anywhere().draws("any", 3, np.random.default_rng(0)).shape
    (3, 2, 1, 2)
    """

    @abc.abstractmethod
    def predict(self, context: Context) -> FloatArray:
        """Return (S, A, S) or (H, S, A, S), rows on the simplex. Pure: asking changes nothing, as for rewards."""

    def draws(self, context: Context, count: int, generator: np.random.Generator) -> FloatArray:
        """Return (count, ...): rows from the Dirichlet distribution with mean P̂ for which E[D²] is about u."""
        return rows_around(self.predict(context), self.uncertainty(context), Streams.fresh(count, generator))

    @abc.abstractmethod
    def update(self, context: Context, states: ArrayLike, actions: ArrayLike, next_states: ArrayLike) -> None:
        """Learn from one whole episode, H entries each."""
