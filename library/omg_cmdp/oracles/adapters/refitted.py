"""Models that cannot learn online, such as gradient boosting, as oracles: see `adapters.ensemble`."""

from __future__ import annotations

from typing import Any, Unpack, final

from omg_cmdp.oracles.adapters.ensemble import Ensemble
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.adapters.models import DynamicsOptions, Options
from omg_cmdp.oracles.frame import DynamicsFrame, RewardFrame


@final
class RefittedRewards(RewardFrame[Ensemble]):
    """Rewards by any regressor, fitted anew to all examples now and then: boosting, a forest, a pipeline.

    Between two fits the prediction stays as it was; before the first one all rewards are ½. A model that needs more
    examples waits for them, with a warning. The uncertainty is a proxy, the jackknife's, and `regret_bound` is inf:
    aggregate the oracle with one that has a bound.

    Parameters
    ----------
    model : regressor
        Anything with `fit` and `predict`. It is copied as it is now; a `random_state` of None becomes 0.
    every : "doubling", int or float, default "doubling"
        "doubling" fits anew whenever there are twice as many examples as at the last fit: all fits together see at most
        2 times the examples of the last one. A fraction g fits when there are g times more, and sees at most 1 + 1/g
        times its examples; an integer fits after that number of episodes, at a cost that grows like their square.
    **options
        Those of `adapters.models.Options`: `states`, `actions` and `horizon`, which are required, and `features`,
        `admissible` and `members`.

    Examples
    --------
    >>> import numpy as np
    >>> class Mean:
    ...     def fit(self, inputs, rewards):
    ...         self.mean = rewards.mean()
    ...     def predict(self, inputs):
    ...         return np.full(len(inputs), self.mean)
    >>> oracle = RefittedRewards(Mean(), every=10, states=1, actions=1, horizon=1)
    >>> for _ in range(19):
    ...     oracle.update([1.0], states=[0], actions=[0], rewards=[0.75])
    >>> oracle.predict([1.0])  # fitted once, to ten examples
    array([[0.75]])
    """

    def __init__(self, model: Any, *, every: float | str = "doubling", **options: Unpack[Options]) -> None:
        super().__init__(Ensemble(model, RewardTables, every=every, **options))


@final
class RefittedDynamics(DynamicsFrame[Ensemble]):
    """Transitions by any classifier, fitted anew to all examples now and then: boosting, a forest, a pipeline.

    Before the first fit rows are uniform; after it next states that were never seen have the `floor`. A model that
    needs more examples waits for them, with a warning. The uncertainty is a proxy, the jackknife's, and `regret_bound`
    is inf: aggregate the oracle with one that has a bound.

    Parameters
    ----------
    model : classifier
        Anything with `fit` and `predict_proba`. It is copied as it is now; a `random_state` of None becomes 0.
    every : "doubling", int or float, default "doubling"
        "doubling" fits anew whenever there are twice as many examples as at the last fit: all fits together see at most
        2 times the examples of the last one. A fraction g fits when there are g times more, and sees at most 1 + 1/g
        times its examples; an integer fits after that number of episodes, at a cost that grows like their square.
    **options
        Those of `adapters.models.DynamicsOptions`: `states`, `actions` and `horizon`, which are required, and
        `features`, `admissible`, `members`, `support` and `floor`.

    Examples
    --------
    >>> import numpy as np
    >>> class Shares:
    ...     def fit(self, inputs, classes):
    ...         self.shares = np.bincount(classes) / len(classes)
    ...     def predict_proba(self, inputs):
    ...         return np.tile(self.shares, (len(inputs), 1))
    >>> oracle = RefittedDynamics(Shares(), every=1, members=1, states=2, actions=1, horizon=4)
    >>> oracle.update([1.0], states=[0, 0, 0, 0], actions=[0, 0, 0, 0], next_states=[1, 1, 0, 1])
    >>> oracle.predict([1.0])[0]
    array([[0.25, 0.75]])
    """

    def __init__(self, model: Any, *, every: float | str = "doubling", **options: Unpack[DynamicsOptions]) -> None:
        super().__init__(Ensemble(model, TransitionTables, every=every, **options))
