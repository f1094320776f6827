"""The forecasters of one class of functions, which a frame holds: what they predict, how they learn."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.features import Described
from omg_cmdp.oracles.losses import Examples, refuse_impossible
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.oracles.witnesses import Source
from omg_cmdp.persistence import Learned
from omg_cmdp.validation import BoolArray, FloatArray, positive_integer


@dataclasses.dataclass
class LossAccount:
    """The number of episodes and of examples, the losses (K,) of the forecasters, and the loss of their aggregate."""

    losses: FloatArray
    episodes: int = 0
    examples: int = 0
    loss: float = 0.0


class Forecasters(Learned, abc.ABC):
    """K forecasters of one class of functions, which learn side by side. Four methods are required."""

    contexts: tuple[Any, ...] | None = None
    """The contexts that can be asked about, if they are listed."""
    sizes: tuple[int, int] | None = None
    """S and A, for classes of tables whose sizes are known before the first context."""
    takes_keyed: ClassVar[bool] = False
    """Whether `prepare` looks the context up, and takes it with its key."""
    foreign: bool = False
    """Whether `learn` calls oracles or models that may refuse an episode."""
    features: Described = Described(None)
    """The function that makes features of a context; none by default."""
    settings: tuple[str, ...] = ()
    """Texts that an oracle must share with the one whose state it loads."""
    source: Source | None = None
    """The argument that is a function of contexts, or tables by context, if there is one."""
    possible: BoolArray | None = None
    """The transitions that can happen, (S, A, S); None: all, or these are forecasters of rewards."""

    def __init__(self, horizon: int, rate: Rate | None = None, *, count: int | None = None) -> None:
        """Begin with `count` forecasters; by default as many as the rate has tempers, or one."""
        self.horizon = positive_integer("horizon", horizon)
        self.rate = rate
        tempers = 1 if rate is None else len(rate.tempers)
        self.account = LossAccount(np.zeros(tempers if count is None else count))

    @abc.abstractmethod
    def prepare(self, context: Context) -> Any:
        """Return what the other methods need of a context, such as its features; refuse a bad one."""

    @abc.abstractmethod
    def forecasts(self, prepared: Any) -> FloatArray:
        """Return (K, ...): the table of each forecaster."""

    @abc.abstractmethod
    def learn(self, prepared: Any, episode: Examples) -> None:
        """Update the forecasters with a checked episode."""

    @abc.abstractmethod
    def expected_divergence(self, prepared: Any, prediction: FloatArray) -> FloatArray:
        """Return the posterior mean of the divergence between the truth and `prediction`."""

    def check(self, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike) -> None:
        """Raise if one of the steps of an episode cannot happen."""
        if self.possible is not None:
            refuse_impossible(self.possible, *map(np.asarray, (states, actions, outcomes)))

    def bound(self, episodes: int, horizon: int) -> float:
        """Return a proven bound on the regret of one of the forecasters against the class; inf: nothing is proven.

        A class for which something is proven overrides this, and `late_bound` for what is proven of late outcomes;
        both are inf otherwise.
        """
        return math.inf

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        """Return the same for outcomes that come late, with up to `delay` >= 1 other updates in between.

        By default that is the bound, if the rate is made for such a delay. Of several forecasters nothing is proven in
        general: a guard charges them what they say on arrival, and not what they said.
        """
        return self.bound(episodes, horizon) if self.rate is not None and delay <= self.rate.delay else math.inf

    def draws(self, prepared: Any, streams: Streams) -> FloatArray | None:
        """Return (count, ...): tables drawn from the textbook's posterior; None: draw around the prediction."""
        return None

    def best_loss(self) -> float:
        """Return the loss of the best function in hindsight; nan where that cannot be computed."""
        return math.nan

    def listed(self, prepared: Any) -> FloatArray | None:
        """Return the tables of all functions of the class at one context, (N, ...); None: they cannot be listed."""
        return None
