"""Runs in environments without tables: what was earned is known; regret, and all that needs the truth, is nan."""

from __future__ import annotations

import math
from typing import Any, final

from omg_cmdp.contexts import Context, keyed
from omg_cmdp.environments.gymnasium.worlds import SampledWorld
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.planning.decision import Decision
from omg_cmdp.runs.simulate import Run
from omg_cmdp.theory.rounds import NOTHING, Round
from omg_cmdp.validation import FloatArray


class Seen(Round):
    """A round without `truth` and `occupancy`: what is known of an episode where the optimum is not."""

    @classmethod
    def of(cls, number: int, decision: Decision, played: Episode) -> Seen:
        """Return the round of an episode of which nothing more is known."""
        unknown: Any = None
        return cls(number, unknown, decision, played, occupancy=unknown, value=math.nan)

    @property
    def optimal_value(self) -> float:
        """nan, and with it the regret."""
        return math.nan

    @property
    def budgets(self) -> FloatArray:
        """None are known."""
        return NOTHING


@final
class SampledRun(Run):
    """A run in a `SampledWorld`, in the environment's units: the ledger has returns, and no regret."""

    _plays = SampledWorld

    def policy(self, context: Context) -> FloatArray:
        """Return what the agent would play now."""
        return self._decide(keyed(context)).policy

    def _account(self, number: int, decision: Decision, episode: Episode) -> Seen:
        return Seen.of(number, decision, episode)
