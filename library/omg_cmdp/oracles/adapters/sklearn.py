"""scikit-learn's incremental learners as oracles."""

from __future__ import annotations

from typing import Any, Unpack, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.oracles.adapters.ensemble import Ensemble
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.adapters.models import DynamicsOptions, ModelKind, Options, seeded
from omg_cmdp.oracles.frame import DynamicsFrame, RewardFrame
from omg_cmdp.validation import FloatArray


class _Regressor(ModelKind):
    """Anything with `partial_fit`."""

    needs = ("partial_fit", "predict")

    def template(self, model: Any) -> Any:
        try:
            from sklearn.base import clone  # slow to import, and needed only here
        except ImportError as error:
            raise ImportError("this oracle needs scikit-learn: pip install scikit-learn") from error
        return seeded(clone(model))

    def fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        pupil.partial_fit(inputs, outcomes)


class _Classifier(_Regressor):
    needs = ("partial_fit", "predict_proba")

    def fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        pupil.partial_fit(inputs, outcomes, classes=np.arange(self.states))

    def ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        with np.errstate(divide="ignore"):  # naive Bayes takes the log of 0 for next states that it has not seen
            return np.asarray(pupil.predict_proba(inputs))


@final
class SklearnRewards(RewardFrame[Ensemble]):
    """Rewards by a scikit-learn regressor that learns incrementally, such as `SGDRegressor`.

    The uncertainty is a proxy, the jackknife's, and `regret_bound` is inf: aggregate the oracle with one that has a
    bound.

    Parameters
    ----------
    model : regressor
        Anything with `partial_fit` and `predict`. It is copied as it is now; a `random_state` of None becomes 0.
    **options
        Those of `adapters.models.Options`: `states`, `actions` and `horizon`, which are required, and `features`,
        `admissible` and `members`.

    Examples
    --------
    >>> from sklearn.linear_model import SGDRegressor
    >>> oracle = SklearnRewards(SGDRegressor(eta0=0.1), states=1, actions=2, horizon=1)
    >>> for _ in range(200):
    ...     oracle.update([1.0], states=[0], actions=[1], rewards=[0.9])
    >>> bool(abs(oracle.predict([1.0])[0, 1] - 0.9) < 0.05)
    True
    """

    def __init__(self, model: Any, **options: Unpack[Options]) -> None:
        super().__init__(Ensemble(model, _Regressor, RewardTables, **options))


@final
class SklearnDynamics(DynamicsFrame[Ensemble]):
    """Transitions by a scikit-learn classifier that learns incrementally, such as `MLPClassifier`.

    `SGDClassifier(loss="log_loss")` fits one state against the rest and normalises, which is not the multinomial
    likelihood: its probabilities may stay off however much it learns. `MLPClassifier(hidden_layer_sizes=())` is
    multinomial. The uncertainty is a proxy, the jackknife's, and `regret_bound` is inf: aggregate the oracle with one
    that has a bound.

    Parameters
    ----------
    model : classifier
        Anything with `partial_fit` and `predict_proba`. It is copied as it is now; a `random_state` of None becomes 0.
    **options
        Those of `adapters.models.DynamicsOptions`: `states`, `actions` and `horizon`, which are required, and
        `features`, `admissible`, `members`, `support` and `floor`.

    Examples
    --------
    >>> from sklearn.neural_network import MLPClassifier
    >>> model = MLPClassifier(hidden_layer_sizes=(), learning_rate_init=0.1)
    >>> oracle = SklearnDynamics(model, states=2, actions=1, horizon=1)
    >>> for _ in range(50):
    ...     oracle.update([1.0], states=[0], actions=[0], next_states=[1])
    ...     oracle.update([-1.0], states=[0], actions=[0], next_states=[0])
    >>> bool(oracle.predict([1.0])[0, 0, 1] > 0.9)
    True
    """

    def __init__(self, model: Any, **options: Unpack[DynamicsOptions]) -> None:
        super().__init__(Ensemble(model, _Classifier, TransitionTables, **options))
