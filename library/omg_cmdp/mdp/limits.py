"""What episodes cost and may cost, context by context: tables, or functions of the context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context, unchanging
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.mdp.budgets import Budgets, checked_budgets
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import float_table

Given = ArrayLike | Callable[[Any], ArrayLike]
"""One table for all contexts, or context -> table."""


class CostLimits:
    """Costs and budgets of every context, checked when they are made if they are tables, and else when asked for.

    Parameters
    ----------
    space : Space
        Sizes and horizon.
    costs : array (J, S, A) or (J, H, S, A), or callable
        What decisions cost; a function takes a context.
    budgets : array (J,), or callable
        What an episode may cost in expectation.

    Examples
    --------
    >>> space = Space(states=1, actions=2, horizon=3)
    >>> limits = CostLimits(space, [[[0.0, 2.0]]], lambda age: [1.0 if age > 60 else 3.0])
    >>> limits(70).given
    array([1.])
    """

    def __init__(self, space: Space, costs: Given, budgets: Given) -> None:
        self._space = space
        self._costs = costs if callable(costs) else float_table("costs", costs)
        self._budgets = budgets if callable(budgets) else float_table("budgets", budgets)
        self._always = None if callable(costs) or callable(budgets) else checked_budgets(space, costs, budgets)

    def __call__(self, context: Context) -> Budgets:
        """Return the costs and budgets of a context."""
        if self._always is not None:
            return Budgets(*(table.copy() for table in self._always))  # the caller's own
        costs, budgets = (
            each(unchanging(context)) if callable(each) else each for each in (self._costs, self._budgets)
        )
        found = checked_budgets(self._space, costs, budgets)
        assert found is not None
        return found

    def __str__(self) -> str:
        """A text by which saved agents know their costs and budgets again."""
        told = ("a function" if callable(each) else fingerprint(each) for each in (self._costs, self._budgets))
        return ", budgets ".join(told)


def limits_of(space: Space, costs: Given | None, budgets: Given | None) -> CostLimits | None:
    """Return the limits, None if there are none; raise if one of the two is missing."""
    if costs is None and budgets is None:
        return None
    if costs is None or budgets is None:
        raise ValueError(f"`costs` and `budgets` come together, got {'costs' if budgets is None else 'budgets'} alone")
    return CostLimits(space, costs, budgets)
