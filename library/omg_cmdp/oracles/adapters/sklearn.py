"""scikit-learn's incremental learners as oracles."""

from __future__ import annotations

from typing import Any, Unpack, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.oracles.adapters.ensemble import DynamicsOptions, Ensemble, Learner, Options
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.frame import Frame, learn_rewards, learn_transitions
from omg_cmdp.validation import FloatArray

try:
    from sklearn.base import clone
except ImportError as error:
    raise ImportError("this oracle needs scikit-learn: pip install scikit-learn") from error


class _Regressor(Learner):
    """A `random_state` of None becomes 0, so that what was learned can be learned again to the bit."""

    needs = ("partial_fit", "predict")

    def template(self, model: Any) -> Any:
        parameters = model.get_params().items()
        unset = [name for name, value in parameters if name.split("__")[-1] == "random_state" and value is None]
        return clone(model).set_params(**dict.fromkeys(unset, 0))

    def fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any], seen: int) -> None:
        pupil.partial_fit(inputs, outcomes)

    def ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        return np.asarray(pupil.predict(inputs))


class _Classifier(_Regressor):
    needs = ("partial_fit", "predict_proba")

    def fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any], seen: int) -> None:
        pupil.partial_fit(inputs, outcomes, classes=np.arange(self.states))

    def ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        with np.errstate(divide="ignore"):  # naive Bayes takes the log of 0 for next states that it has not seen
            return np.asarray(pupil.predict_proba(inputs))


@final
class SklearnRewards(Frame[Ensemble], RewardOracle):
    """Rewards by any regressor with `partial_fit`, such as `SGDRegressor`. See `Ensemble` and `Options`."""

    update = learn_rewards

    def __init__(self, model: Any, **options: Unpack[Options]) -> None:
        super().__init__(Ensemble(model, _Regressor, RewardTables, **options))


@final
class SklearnDynamics(Frame[Ensemble], DynamicsOracle):
    """Transitions by any classifier with `partial_fit` and `predict_proba`. See `Ensemble` and `DynamicsOptions`.

    `SGDClassifier(loss="log_loss")` fits one against the rest and normalises, which is not the multinomial likelihood:
    its probabilities may stay off however much it learns. `MLPClassifier(hidden_layer_sizes=())` is multinomial.
    """

    update = learn_transitions

    def __init__(self, model: Any, **options: Unpack[DynamicsOptions]) -> None:
        super().__init__(Ensemble(model, _Classifier, TransitionTables, **options))
