"""The frame of the package's oracles: it holds the forecasters of one class of functions.

The frame checks episodes, aggregates the forecasts, keeps the account of losses, remembers its last answer, and saves
and loads its state. The forecasters know the class. For K forecasters and a loss that is η-mixable, the loss of the
aggregate is at most that of the best forecaster plus (H/η)·log K (docs/oracles.md, Theorem 1).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, Keyed, keyed
from omg_cmdp.oracles.base import DynamicsOracle, Oracle, RewardOracle, given_sizes
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.forecasters import Forecasters, LossAccount
from omg_cmdp.oracles.losses import LOG, SQUARE, Loss, read_episode
from omg_cmdp.oracles.witnesses import Witnesses
from omg_cmdp.persistence import State, check_settings, numbers, read_state
from omg_cmdp.validation import FloatArray, frozen, instance_of, positive_integer, whole_number

F = TypeVar("F", bound=Forecasters)


class _Answer(NamedTuple):
    """The forecasts (K, ...) for a context, and their aggregate."""

    key: Hashable | None
    prepared: Any
    forecasts: FloatArray
    prediction: FloatArray


class Frame(Oracle, Generic[F]):
    """An oracle that holds forecasters. A subclass chooses them in its constructor, and overrides nothing."""

    takes_keyed = True
    _loss: ClassVar[Loss]
    horizon: int

    def __init__(self, forecasters: F) -> None:
        self.forecasters = forecasters
        self.horizon = forecasters.horizon
        self.contexts = forecasters.contexts
        self.sizes = given_sizes(self) or forecasters.sizes
        self.rate = None if forecasters.rate is None else forecasters.rate.name
        self._guard_rate = self._loss.rate / self.horizon
        self.surely_learns = not forecasters.foreign
        self._answered: _Answer | None = None
        self._witnesses = Witnesses(forecasters.source)

    @property
    def episodes(self) -> int:  # type: ignore[override]  # as `loss`
        """Number of episodes learned from."""
        return self.forecasters.account.episodes

    @property
    def loss(self) -> float:  # type: ignore[override]  # a plain attribute for others, read-only here
        """The total loss of the predictions made so far."""
        return self.forecasters.account.loss

    @final
    def predict(self, context: Context) -> FloatArray:
        """Return the aggregate of the forecasters."""
        prediction = self._answer(context).prediction
        return prediction if type(context) is Keyed else prediction.copy()

    @final
    def uncertainty(self, context: Context) -> FloatArray:
        """Return the expected divergence of `predict(context)` under the textbook's posterior."""
        answer = self._answer(context)
        return np.maximum(self.forecasters.expected_divergence(answer.prepared, answer.prediction), 0.0)

    @final
    def draws(self, context: Context, count: int, generator: np.random.Generator) -> FloatArray:
        """Return (count, ...): tables like that of `predict`, drawn from the textbook's posterior."""
        instance_of("generator", generator, np.random.Generator)
        return self.draws_from(context, Streams.fresh(positive_integer("count", count), generator))

    @final
    def draws_from(self, context: Context, streams: Streams) -> FloatArray:
        """Return (count, ...): the same by the numbers of `streams`; not to be written to."""
        answer = self._answer(context)
        drawn = self.forecasters.draws(answer.prepared, streams)
        return self._loss.draws(answer.prediction, self.uncertainty(context), streams) if drawn is None else drawn

    @final
    def best_loss(self) -> float:
        """Return the total loss of the best function in hindsight; nan where that cannot be computed."""
        return self.forecasters.best_loss()

    def functions(self, context: Context) -> FloatArray | None:
        """Return the tables of all N functions of the class, (N, ...), read-only; None where they are not listed."""
        tables = self.forecasters.listed(self.forecasters.prepare(context))
        return None if tables is None else frozen(tables.view())

    @final
    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return the bound of the class plus (H/η)·log K for K forecasters; inf where nothing is proven."""
        episodes, horizon = positive_integer("episodes", episodes), positive_integer("horizon", horizon)
        if horizon > self.horizon:
            return math.inf
        guard = self.horizon / self._loss.rate * math.log(len(self.forecasters.account.losses))
        return guard + self.forecasters.bound(episodes, horizon)

    @final
    def delayed_regret_bound(self, episodes: int, horizon: int, delay: int, *, constant: bool = False) -> float:
        """Return the bound of the class for late outcomes; inf where nothing is proven."""
        instance_of("constant", constant, bool)
        undelayed = self.regret_bound(episodes, horizon)
        if whole_number("delay", delay) == 0:
            return undelayed
        return math.inf if horizon > self.horizon else self.forecasters.late_bound(episodes, horizon, delay, constant)

    @final
    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, as arrays of numbers and text."""
        account = self.forecasters.account
        return {
            "settings": np.array(self._settings()),
            "episodes": np.array(float(account.episodes)),
            "examples": np.array(float(account.examples)),
            "loss": np.array(account.loss),
            "losses": account.losses.copy(),
            **self._witnesses.state(),
            **self.forecasters.state(),
        }

    @final
    def load_state(self, state: State) -> None:
        """Load a state saved by an oracle with the same settings; learning continues bit for bit."""
        instance_of("state", state, Mapping)
        known = self.state()
        state = read_state(state, [name for name in state if name in known])
        check_settings(state, self._settings())
        witnesses = self._witnesses.check(state)
        before = self.forecasters.account
        losses, loss = numbers("losses", state, before.losses.shape), float(numbers("loss", state, ()))
        episodes, examples = (int(numbers(name, state, (), whole=True)) for name in ("episodes", "examples"))
        self.forecasters.account = LossAccount(losses, episodes, examples, loss)
        try:
            self.forecasters.load_state(state)
        except BaseException:
            self.forecasters.account = before
            raise
        self._witnesses.load(witnesses)
        self._answered = None

    def _settings(self) -> str:
        rate = [] if self.rate is None else [f"rate {self.rate}"]
        own = *self.forecasters.settings, *self.forecasters.features.settings
        return ", ".join([type(self).__name__, f"horizon {self.horizon}", *rate, *own])

    def _observe(self, context: Context, states: Any, actions: Any, outcomes: Any) -> None:
        """Check, learn, charge the forecasters and the aggregate. What raises does so before anything changes."""
        answer = self._answer(context)
        steps = answer.prediction.shape, self.horizon, states, actions, outcomes
        episode = self._loss.place(*steps) if type(context) is Keyed else read_episode(self._loss, *steps)
        self.forecasters.check(*episode[:3])
        self._answered = None
        self.forecasters.learn(answer.prepared, episode)
        self._witnesses.learn(context if type(context) is Keyed else keyed(context))
        account = self.forecasters.account
        account.loss += self._loss.charge(account.losses, self._guard_rate, answer.forecasts, episode)
        account.episodes += 1
        account.examples += len(episode.outcomes)

    def _answer(self, context: Context) -> _Answer:
        """Return all about a context; the last answer is remembered until the next update."""
        known, answered = context if type(context) is Keyed else keyed(context), self._answered
        if answered is not None and answered.key == known.key:
            return answered
        prepared = self.forecasters.prepare(known.to(self.forecasters))
        forecasts = self.forecasters.forecasts(prepared)
        prediction = self._loss.aggregate(self.forecasters.account.losses, self._guard_rate, forecasts)
        answer = _Answer(known.key, prepared, forecasts, prediction)
        self._answered = None if known.key is None else answer
        return answer


class RewardFrame(Frame[F], RewardOracle):
    """A frame of forecasters of rewards."""

    _loss = SQUARE

    def update(self, context: Context, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from one episode, at most H entries each."""
        self._observe(context, states, actions, rewards)


class DynamicsFrame(Frame[F], DynamicsOracle):
    """A frame of forecasters of transitions."""

    _loss = LOG

    def update(self, context: Context, states: ArrayLike, actions: ArrayLike, next_states: ArrayLike) -> None:
        """Learn from one episode, at most H entries each."""
        self._observe(context, states, actions, next_states)

    def check_steps(self, states: ArrayLike, actions: ArrayLike, next_states: ArrayLike) -> None:
        """Raise if the support excludes one of these transitions."""
        self.forecasters.check(states, actions, next_states)
