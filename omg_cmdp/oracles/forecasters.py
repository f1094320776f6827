"""The frame of the package's oracles: a few forecasters, aggregated at a rate that is safe for frozen episodes.

A prediction is frozen for the H steps of an episode. The textbook's rate η is for an update after every example; with
it, an adversary makes the regret of a frozen prediction grow linearly. The rate η/H is safe (docs/oracles.md, Theorem
1): by Hölder's inequality the regret is at most **H times the textbook's bound for T examples**.

    "proven"      the class at rate η/H
    "realizable"  the class at rate η: faster on data that fit the class, no adversarial bound
    "guarded"     both, aggregated at rate η/H: the proven bound plus (H/η)·log 2, and nearly the textbook's speed
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.oracles.base import Context, DynamicsOracle, Oracle, RewardOracle, State, restored
from omg_cmdp.oracles.games import LOG, SQUARE, Episode, Game, exponential_weights
from omg_cmdp.validation import FloatArray, positive_integer

RATES = ("guarded", "proven", "realizable")


class Forecasters(Oracle):
    """K forecasters that learn side by side; their aggregate is the prediction, their losses are the weights."""

    game: ClassVar[Game[Any]]
    learned: ClassVar[tuple[str, ...]] = ()
    """The names of the float arrays that a subclass learns, kept as attributes with a leading underscore."""

    def __init__(self, horizon: int, count: int) -> None:
        self.horizon = positive_integer("horizon", horizon)
        self.loss = 0.0
        self._losses = np.zeros(count)

    @abc.abstractmethod
    def _forecasts(self, context: Context) -> FloatArray:
        """Return (K, ...): each forecaster's table; refuse a bad context."""

    @abc.abstractmethod
    def _learn(self, context: Context, episode: Episode[Any]) -> None:
        """Update the forecasters with a checked episode."""

    @abc.abstractmethod
    def _expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        """Return the posterior mean of the divergence between the truth and `prediction`."""

    def predict(self, context: Context) -> FloatArray:
        """Return the aggregate of the forecasters."""
        return self.game.aggregate(self._weights(), self._forecasts(context))

    def uncertainty(self, context: Context) -> FloatArray:
        """Return the expected divergence of `predict(context)` under the textbook's posterior."""
        return np.maximum(self._expected_divergence(context, self.predict(context)), 0.0)

    def _observe(self, context: Context, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike) -> None:
        """Check, charge every forecaster and the aggregate, learn. Whatever raises does so before anything changes."""
        tables = self._forecasts(context)
        episode = self.game.read(self.game.pairs(tables.shape[1:]), self.horizon, states, actions, outcomes)
        examples = self.game.examples(tables, episode)
        own = self.game.aggregate(self._weights(), examples)
        losses = self.game.losses(examples, episode)
        self._learn(context, episode)
        self._losses += losses
        self.loss += float(self.game.losses(own, episode))

    def _weights(self) -> FloatArray:
        return exponential_weights(self._losses, self.game.rate / self.horizon)

    def _guard_price(self) -> float:
        """The regret against the best forecaster, (H/η)·log K."""
        return self.horizon / self.game.rate * math.log(len(self._losses))

    def _make(self) -> str:
        """What must be equal between an oracle that is saved and one that is restored."""
        return f"{type(self).__name__}, horizon {self.horizon}"

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, as arrays of numbers and text."""
        arrays = {name: getattr(self, f"_{name}").copy() for name in self.learned}
        return {"make": np.array(self._make()), "loss": np.array(self.loss), "losses": self._losses.copy(), **arrays}

    def restore(self, state: State) -> None:
        """Continue, to the bit, where the oracle of equal make was whose `state()` this is."""
        make = str(state["make"]) if "make" in state else None
        if make != self._make():
            raise ValueError(f"`state` must come from {self._make()!r}, got {make!r}")
        loss = restored("loss", state, ())
        losses = restored("losses", state, self._losses.shape)
        arrays = {name: restored(name, state, self._learned_shape(name)) for name in self.learned}
        self.loss, self._losses = float(loss), losses
        for name, array in arrays.items():
            setattr(self, f"_{name}", array)

    def _learned_shape(self, name: str) -> tuple[int, ...] | None:
        shape: tuple[int, ...] = getattr(self, f"_{name}").shape
        return shape


class RewardForecasters(Forecasters, RewardOracle):
    """Forecasters of rewards, under square loss."""

    game = SQUARE

    @final
    def update(self, context: Context, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from one whole episode."""
        self._observe(context, states, actions, rewards)


class DynamicsForecasters(Forecasters, DynamicsOracle):
    """Forecasters of transitions, under log loss."""

    game = LOG

    @final
    def update(self, context: Context, states: ArrayLike, actions: ArrayLike, next_states: ArrayLike) -> None:
        """Learn from one whole episode."""
        self._observe(context, states, actions, next_states)


class Tempered(Forecasters):
    """A class of functions at the textbook's rate, at the proven one, or both.

    A forecaster of temper τ sees each example with weight 1/τ beside its prior: τ = 1 is the textbook's, τ = H the
    proven one.
    """

    def __init__(self, horizon: int, rate: str) -> None:
        if rate not in RATES:
            raise ValueError(f"`rate` must be one of {', '.join(RATES)}, got {rate!r}")
        horizon = positive_integer("horizon", horizon)
        both = {"realizable": [1.0], "proven": [horizon], "guarded": [1.0, horizon]}[rate]
        # For H = 1 the two coincide.
        self.tempers = np.array([1.0] if horizon == 1 else both)
        self.rate = rate
        super().__init__(horizon, len(self.tempers))

    @abc.abstractmethod
    def _textbook_bound(self, episodes: int) -> float:
        """Bound the regret of the class for one example per episode, updated after each."""

    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return H times the textbook's bound for T examples, plus (H/η)·log 2 if guarded; inf if realizable."""
        episodes, horizon = positive_integer("episodes", episodes), positive_integer("horizon", horizon)
        if horizon > self.horizon or self.tempers[-1] < self.horizon:
            return math.inf
        return self._guard_price() + self.horizon * self._textbook_bound(episodes)

    def _make(self) -> str:
        return f"{super()._make()}, rate {self.rate}"
