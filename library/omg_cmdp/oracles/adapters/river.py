"""River's online learners as oracles."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack, final

from numpy.typing import ArrayLike, NDArray

from omg_cmdp.oracles.adapters.ensemble import Ensemble
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.adapters.models import DynamicsOptions, ModelKind, Options
from omg_cmdp.oracles.frame import DynamicsFrame, RewardFrame
from omg_cmdp.validation import FloatArray

try:
    from river.base import Classifier, Regressor
    from river.compose import Pipeline
except ImportError as error:
    raise ImportError("this oracle needs River: pip install river") from error


class _Regressor(ModelKind):
    """Features are named 0, 1, ...; a `seed` of None becomes 0, so that runs can be replayed.

    Seeds inside a list of models are not found: set them yourself.
    """

    kind: ClassVar[type[Any]] = Regressor

    def template(self, model: Any) -> Any:
        learner = [*model.steps.values()][-1] if isinstance(model, Pipeline) else model
        if not isinstance(learner, self.kind):
            raise ValueError(f"`model` must be a River {self.kind.__name__}, got {learner!r:.80}")
        return model.clone(_seeded(model._get_params()))

    def fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any], seen: int) -> None:
        for x, y in zip(inputs.tolist(), outcomes.tolist(), strict=True):
            pupil.learn_one(dict(enumerate(x)), y)

    def ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        return [pupil.predict_one(dict(enumerate(x))) for x in inputs.tolist()]


class _Classifier(_Regressor):
    kind = Classifier

    def ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        answers = [pupil.predict_proba_one(dict(enumerate(x))) for x in inputs.tolist()]
        # River answers with the classes that it has seen; the floor covers the others.
        return [[answer.get(state, 0.0) for state in range(self.states)] for answer in answers]


@final
class RiverRewards(RewardFrame[Ensemble]):
    """Rewards by a River regressor, or a pipeline that ends in one.

    The uncertainty is a proxy, the jackknife's, and `regret_bound` is inf: aggregate the oracle with one that has a
    bound.

    Parameters
    ----------
    model : river.base.Regressor
        It is cloned with its settings; a `seed` of None becomes 0. Seeds inside a list of models are not found: set
        them.
    **options
        Those of `adapters.models.Options`: `states`, `actions` and `horizon`, which are required, and `features`,
        `admissible` and `members`.

    Examples
    --------
    >>> from river.tree import HoeffdingTreeRegressor
    >>> oracle = RiverRewards(HoeffdingTreeRegressor(grace_period=20), states=1, actions=2, horizon=1)
    >>> for _ in range(50):
    ...     oracle.update([1.0], states=[0], actions=[1], rewards=[0.9])
    >>> oracle.predict([1.0])[0, 1].round(2)
    np.float64(0.9)
    """

    def __init__(self, model: Any, **options: Unpack[Options]) -> None:
        super().__init__(Ensemble(model, _Regressor, RewardTables, **options))


@final
class RiverDynamics(DynamicsFrame[Ensemble]):
    """Transitions by a River classifier, or a pipeline that ends in one.

    The uncertainty is a proxy, the jackknife's, and `regret_bound` is inf: aggregate the oracle with one that has a
    bound.

    Parameters
    ----------
    model : river.base.Classifier
        It is cloned with its settings; a `seed` of None becomes 0. Seeds inside a list of models are not found: set
        them.
    **options
        Those of `adapters.models.DynamicsOptions`: `states`, `actions` and `horizon`, which are required, and
        `features`, `admissible`, `members`, `support` and `floor`.

    Examples
    --------
    >>> from river.naive_bayes import GaussianNB
    >>> oracle = RiverDynamics(GaussianNB(), states=2, actions=1, horizon=1)
    >>> for _ in range(20):
    ...     oracle.update([1.0], states=[0], actions=[0], next_states=[1])
    >>> oracle.predict([1.0])[0].round(2)
    array([[0., 1.]])
    """

    def __init__(self, model: Any, **options: Unpack[DynamicsOptions]) -> None:
        super().__init__(Ensemble(model, _Classifier, TransitionTables, **options))


def _seeded(parameters: Any) -> Any:
    """Return nested parameters, mappings or pairs of a class and its own, with 0 for every seed that is None."""
    match parameters:
        case dict():
            return {key: 0 if key == "seed" and own is None else _seeded(own) for key, own in parameters.items()}
        case (type() as kind, dict() as own):
            return kind, _seeded(own)
        case _:
            return parameters
