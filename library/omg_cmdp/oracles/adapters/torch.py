"""PyTorch modules as oracles: an episode is one batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Unpack, final

from numpy.typing import NDArray

from omg_cmdp.oracles.adapters.ensemble import Ensemble
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.adapters.models import DynamicsOptions, ModelKind, Options
from omg_cmdp.oracles.adapters.tensors import Trained, arrays_of, load_arrays, torch
from omg_cmdp.oracles.frame import DynamicsFrame, RewardFrame
from omg_cmdp.persistence import State
from omg_cmdp.validation import FloatArray, positive_integer


class _Regressor(ModelKind):
    """A module with an optimiser, which steps `passes` times an episode."""

    needs = ("forward", "state_dict")

    def __init__(self, states: int, optimizer: Callable[[Any], Any], passes: int) -> None:
        super().__init__(states)
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
        # Dropout and batch norm behave differently in training.
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


class _Modules(Ensemble):
    """An ensemble that is saved as the tensors of its modules and optimisers, not as a log."""

    def remember(self, examples: FloatArray) -> None:
        """There is no log."""

    def memory(self) -> dict[str, NDArray[Any]]:
        return arrays_of(self.copies)

    def reads(self, name: str) -> bool:
        """Optimisers have tensors after their first step only."""
        return name.startswith("member")

    def revive(self, memory: State) -> None:
        # Into fresh copies: a state that does not fit leaves the old ones as they are.
        self.copies = load_arrays(self.fresh(), memory)


@final
class TorchRewards(RewardFrame[_Modules]):
    """Rewards by a PyTorch module (n, d) -> (n,) or (n, 1), under square loss; an episode is a batch.

    It is saved as the tensors of its modules and optimisers. The uncertainty is a proxy, the jackknife's, and
    `regret_bound` is inf: aggregate the oracle with one that has a bound.

    Parameters
    ----------
    model : torch.nn.Module
        It is copied as it is now: all copies start alike.
    optimizer : callable
        parameters -> optimiser, such as `lambda p: torch.optim.Adam(p, lr=0.01)`.
    passes : int, default 1
        The number of the optimiser's steps per episode, each on the whole episode.
    **options
        Those of `adapters.models.Options`: `states`, `actions` and `horizon`, which are required, and `features`,
        `admissible` and `members`.

    Examples
    --------
    >>> import torch
    >>> model, adam = torch.nn.Linear(4, 1), lambda parameters: torch.optim.Adam(parameters, lr=0.05)
    >>> oracle = TorchRewards(model, optimizer=adam, states=1, actions=2, horizon=1)  # 1 number, and 3 one-hot
    >>> for _ in range(200):
    ...     oracle.update([1.0], states=[0], actions=[1], rewards=[0.9])
    >>> bool(abs(oracle.predict([1.0])[0, 1] - 0.9) < 0.05)
    True
    """

    def __init__(
        self, model: Any, *, optimizer: Callable[[Any], Any], passes: int = 1, **options: Unpack[Options]
    ) -> None:
        learner = functools.partial(_Regressor, optimizer=optimizer, passes=passes)
        super().__init__(_Modules(model, learner, RewardTables, **options))


@final
class TorchDynamics(DynamicsFrame[_Modules]):
    """Transitions by a PyTorch module (n, d) -> (n, S) of logits, under log loss; an episode is a batch.

    It is saved as the tensors of its modules and optimisers. The uncertainty is a proxy, the jackknife's, and
    `regret_bound` is inf: aggregate the oracle with one that has a bound.

    Parameters
    ----------
    model : torch.nn.Module
        It is copied as it is now: all copies start alike.
    optimizer : callable
        parameters -> optimiser, such as `lambda p: torch.optim.Adam(p, lr=0.01)`.
    passes : int, default 1
        The number of the optimiser's steps per episode, each on the whole episode.
    **options
        Those of `adapters.models.DynamicsOptions`: `states`, `actions` and `horizon`, which are required, and
        `features`, `admissible`, `members`, `support` and `floor`.

    Examples
    --------
    >>> import torch
    >>> model, adam = torch.nn.Linear(4, 2), lambda parameters: torch.optim.Adam(parameters, lr=0.05)
    >>> oracle = TorchDynamics(model, optimizer=adam, states=2, actions=1, horizon=1)
    >>> for _ in range(200):
    ...     oracle.update([1.0], states=[0], actions=[0], next_states=[1])
    >>> bool(oracle.predict([1.0])[0, 0, 1] > 0.9)
    True
    """

    def __init__(
        self, model: Any, *, optimizer: Callable[[Any], Any], passes: int = 1, **options: Unpack[DynamicsOptions]
    ) -> None:
        learner = functools.partial(_Classifier, optimizer=optimizer, passes=passes)
        super().__init__(_Modules(model, learner, TransitionTables, **options))
