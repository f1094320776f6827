"""Runs in environments without tables: what was earned is known; regret, and all that needs the truth, is nan."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

from omg_cmdp.contexts import Context, keyed
from omg_cmdp.environments.gymnasium.worlds import SampledWorld
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.planning.decision import Decision
from omg_cmdp.runs.simulate import Run
from omg_cmdp.validation import FloatArray


class Seen(NamedTuple):
    """What is known of an episode where the truth is not; the names are those of `Round`."""

    episode: int
    decision: Decision
    played: Episode
    value: float = math.nan
    optimal_value: float = math.nan
    regret: float = math.nan
    differences: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    exploration: float = math.nan
    best_policy_regret: float = math.nan
    errors: tuple[float, float] = (math.nan, math.nan)
    oracles: tuple[Any, ...] = (None, None)
    charged: tuple[float, float] = (math.nan, math.nan)
    arrived: tuple[int, ...] = ()


@final
class SampledRun(Run):
    """A run in a `SampledWorld`, in the environment's units: the ledger has returns, and no regret."""

    _plays = SampledWorld

    def policy(self, context: Context) -> FloatArray:
        """Return what the agent would play now."""
        return self._decide(keyed(context)).policy

    def _account(self, number: int, decision: Decision, episode: Episode) -> Seen:
        return Seen(number, decision, episode)
