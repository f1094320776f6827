"""Step-dependent tables: one oracle per step, each of which sees one example per episode.

Tables become (H, S, A) or (H, S, A, S). For one step nothing is frozen: each oracle runs at the textbook's rate, and
the regret is the sum of H textbook bounds for T examples each: the same H·bound(T) as for one tempered oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.composite import Composite, checked_oracles
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.frame import DynamicsFrame, RewardFrame
from omg_cmdp.oracles.losses import LOG, SQUARE, Examples, Loss
from omg_cmdp.validation import FloatArray


class _Stepwise(Composite):
    """One forecaster, made of H oracles with horizon 1."""

    def __init__(self, oracles: Sequence[Any], loss: Loss) -> None:
        steps = checked_oracles(oracles, loss)
        super().__init__(steps, loss, len(steps), part_horizon=1)

    def forecasts(self, context: Context) -> FloatArray:
        tables = self.predictions(context)
        if len(self.loss.pairs(tables.shape)) != 3:
            raise ValueError(f"`oracles` must predict tables without steps, got shape {tables.shape[1:]}")
        return tables[None]

    def check(self, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike) -> None:
        """Raise if a step cannot happen for the oracle of that step."""
        for oracle, *step in zip(self.oracles, states, actions, outcomes, strict=False):  # type: ignore[arg-type]
            oracle.check_steps(*([each] for each in step))

    def learn(self, context: Context, episode: Examples) -> None:
        # A truncated episode teaches the oracles of its own steps only.
        steps = (Examples(*(part[step : step + 1] for part in episode)) for step in range(len(episode.outcomes)))
        self.teach(zip(self.oracles, steps, strict=False), context)

    def expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        return np.stack([oracle.uncertainty(context) for oracle in self.oracles])

    def draws(self, context: Context, streams: Streams) -> FloatArray:
        """Return draws of each step's oracle, independent of those of the others."""
        drawn = [oracle.draws_from(context, streams.of(step)) for step, oracle in enumerate(self.oracles)]
        return np.stack(drawn, axis=1)

    def best_loss(self) -> float:
        return float(sum(oracle.best_loss() for oracle in self.oracles))

    def bound(self, episodes: int, horizon: int) -> float:
        return float(sum(oracle.regret_bound(episodes, 1) for oracle in self.oracles[:horizon]))

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        """Return the sum; only the first step is reached by every episode, so that only its delay is constant too."""
        # Later steps may be cut off by truncation, so that their updates come irregularly.
        firsts = (constant and step == 0 for step in range(horizon))
        parts = zip(self.oracles, firsts, strict=False)
        return float(sum(oracle.delayed_regret_bound(episodes, 1, delay, constant=known) for oracle, known in parts))


@final
class StepwiseRewards(RewardFrame[_Stepwise]):
    """Reward oracles, one per step of an episode, for rewards that depend on the step: tables (H, S, A).

    The regret is the sum of H textbook bounds for T examples each, the same as for one oracle whose prediction is
    frozen for H steps.

    Parameters
    ----------
    oracles : sequence of RewardOracle
        One for each of the H steps, all different objects made with `horizon=1`.

    Examples
    --------
    >>> from omg_cmdp.oracles import CountRewards
    >>> oracle = StepwiseRewards([CountRewards(states=1, actions=2, horizon=1) for _ in range(3)])
    >>> oracle.predict("any").shape
    (3, 1, 2)
    """

    def __init__(self, oracles: Sequence[RewardOracle]) -> None:
        super().__init__(_Stepwise(oracles, SQUARE))


@final
class StepwiseDynamics(DynamicsFrame[_Stepwise]):
    """Dynamics oracles, one per step of an episode, for transitions that depend on the step: tables (H, S, A, S).

    The regret is the sum of H textbook bounds for T examples each, the same as for one oracle whose prediction is
    frozen for H steps.

    Parameters
    ----------
    oracles : sequence of DynamicsOracle
        One for each of the H steps, all different objects made with `horizon=1`.

    Examples
    --------
    >>> from omg_cmdp.oracles import CountDynamics
    >>> oracle = StepwiseDynamics([CountDynamics(states=2, actions=1, horizon=1) for _ in range(3)])
    >>> oracle.predict("any").shape
    (3, 2, 1, 2)
    """

    def __init__(self, oracles: Sequence[DynamicsOracle]) -> None:
        super().__init__(_Stepwise(oracles, LOG))
