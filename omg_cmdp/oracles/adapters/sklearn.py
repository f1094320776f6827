"""scikit-learn's incremental learners as oracles."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.oracles.adapters.kinds import EnsembleDynamics, EnsembleRewards
from omg_cmdp.oracles.adapters.replay import Replayed
from omg_cmdp.validation import FloatArray

try:
    from sklearn.base import clone
except ImportError as error:
    raise ImportError("this oracle needs scikit-learn: pip install 'omg-cmdp[sklearn]'") from error


class _Sklearn(Replayed):
    """What both share. A `random_state` of None becomes 0, so that what was learned can be learned again to the bit."""

    def _template(self, model: Any) -> Any:
        parameters = model.get_params().items()
        unset = [name for name, value in parameters if name.split("__")[-1] == "random_state" and value is None]
        return clone(model).set_params(**dict.fromkeys(unset, 0))


@final
class SklearnRewards(_Sklearn, EnsembleRewards):
    """Rewards by any regressor with `partial_fit`, such as `SGDRegressor`. See `Ensemble` and `Replayed`."""

    needs = ("partial_fit", "predict")

    def _fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        pupil.partial_fit(inputs, outcomes)

    def _ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        return np.asarray(pupil.predict(inputs))


@final
class SklearnDynamics(_Sklearn, EnsembleDynamics):
    """Transitions by any classifier with `partial_fit` and `predict_proba`. See `EnsembleDynamics` and `Replayed`.

    `SGDClassifier(loss="log_loss")` fits one against the rest and normalises, which is not the multinomial likelihood:
    its probabilities may stay off however much it learns. `MLPClassifier(hidden_layer_sizes=())` is multinomial.
    """

    needs = ("partial_fit", "predict_proba")

    def _fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        pupil.partial_fit(inputs, outcomes, classes=np.arange(self.states))

    def _ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        with np.errstate(divide="ignore"):  # naive Bayes takes the log of 0 for next states that it has not seen
            return np.asarray(pupil.predict_proba(inputs))
