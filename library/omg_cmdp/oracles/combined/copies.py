"""Copies that take turns, for outcomes that come a constant number of updates late.

Of d + 1 copies of an oracle, copy k predicts and learns every (d + 1)th episode only. If outcomes come d episodes late
and in order, each copy has learned all its own before it predicts again: nothing is late for it (Weinberger and
Ordentlich 2002; Joulani, György and Szepesvári 2013). The losses and bounds of the copies add up (docs/oracles.md,
Theorem 6):

    regret <= (d + 1)·R(⌈T/(d + 1)⌉)     if R(T) bounds that of the oracle without delay.

No episode has to be counted: the copy that learned last is the one whose turn it is, and before anything is learned all
copies are alike. It must be d episodes exactly; where outcomes come earlier, hold them back.
"""

from __future__ import annotations

import copy
import math
from typing import Any, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.composite import Composite
from omg_cmdp.oracles.frame import Frame, learn_rewards, learn_transitions
from omg_cmdp.oracles.losses import LOG, SQUARE, Episode, Loss
from omg_cmdp.validation import BoolArray, FloatArray, positive_integer, whole_number


class _Copies(Composite):
    """d + 1 oracles with the same settings."""

    def __init__(self, oracle: Any, delay: int, loss: Loss) -> None:
        horizon = positive_integer("oracle.horizon", getattr(oracle, "horizon", None))
        others = [copy.deepcopy(oracle) for _ in range(whole_number("delay", delay))]
        super().__init__([oracle, *others], loss, horizon=horizon)
        self.contexts = getattr(oracle, "contexts", None)

    @property
    def _speaker(self) -> Any:
        """The copy that learned last."""
        return self.oracles[(self.account.episodes - 1) % len(self.oracles)]

    def forecasts(self, context: Context) -> FloatArray:
        return np.asarray(self._speaker.predict(context))[None]

    def learn(self, context: Context, episode: Episode) -> None:
        learner = self.oracles[self.account.episodes % len(self.oracles)]
        learner.update(context, episode.states, episode.actions, episode.outcomes)

    def expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        return np.asarray(self._speaker.uncertainty(context))

    def draws(self, context: Context, count: int, generator: np.random.Generator) -> FloatArray:
        return np.asarray(self._speaker.draws(context, count, generator))

    def distances(self, context: Context, truth: FloatArray, used: BoolArray) -> FloatArray | None:
        found: FloatArray | None = self.oracles[0].distances(context, truth, used)
        return found

    def best_loss(self) -> float:
        """Return the sum of the best losses of the copies, each on its own episodes."""
        return float(sum(oracle.best_loss() for oracle in self.oracles))

    def bound(self, episodes: int, horizon: int) -> float:
        """Return that of the only copy; of several nothing is proven where outcomes come at once."""
        return float(self.oracles[0].regret_bound(episodes, horizon)) if len(self.oracles) == 1 else math.inf

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        copies = len(self.oracles)
        if not constant or delay != copies - 1:
            return math.inf
        return float(copies * self.oracles[0].regret_bound(-(-episodes // copies), horizon))


@final
class CopiesRewards(Frame[_Copies], RewardOracle):
    """Copies of a reward oracle, for outcomes that come `delay` episodes late, in order.

    >>> from omg_cmdp.oracles import FiniteRewards
    >>> oracle = CopiesRewards(FiniteRewards({"c": np.array([[[0.0]], [[1.0]]])}, horizon=1), delay=2)
    >>> for _ in range(4):
    ...     oracle.update("c", states=[0], actions=[0], rewards=[1.0])
    >>> oracle.predict("c").round(2)  # of the first copy, which has learned twice
    array([[0.97]])
    >>> round(oracle.delayed_regret_bound(episodes=100, horizon=1, delay=2, constant=True), 3)  # 3·½·log 2
    1.04
    """

    update = learn_rewards

    def __init__(self, oracle: RewardOracle, *, delay: int) -> None:
        super().__init__(_Copies(oracle, delay, SQUARE))


@final
class CopiesDynamics(Frame[_Copies], DynamicsOracle):
    """Copies of a dynamics oracle, for outcomes that come `delay` episodes late, in order."""

    update = learn_transitions

    def __init__(self, oracle: DynamicsOracle, *, delay: int) -> None:
        super().__init__(_Copies(oracle, delay, LOG))
