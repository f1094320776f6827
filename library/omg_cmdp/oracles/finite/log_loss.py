"""A finite class of rewards judged by log loss: each function as the probability of a coin, not as a mean.

For a reward r in [0, 1] and a forecast f the loss is -r·log(f + ε) - (1-r)·log(1 - f + ε), with the ε of all log
losses. exp(-loss) = (f + ε)^r·(1 - f + ε)^(1-r) is concave in f, so the mean of the class, weighted by exp(-loss), has
a log loss at most log N above that of the best function, whatever the rewards; frozen for H steps, weights exp(-loss/H)
and H·log N (as in docs/oracles.md, Theorem 1). Log loss punishes an error near 0 and 1 more than in the middle, as
first-order regret bounds such as FastCB's require.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from omg_cmdp.oracles.finite.aggregating import Finite
from omg_cmdp.oracles.finite.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.frame import RewardFrame
from omg_cmdp.oracles.losses import LOG, SMALLEST_PROBABILITY, SQUARE, Examples
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.validation import FloatArray


class _Coins(Finite):
    """Functions that predict the probability of a success, under log loss."""

    rate: Rate

    def __init__(self, predictions: Predictions, rate: Rate) -> None:
        super().__init__(FunctionClass(predictions, SQUARE), charge_coins, LOG.rate, rate.horizon, rate)

    def forecasts(self, functions: Functions) -> FloatArray:
        means = [functions.columns @ self.posterior(functions, temper) for temper in self.rate.tempers]
        return np.asarray(np.clip(means, 0.0, 1.0).reshape(len(means), *functions.shape))

    def best_loss(self) -> float:
        """Return nan: the account of the class is not in squares."""
        return math.nan


def charge_coins(losses: FloatArray, functions: Functions, episode: Examples) -> None:
    """Charge -Σ [r·log(f + ε) + (1-r)·log(1 - f + ε)]."""
    # A reward between 0 and 1 is charged as that share of a success and of a failure.
    said, rewards = functions.columns[episode.cells].T, episode.outcomes  # (N, H) and (H,)
    successes, failures = (np.log(part + SMALLEST_PROBABILITY) for part in (said, 1.0 - said))
    losses -= successes @ rewards + failures @ (1.0 - rewards)


@final
class LogLossRewards(RewardFrame[_Coins]):
    """Rewards from a finite class of N functions, weighted by their log loss as probabilities of a coin.

    The regret in log loss is at most H·log N at the rate "proven". `loss` is in squares, as for all reward oracles; for
    squares nothing is proven here, and `regret_bound` is inf. Choose it for agents with first-order regret, such as
    FastCB, or as a Bayesian: at the rate "realizable" the prediction is the posterior's mean.

    Parameters
    ----------
    predictions : callable or mapping
        context -> (N, S, A) or (N, H, S, A), in [0, 1]: the tables of all N functions at once. They must not change.
    horizon : int
        The largest number of steps of an episode, H.
    rate : {"proven", "realizable", "guarded"}, default "proven"
        "proven" weighs by exp(-loss/H), as predictions are frozen for H steps; "realizable" by exp(-loss), Bayes' rule
        for rewards that are 0 or 1 and a uniform prior; "guarded" aggregates both, under square loss.

    Examples
    --------
    >>> oracle = LogLossRewards({"c": np.array([[[0.5]], [[0.01]]])}, horizon=1)
    >>> oracle.update("c", states=[0], actions=[0], rewards=[1.0])
    >>> oracle.predict("c").round(2)  # weights 50 : 1
    array([[0.49]])

    References
    ----------
    D. Foster and A. Krishnamurthy, *Efficient first-order contextual bandits*, NeurIPS 2021.
    """

    def __init__(self, predictions: Predictions, *, horizon: int, rate: str = "proven") -> None:
        super().__init__(_Coins(predictions, Rate(rate, horizon, tempered=True)))
