"""PyTorch modules as oracles: an episode is one batch."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, final

from numpy.typing import NDArray

from omg_cmdp.oracles.adapters.ensemble import Ensemble
from omg_cmdp.oracles.adapters.kinds import EnsembleDynamics, EnsembleRewards
from omg_cmdp.oracles.adapters.tensors import Trained, arrays_of, load_arrays, torch
from omg_cmdp.persistence import State
from omg_cmdp.validation import FloatArray, positive_integer


class _Torch(Ensemble):
    """What both share: copies that start alike, saved as the tensors of their modules and optimisers.

    `optimizer`, such as `lambda p: torch.optim.Adam(p, lr=0.01)`, makes one; it steps `passes` times an episode.
    """

    needs = ("forward", "state_dict")

    def __init__(self, model: Any, *, optimizer: Callable[[Any], Any], passes: int = 1, **others: Any) -> None:
        self._optimizer, self.passes = optimizer, positive_integer("passes", passes)
        super().__init__(model, **others)

    @abc.abstractmethod
    def _loss(self, outputs: Any, outcomes: Any) -> Any:
        """Return the mean loss of the module's `outputs`."""

    def _fresh(self) -> list[Trained]:
        return [(module, self._optimizer(module.parameters())) for module in super()._fresh()]

    def _description(self) -> str:
        module, optimizer = self._fresh()[0]
        return f"{module!r}, {next(module.parameters()).dtype}, {optimizer!r}, passes {self.passes}"

    def _fit(self, pupil: Trained, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        module, optimizer = pupil[0].train(), pupil[1]
        questions = torch.from_numpy(inputs).to(next(module.parameters()))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self._seen())  # for dropout; the caller's numbers stay as they were
            for _ in range(self.passes):
                optimizer.zero_grad()
                self._loss(module(questions), torch.from_numpy(outcomes)).backward()
                optimizer.step()

    def _ask(self, pupil: Trained, inputs: FloatArray) -> Any:
        questions = torch.from_numpy(inputs).to(next(pupil[0].parameters()))
        with torch.no_grad():
            return pupil[0].eval()(questions).double().cpu().numpy()

    def _memory(self) -> dict[str, NDArray[Any]]:
        return arrays_of(self._copies)

    def _revive(self, memory: State) -> None:
        self._copies = load_arrays(self._fresh(), memory)


@final
class TorchRewards(_Torch, EnsembleRewards):
    """Rewards by a module (n, d) -> (n,) or (n, 1), under square loss. See `_Torch` and `Ensemble`."""

    def _loss(self, outputs: Any, outcomes: Any) -> Any:
        return torch.nn.functional.mse_loss(outputs.reshape(outcomes.shape), outcomes.to(outputs))


@final
class TorchDynamics(_Torch, EnsembleDynamics):
    """Transitions by a module (n, d) -> (n, S) of logits, under log loss. See `_Torch` and `EnsembleDynamics`."""

    def _loss(self, outputs: Any, outcomes: Any) -> Any:
        return torch.nn.functional.cross_entropy(outputs, outcomes.to(outputs.device))

    def _ask(self, pupil: Trained, inputs: FloatArray) -> Any:
        return torch.from_numpy(super()._ask(pupil, inputs)).softmax(dim=-1).numpy()
