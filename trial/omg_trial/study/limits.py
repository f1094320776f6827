"""What the study file says beside the policy: when nobody is bothered, and how often an action is taken."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping

from omg_cmdp.mdp.space import Space
from omg_trial.study.table import Table


@dataclasses.dataclass(frozen=True)
class Window:
    """When people may be asked to do something, by their clock; outside of it the action is `outside`, for certain."""

    begin: datetime.time
    end: datetime.time
    outside: int

    def holds(self, time: datetime.time) -> bool:
        """Return whether `time` lies in the window, which may run over midnight."""
        if self.begin <= self.end:
            return self.begin <= time < self.end
        return time >= self.begin or time < self.end


@dataclasses.dataclass(frozen=True)
class Limits:
    """How often actions are taken, at most and at least, for each person and week."""

    most: Mapping[int, int]
    least: Mapping[int, int]
    decisions_per_week: int | None
    """Needed for `least`."""


def read_window(table: Table, actions: tuple[str, ...], space: Space) -> Window | None:
    """Return the window of a study file, if it has one."""
    if not table.content:
        return None
    outside = actions.index(table.choice("outside", actions))
    if not space.admissible[:, outside].all():
        raise table.error("outside", f"must be an action that no state forbids, got {actions[outside]!r}")
    return Window(table.time("begin"), table.time("end"), outside)


def read_limits(table: Table, actions: tuple[str, ...]) -> Limits:
    """Return the limits of a study file; `table` is that of its actions."""
    most, least = (table.table(f"{name}_per_week", optional=True) for name in ("most", "least"))
    limits = Limits(
        most={place: most.integer(name, least=0) for place, name in enumerate(actions) if name in most.content},
        least={place: least.integer(name, least=1) for place, name in enumerate(actions) if name in least.content},
        decisions_per_week=table.integer("decisions_per_week", None, least=1),
    )
    if len(limits.most) == len(actions):
        raise most.error("", "must leave an action without a limit, which is then taken")
    if limits.least and limits.decisions_per_week is None:
        raise table.error("decisions_per_week", "must be given if an action has a least number a week")
    if limits.decisions_per_week is not None and sum(limits.least.values()) > limits.decisions_per_week:
        raise least.error("", f"must sum to at most `decisions_per_week`, got {sum(limits.least.values())}")
    for place, number in limits.least.items():
        if number > limits.most.get(place, number):
            raise least.error(actions[place], f"must be at most {limits.most[place]}, its most, got {number}")
    return limits
