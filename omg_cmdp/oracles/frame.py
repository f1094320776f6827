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
from collections.abc import Hashable
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, context_key
from omg_cmdp.oracles.base import DynamicsOracle, Oracle, RewardOracle
from omg_cmdp.oracles.losses import LOG, SQUARE, Episode, Game
from omg_cmdp.persistence import State, check_settings, numbers, read_state
from omg_cmdp.validation import FloatArray, positive_integer

RATES = ("guarded", "proven", "realizable")


class _Answer(NamedTuple):
    """What was computed for a context."""

    key: Hashable | None
    prepared: Any
    forecasts: FloatArray
    """(K, ...)."""
    prediction: FloatArray
    """Their aggregate."""


class Forecasters(Oracle):
    """K forecasters that learn side by side; their aggregate is the prediction, their losses are the weights."""

    game: ClassVar[Game]
    learned: ClassVar[tuple[str, ...]] = ()
    """The names of the float arrays that a subclass learns, kept as attributes with a leading underscore."""

    def __init__(self, horizon: int, count: int) -> None:
        self.horizon = positive_integer("horizon", horizon)
        self.episodes = 0
        self.loss = 0.0
        self._losses = np.zeros(count)
        self._guard_rate = self.game.rate / self.horizon
        self._answered: _Answer | None = None

    @abc.abstractmethod
    def _prepare(self, context: Context) -> Any:
        """Return what the methods below need of a context, such as its features; refuse a bad one."""

    @abc.abstractmethod
    def _forecasts(self, prepared: Any) -> FloatArray:
        """Return (K, ...): each forecaster's table."""

    @abc.abstractmethod
    def _learn(self, prepared: Any, episode: Episode) -> None:
        """Update the forecasters with a checked episode."""

    @abc.abstractmethod
    def _expected_divergence(self, prepared: Any, prediction: FloatArray) -> FloatArray:
        """Return the posterior mean of the divergence between the truth and `prediction`."""

    def predict(self, context: Context) -> FloatArray:
        """Return the aggregate of the forecasters."""
        return self._answer(context).prediction.copy()

    def uncertainty(self, context: Context) -> FloatArray:
        """Return the expected divergence of `predict(context)` under the textbook's posterior."""
        answer = self._answer(context)
        return np.maximum(self._expected_divergence(answer.prepared, answer.prediction), 0.0)

    def _observe(self, context: Context, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike) -> None:
        """Check, learn, charge every forecaster and the aggregate. What raises does so before anything changes."""
        answer = self._answer(context)
        episode = self.game.read(answer.prediction.shape, self.horizon, states, actions, outcomes)
        self._answered = None
        self._learn(answer.prepared, episode)
        self.loss += self.game.charge(self._losses, self._guard_rate, answer.forecasts, episode)
        self.episodes += 1

    def _answer(self, context: Context) -> _Answer:
        """Return all about a context; the last answer is remembered until the next update."""
        key = context_key(context)
        answered = self._answered
        if answered is not None and answered.key == key:
            return answered
        prepared = self._prepare(context)
        forecasts = self._forecasts(prepared)
        answer = _Answer(key, prepared, forecasts, self.game.aggregate(self._losses, self._guard_rate, forecasts))
        self._answered = None if key is None else answer
        return answer

    def _guard_price(self) -> float:
        """The regret against the best forecaster, (H/η)·log K."""
        return self.horizon / self.game.rate * math.log(len(self._losses))

    def _settings(self) -> str:
        """What must be equal between an oracle that is saved and one that is restored."""
        return f"{type(self).__name__}, horizon {self.horizon}"

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, as arrays of numbers and text."""
        arrays = {name: getattr(self, f"_{name}").copy() for name in self.learned}
        account = {
            "episodes": np.array(float(self.episodes)),
            "loss": np.array(self.loss),
            "losses": self._losses.copy(),
        }
        return {"settings": np.array(self._settings()), **account, **arrays}

    def load_state(self, state: State) -> None:
        """Load a state saved by an oracle with the same settings; learning continues bit for bit."""
        state = read_state(state)
        check_settings(state, self._settings())
        episodes, loss = numbers("episodes", state, ()), numbers("loss", state, ())
        losses = numbers("losses", state, self._losses.shape)
        arrays = {name: numbers(name, state, self._learned_shape(name)) for name in self.learned}
        self.episodes, self.loss, self._losses, self._answered = int(episodes), float(loss), losses, None
        for name, array in arrays.items():
            setattr(self, f"_{name}", array)

    def _learned_shape(self, name: str) -> tuple[int | None, ...]:
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


class Rated(Forecasters):
    """A class of functions with two forecasters: a practical one, and one that is proven for frozen episodes."""

    def __init__(self, horizon: int, rate: str) -> None:
        if rate not in RATES:
            raise ValueError(f"`rate` must be one of {', '.join(RATES)}, got {rate!r}")
        self.rate = rate
        super().__init__(horizon, self._forecaster_count(positive_integer("horizon", horizon)))

    def _forecaster_count(self, horizon: int) -> int:
        return 2 if self.rate == "guarded" else 1

    @abc.abstractmethod
    def _textbook_bound(self, episodes: int) -> float:
        """Bound the regret of the class for one example per episode, updated after each."""

    def _is_proven(self) -> bool:
        return self.rate != "realizable"

    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return H times the textbook's bound for T examples, plus (H/η)·log 2 if guarded; inf if realizable."""
        episodes, horizon = positive_integer("episodes", episodes), positive_integer("horizon", horizon)
        if horizon > self.horizon or not self._is_proven():
            return math.inf
        return self._guard_price() + self.horizon * self._textbook_bound(episodes)

    def _settings(self) -> str:
        return f"{super()._settings()}, rate {self.rate}"


class Tempered(Rated):
    """A class whose two forecasters differ in their *temper* only.

    A forecaster of temper τ sees each example with weight 1/τ beside its prior: τ = 1 is the textbook's, τ = H the
    proven one. For H = 1 they coincide.
    """

    def __init__(self, horizon: int, rate: str) -> None:
        super().__init__(horizon, rate)
        both = {"realizable": [1], "proven": [self.horizon], "guarded": [1, self.horizon]}[rate]
        self.tempers = np.array(both[: len(self._losses)], dtype=np.float64)

    def _forecaster_count(self, horizon: int) -> int:
        return 1 if horizon == 1 else super()._forecaster_count(horizon)

    def _is_proven(self) -> bool:
        return self.horizon == 1 or super()._is_proven()
