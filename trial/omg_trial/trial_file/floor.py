"""A floor: every admissible action has at least probability p, so that data can be analysed afterwards.

A policy with the floor plays π = p + (1 - A·p)·π', where π' is any policy and A the number of admissible actions. In an
MDP (f, P) it earns what π' earns in

    f'(s, a) = (1 - A·p)·f(s, a) + p·Σ_b f(s, b),    P' alike.

So the agent plans in (f', P'), and its certificate is about the best policy *with the floor*. Nothing is clipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, Oracle, RewardOracle
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.persistence import State
from omg_cmdp.validation import FloatArray


@final
class Floor:
    """The least probability of every admissible action.

    Parameters
    ----------
    space : Space
        Its admissible actions get the floor.
    probability : float
        At most 1/A, where A is the number of actions, as the trial file is checked; 0 for no floor.

    Examples
    --------
    >>> floor = Floor(Space(states=1, actions=2, horizon=1), 0.2)
    >>> floor.policy(np.array([[[1.0, 0.0]]])).tolist()
    [[[0.8, 0.2]]]
    """

    def __init__(self, space: Space, probability: float) -> None:
        self.probability = probability
        self.least: FloatArray = np.where(space.admissible, self.probability, 0.0)
        """(S, A)."""
        self.rest: FloatArray = 1.0 - self.least.sum(axis=1, keepdims=True)
        """(S, 1): 1 - A·p."""

    def policy(self, planned: FloatArray) -> FloatArray:
        """Return π of π', (H, S, A)."""
        return np.asarray(self.least + self.rest * planned)

    def rewards(self, table: FloatArray) -> FloatArray:
        """Return f' of f, (..., S, A)."""
        return np.asarray(self.rest * table + (self.least * table).sum(axis=-1, keepdims=True))

    def transitions(self, table: FloatArray) -> FloatArray:
        """Return P' of P, (..., S, A, S)."""
        rest, least = self.rest[..., None], self.least[..., None]
        return np.asarray(rest * table + (least * table).sum(axis=-2, keepdims=True))


class _Floored(Oracle):
    """An oracle that learns what happens, and predicts what would happen under the floor.

    Its loss, bounds and state are those of the oracle inside. An error of f' is a mean of errors of f, whose square is
    at most the mean of their squares.
    """

    def __init__(
        self, oracle: RewardOracle | DynamicsOracle, floor: Floor, floored: Callable[[FloatArray], FloatArray]
    ) -> None:
        self.oracle, self.floor, self.floored = oracle, floor, floored
        self.horizon, self.surely_learns = oracle.horizon, oracle.surely_learns

    def predict(self, context: Context) -> FloatArray:
        return self.floored(self.oracle.predict(context))

    def draws(self, context: Context, count: int, generator: np.random.Generator) -> FloatArray:
        return self.floored(self.oracle.draws(context, count, generator))

    def draws_from(self, context: Context, streams: Streams) -> FloatArray:
        return self.floored(self.oracle.draws_from(context, streams))

    @property
    def loss(self) -> float:  # type: ignore[override]
        return self.oracle.loss

    def best_loss(self) -> float:
        return self.oracle.best_loss()

    def uncertainty(self, context: Context) -> FloatArray:
        return self.floor.rewards(self.oracle.uncertainty(context))

    def regret_bound(self, episodes: int, horizon: int) -> float:
        return self.oracle.regret_bound(episodes, horizon)

    def delayed_regret_bound(self, episodes: int, horizon: int, delay: int, *, constant: bool = False) -> float:
        return self.oracle.delayed_regret_bound(episodes, horizon, delay, constant=constant)

    def check_steps(self, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike) -> None:
        self.oracle.check_steps(states, actions, outcomes)

    def update(self, context: Context, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn what was done: the action that was drawn, whether the plan or the floor wanted it."""
        self.oracle.update(context, states, actions, outcomes)

    def state(self) -> dict[str, NDArray[Any]]:
        return self.oracle.state()

    def load_state(self, state: State) -> None:
        self.oracle.load_state(state)


@final
class FlooredRewards(_Floored, RewardOracle):
    """Rewards under a floor."""

    def __init__(self, oracle: RewardOracle, floor: Floor) -> None:
        super().__init__(oracle, floor, floor.rewards)


@final
class FlooredDynamics(_Floored, DynamicsOracle):
    """Dynamics under a floor."""

    def __init__(self, oracle: DynamicsOracle, floor: Floor) -> None:
        super().__init__(oracle, floor, floor.transitions)
