"""Two statements that need no truth to be known: the regret ceiling, and that the classes are not refuted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from omg_cmdp.mdp.space import Space
from omg_cmdp.theory.ceiling.ceiling import RegretCeiling
from omg_cmdp.theory.rounds import Round
from omg_lab.audit.claims import mixture_defect
from omg_lab.audit.statements import Sides


class _Told(NamedTuple):
    """What a ceiling needs to know of an agent; of its oracles only their class is used."""

    space: Space
    reward_oracle: Any
    dynamics_oracle: Any
    reward_range: tuple[float, float] | None = None
    return_range: tuple[float, float] | None = None


class CeilingCheck:
    """The regret of a run beside its ceiling; nothing is checked where no set of plausible models is known."""

    def __init__(self) -> None:
        self._ceiling: RegretCeiling | None = None
        self._regret, self._episodes = 0.0, 0

    def sides(self, this: Round) -> Iterator[Sides]:
        """Yield both statements after an episode."""
        if self._episodes == 0 and None not in this.oracles:
            made = RegretCeiling(_Told(this.truth.mdp.space, *this.oracles))
            self._ceiling = None if made.reason else made
        self._episodes += 1
        self._regret += this.regret
        if self._ceiling is None:
            return
        rewards = this.played.rewards
        if mixture_defect(this.decision) > 0.0 or not (rewards >= 0.0).all() or not (rewards <= 1.0).all():
            self._ceiling = None  # no policies, or rewards in other units: nothing more can be said of the run
            yield "ceiling", math.nan, 0.0
            return
        self._ceiling(this)
        yield "ceiling", self._regret, self._ceiling.total
        yield "class not refuted", float(bool(self._ceiling.reason)), 0.0
