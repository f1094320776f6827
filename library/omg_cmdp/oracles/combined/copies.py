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

import math
from typing import Any, final

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.composite import Alternating
from omg_cmdp.oracles.frame import DynamicsFrame, RewardFrame
from omg_cmdp.oracles.losses import LOG, SQUARE, Examples
from omg_cmdp.validation import whole_number


class _Copies(Alternating):
    """d + 1 oracles with the same settings."""

    @property
    def speaker(self) -> Any:
        """The copy that learned last."""
        # Episode -1 is that of the last copy, which has learned nothing, as all others.
        return self.oracles[(self.account.episodes - 1) % len(self.oracles)]

    def learn(self, context: Context, episode: Examples) -> None:
        learner = self.oracles[self.account.episodes % len(self.oracles)]
        learner.update(context, episode.states, episode.actions, episode.outcomes)

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
class CopiesRewards(RewardFrame[_Copies]):
    """Copies of a reward oracle that take turns, for outcomes that come `delay` episodes late, in order.

    The regret is at most (d + 1)·R(⌈T/(d + 1)⌉), R the bound of the oracle for outcomes that come at once.

    Parameters
    ----------
    oracle : RewardOracle
        An oracle that has learned nothing. It becomes the first copy.
    delay : int
        The number d of other updates between a prediction and its own, exactly. 0 is the oracle itself.

    Examples
    --------
    >>> import numpy as np
    >>> from omg_cmdp.oracles import FiniteRewards
    >>> oracle = CopiesRewards(FiniteRewards({"c": np.array([[[0.0]], [[1.0]]])}, horizon=1), delay=2)
    >>> for _ in range(4):
    ...     oracle.update("c", states=[0], actions=[0], rewards=[1.0])
    >>> oracle.predict("c").round(2)  # by the first copy, which has learned twice
    array([[0.97]])
    >>> round(oracle.delayed_regret_bound(episodes=100, horizon=1, delay=2, constant=True), 3)  # 3·½·log 2
    1.04

    References
    ----------
    M. Weinberger and E. Ordentlich, *On delayed prediction of individual sequences*, IEEE Trans. Inf. Theory 2002;
    docs/oracles.md, Theorem 6.
    """

    def __init__(self, oracle: RewardOracle, *, delay: int) -> None:
        super().__init__(_Copies(oracle, whole_number("delay", delay), SQUARE))


@final
class CopiesDynamics(DynamicsFrame[_Copies]):
    """Copies of a dynamics oracle that take turns, for outcomes that come `delay` episodes late, in order.

    The regret is at most (d + 1)·R(⌈T/(d + 1)⌉), R the bound of the oracle for outcomes that come at once.

    Parameters
    ----------
    oracle : DynamicsOracle
        An oracle that has learned nothing. It becomes the first copy.
    delay : int
        The number d of other updates between a prediction and its own, exactly. 0 is the oracle itself.

    Examples
    --------
    >>> from omg_cmdp.oracles import CountDynamics
    >>> oracle = CopiesDynamics(CountDynamics(states=2, actions=1, horizon=1, prior=0.5), delay=1)
    >>> for _ in range(3):
    ...     oracle.update("any", states=[0], actions=[0], next_states=[1])
    >>> oracle.predict("any")[0].round(3)  # by the first copy, which has learned twice
    array([[0.167, 0.833]])

    References
    ----------
    M. Weinberger and E. Ordentlich, *On delayed prediction of individual sequences*, IEEE Trans. Inf. Theory 2002;
    docs/oracles.md, Theorem 6.
    """

    def __init__(self, oracle: DynamicsOracle, *, delay: int) -> None:
        super().__init__(_Copies(oracle, whole_number("delay", delay), LOG))
