"""The version space of several classes, one of which holds the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from omg_cmdp.contexts import Keyed
from omg_cmdp.theory.ceiling.sets import Observed, PlausibleRewards, PlausibleRows, PlausibleTransitions, VersionSpace
from omg_cmdp.validation import BoolArray, FloatArray


class _AnyOf(PlausibleRows):
    """Rows of any of several sets."""

    def __init__(self, sets: Sequence[PlausibleRows]) -> None:
        self._sets = sets

    def highest(self, step: int, values: FloatArray) -> FloatArray:
        """Return the largest bound of all sets."""
        return np.asarray(np.max([rows.highest(step, values) for rows in self._sets], axis=0))

    def possible(self, step: int) -> BoolArray:
        """Return what one of them reaches."""
        return np.asarray(np.any([rows.possible(step) for rows in self._sets], axis=0))


@final
class Union(VersionSpace):
    """What is plausible in one of several classes. Each has the whole δ: only that of the truth must not lose it."""

    def __init__(self, members: Sequence[VersionSpace], *, of_rewards: bool) -> None:
        self._members, self._of_rewards = list(members), of_rewards

    def plausible(self, context: Keyed) -> PlausibleRewards | PlausibleTransitions:
        """Return bounds for all members together, and the lists if all have one."""
        found: list[Any] = [member.plausible(context) for member in self._members if not member.refuted]
        tables = [each.tables for each in found]
        together = None
        if all(table is not None for table in tables) and len({table.shape[1] for table in tables}) == 1:
            together = np.concatenate(tables)
        if not self._of_rewards:
            return PlausibleTransitions(_AnyOf([each.rows for each in found]), together)
        low = np.min(np.broadcast_arrays(*[each.low for each in found]), axis=0)
        return PlausibleRewards(low, np.max(np.broadcast_arrays(*[each.high for each in found]), axis=0), together)

    def learn(self, context: Keyed, seen: Observed) -> None:
        """Let every member learn."""
        for member in self._members:
            member.learn(context, seen)
        self.refresh()

    def parts(self) -> dict[str, VersionSpace]:
        """Return the members."""
        return {str(number): member for number, member in enumerate(self._members)}

    def refresh(self) -> None:
        """See whether all members are refuted."""
        self.refuted = all(member.refuted for member in self._members)
