"""Predictions that change only at doubling epochs: after episodes 1, 2, 4, 8, ...

FALCON (Simchi-Levi and Xu, *Mathematics of Operations Research* 2022) refits its model O(log T) times and plays by one
fit for a whole epoch, with the data of all epochs before. Its analysis needs the fit of an epoch to be independent of
the epoch's contexts, which are i.i.d.: nothing is proven for contexts that an adversary chooses.
"""

from __future__ import annotations

from typing import Any, final

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import RewardOracle
from omg_cmdp.oracles.combined.composite import Alternating
from omg_cmdp.oracles.frame import RewardFrame
from omg_cmdp.oracles.losses import SQUARE, Examples


def epoch_starts(episodes: int) -> list[int]:
    """Return the numbers of episodes after which epochs began, the current one included, once `episodes` are over.

    >>> epoch_starts(0), epoch_starts(1), epoch_starts(7)
    ([0], [0, 1], [0, 1, 2, 4])
    """
    return [0, *(1 << m for m in range(episodes.bit_length()))]


class _Epochs(Alternating):
    """Two oracles with the same settings: a *learner* sees every episode, a *speaker* predicts for a whole epoch."""

    def __init__(self, oracle: RewardOracle) -> None:
        super().__init__(oracle, 1, SQUARE)
        self._learner = self.oracles[0]
        try:
            oracle.state()
        except NotImplementedError as error:
            raise ValueError(f"`oracle` must be one that can be saved, got {type(oracle).__name__}") from error

    @property
    def speaker(self) -> Any:
        """The copy of the learner that was made when the epoch began."""
        return self.oracles[1]

    def learn(self, context: Context, episode: Examples) -> None:
        """Let the learner learn; at the end of an epoch the speaker becomes what the learner is."""
        self._learner.update(context, episode.states, episode.actions, episode.outcomes)
        # The account counts this episode only after it was learned.
        over = self.account.episodes + 1
        if over == epoch_starts(over)[-1]:
            self.speaker.load_state(self._learner.state())

    def best_loss(self) -> float:
        return float(self._learner.best_loss())


@final
class EpochRewards(RewardFrame[_Epochs]):
    """A reward oracle, online or offline, whose predictions change only between doubling epochs.

    Nothing is proven, and `regret_bound` is inf: half of the episodes are predicted from the other half.

    Parameters
    ----------
    oracle : RewardOracle
        An oracle that has learned nothing and has a `state()`, by which it is copied at the end of an epoch.

    Examples
    --------
    >>> from omg_cmdp.oracles import CountRewards
    >>> oracle = EpochRewards(CountRewards(states=1, actions=1, horizon=1))
    >>> for _ in range(7):
    ...     oracle.update("any", states=[0], actions=[0], rewards=[1.0])
    >>> oracle.predict("any")  # four successes are known
    array([[0.83333333]])

    References
    ----------
    D. Simchi-Levi and Y. Xu, *Bypassing the monster*, Mathematics of Operations Research 2022.
    """

    def __init__(self, oracle: RewardOracle) -> None:
        super().__init__(_Epochs(oracle))
