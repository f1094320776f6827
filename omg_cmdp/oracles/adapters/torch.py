"""PyTorch modules as oracles: an episode is one batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Unpack, final

from numpy.typing import ArrayLike, NDArray

from omg_cmdp.oracles.adapters.ensemble import Ensemble, Learner, Options
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.adapters.tensors import Trained, arrays_of, load_arrays, torch
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.frame import Frame, learn_rewards, learn_transitions
from omg_cmdp.persistence import State
from omg_cmdp.validation import FloatArray, positive_integer


class _Regressor(Learner):
    """A module with an optimiser, which steps `passes` times an episode."""

    needs = ("forward", "state_dict")

    def __init__(self, optimizer: Callable[[Any], Any], passes: int) -> None:
        self._optimizer, self._passes = optimizer, positive_integer("passes", passes)

    def fresh(self, template: Any) -> Trained:
        module = super().fresh(template)
        return module, self._optimizer(module.parameters())

    def describe(self, template: Any) -> str:
        module, optimizer = self.fresh(template)
        return f"{module!r}, {next(module.parameters()).dtype}, {optimizer!r}, passes {self._passes}"

    def loss(self, outputs: Any, outcomes: Any) -> Any:
        return torch.nn.functional.mse_loss(outputs.reshape(outcomes.shape), outcomes.to(outputs))

    def fit(self, pupil: Trained, inputs: FloatArray, outcomes: NDArray[Any], seen: int) -> None:
        module, optimizer = pupil[0].train(), pupil[1]
        questions = torch.from_numpy(inputs).to(next(module.parameters()))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seen)  # for dropout; the caller's numbers stay as they were
            for _ in range(self._passes):
                optimizer.zero_grad()
                self.loss(module(questions), torch.from_numpy(outcomes)).backward()
                optimizer.step()

    def ask(self, pupil: Trained, inputs: FloatArray) -> Any:
        questions = torch.from_numpy(inputs).to(next(pupil[0].parameters()))
        with torch.no_grad():
            return pupil[0].eval()(questions).double().cpu().numpy()


class _Classifier(_Regressor):
    def loss(self, outputs: Any, outcomes: Any) -> Any:
        return torch.nn.functional.cross_entropy(outputs, outcomes.to(outputs.device))

    def ask(self, pupil: Trained, inputs: FloatArray) -> Any:
        return torch.from_numpy(super().ask(pupil, inputs)).softmax(dim=-1).numpy()


class Modules(Ensemble):
    """An ensemble that is saved as the tensors of its modules and optimisers, not as a log."""

    def remember(self, examples: FloatArray) -> None:
        """There is no log."""

    def memory(self) -> dict[str, NDArray[Any]]:
        """Return all tensors."""
        return arrays_of(self.copies)

    def revive(self, memory: State) -> None:
        """Make the copies again from their tensors."""
        self.copies = load_arrays(self.fresh(), memory)


@final
class TorchRewards(Frame[Modules], RewardOracle):
    """Rewards by a module (n, d) -> (n,) or (n, 1), under square loss. See `Ensemble` and `Options`.

    `optimizer`, such as `lambda p: torch.optim.Adam(p, lr=0.01)`, makes one; it steps `passes` times an episode. The
    copies start alike.
    """

    update = learn_rewards

    def __init__(
        self,
        model: Any,
        *,
        optimizer: Callable[[Any], Any],
        passes: int = 1,
        states: int,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(Modules(model, _Regressor(optimizer, passes), RewardTables, states=states, **options))


@final
class TorchDynamics(Frame[Modules], DynamicsOracle):
    """Transitions by a module (n, d) -> (n, S) of logits, under log loss. See `TorchRewards`.

    Its answers are cut to the `support` (S, A, S), and to about `floor` or more in it.
    """

    update = learn_transitions

    def __init__(
        self,
        model: Any,
        *,
        optimizer: Callable[[Any], Any],
        passes: int = 1,
        states: int,
        support: ArrayLike | None = None,
        floor: float = 1e-4,
        **options: Unpack[Options],
    ) -> None:
        tables = functools.partial(TransitionTables, support=support, floor=floor)
        super().__init__(Modules(model, _Classifier(optimizer, passes), tables, states=states, **options))
