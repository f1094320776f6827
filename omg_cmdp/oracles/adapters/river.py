"""River's online learners as oracles."""

from __future__ import annotations

from typing import Any, ClassVar, final

from numpy.typing import ArrayLike, NDArray

from omg_cmdp.oracles.adapters.kinds import EnsembleDynamics, EnsembleRewards
from omg_cmdp.oracles.adapters.replay import Replayed
from omg_cmdp.validation import FloatArray

try:
    from river.base import Classifier, Regressor
    from river.compose import Pipeline
except ImportError as error:
    raise ImportError("this oracle needs River: pip install 'omg-cmdp[river]'") from error


class _River(Replayed):
    """What both share. Features are named 0, 1, ...; a `seed` of None becomes 0, so that runs can be replayed.

    Seeds inside a list of models are not found: set them yourself.
    """

    kind: ClassVar[type[Any]]

    def _template(self, model: Any) -> Any:
        learner = [*model.steps.values()][-1] if isinstance(model, Pipeline) else model
        if not isinstance(learner, self.kind):
            raise ValueError(f"`model` must be a River {self.kind.__name__}, got {learner!r:.80}")
        return model.clone(_seeded(model._get_params()))

    def _description(self) -> str:
        return f"{self._model} {self._model._get_params()}"  # an ensemble's repr is that of an empty list

    def _fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        for x, y in zip(inputs.tolist(), outcomes.tolist(), strict=True):
            pupil.learn_one(dict(enumerate(x)), y)


@final
class RiverRewards(_River, EnsembleRewards):
    """Rewards by any River regressor, or a pipeline that ends in one. See `Ensemble` and `Replayed`."""

    kind = Regressor

    def _ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        return [pupil.predict_one(dict(enumerate(x))) for x in inputs.tolist()]


@final
class RiverDynamics(_River, EnsembleDynamics):
    """Transitions by any River classifier, or a pipeline that ends in one. See `EnsembleDynamics` and `Replayed`."""

    kind = Classifier

    def _ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        answers = [pupil.predict_proba_one(dict(enumerate(x))) for x in inputs.tolist()]
        return [[answer.get(state, 0.0) for state in range(self.states)] for answer in answers]


def _seeded(parameters: Any) -> Any:
    """Return nested parameters, mappings or pairs of a class and its own, with 0 for every seed that is None."""
    match parameters:
        case dict():
            return {key: 0 if key == "seed" and own is None else _seeded(own) for key, own in parameters.items()}
        case (type() as kind, dict() as own):
            return kind, _seeded(own)
        case _:
            return parameters
