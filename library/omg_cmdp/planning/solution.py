"""What a plan returns: the policy, its proof, and why the planner stopped."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from omg_cmdp.validation import FloatArray

_NOTHING = np.empty(0)


class Status(enum.Enum):
    """Why the planner stopped, or what an agent plays in its place; the value is the sentence shown to the user.

    Examples
    --------
    >>> Status.SOLVED.value
    'The certified gap is within tolerance.'
    """

    SOLVED = "The certified gap is within tolerance."
    STALLED = "No further progress at double precision; the certificate tells how far the plan may be from optimal."
    INFEASIBLE = "No policy meets the budgets; `prices` prove it, and `least_costs` are possible, each alone."
    NO_INTERIOR = "No policy is below all budgets; they were raised by 5e-8 of the horizon times the largest cost."
    SPENT = "What is left of the total budget might not suffice for an episode; the policy of least cost is played."
    CAUTIOUS = "The plan is mixed with the cheapest policy, so that it keeps the budgets in every plausible model."
    SAFE_POLICY = "No policy is known to keep the budgets in every plausible model; the given safe policy is played."
    UNSAFE = "No policy is known to keep the budgets in every plausible model; that of least excess is played."


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Solution:
    """A policy for the regularised program, with a proof of how good it is. `plan` makes it.

    Attributes
    ----------
    policy : array (H, S, A)
        The plan; uniform over the admissible actions where a state cannot be reached.
    occupancy : array (H, S, A)
        Its exact occupancy measure, zero where a state cannot be reached.
    values : array (H, S)
        The dual V, whose slacks V_h(s) - r - P·V_{h+1} are positive wherever the occupancy is.
    certificate : float
        A bound on γ·(L(q*) - L(q)), or on L(q*) - L(q) for a plan with uncertainty; `omg_cmdp.certificate` recomputes
        it in plain numpy.
    status : Status
        Why the planner stopped.
    iterations : int
        Steps of the interior-point method.
    prices : array (J,)
        With budgets, the prices λ >= 0: what one unit more of each budget would add to the optimum. If the status is
        `INFEASIBLE`, weights of the costs whose sum exceeds that of the budgets under every policy (`least_excess`).
    costs : array (J,)
        With budgets, what the policy costs, computed from its own occupancy.
    least_costs : array (J,)
        The least that each cost can be, alone; only if the status is `INFEASIBLE` or `NO_INTERIOR`.

    Examples
    --------
    >>> import numpy as np
    >>> from omg_cmdp import TabularMDP, plan
    >>> solution = plan(TabularMDP(transitions=np.ones((1, 2, 1)), rewards=[[1.0, 0.0]], horizon=1), gamma=10.0)
    >>> solution.status.name, solution.certificate <= 1e-9
    ('SOLVED', True)
    """

    def __repr__(self) -> str:
        horizon, states, actions = self.policy.shape
        sizes = f"horizon {horizon}, {states} states, {actions} actions"
        head = f"Solution: {self.status.name} after {self.iterations} iterations, certificate {self.certificate:.2g}"
        return f"{head}\n  {self.status.value}\n  policy, occupancy and values for {sizes}"

    policy: FloatArray
    occupancy: FloatArray
    values: FloatArray
    certificate: float
    status: Status
    iterations: int
    prices: FloatArray = dataclasses.field(default_factory=lambda: _NOTHING)
    costs: FloatArray = dataclasses.field(default_factory=lambda: _NOTHING)
    least_costs: FloatArray = dataclasses.field(default_factory=lambda: _NOTHING)


def as_solution(
    found: Sequence[Any], scale: float, tolerance: float, prices: FloatArray = _NOTHING, costs: FloatArray = _NOTHING
) -> Solution:
    """Return what the solver found as a `Solution`; `scale` turns its gap into the certificate."""
    policy, values, occupancy, gap, iterations = found
    certificate = gap * scale
    if certificate != certificate:  # NaN, from numbers beyond the range of floats: nothing is proven
        certificate = np.inf
    return Solution(
        policy=policy,
        occupancy=occupancy,
        values=values,
        certificate=certificate,
        status=Status.SOLVED if certificate <= tolerance else Status.STALLED,
        iterations=iterations,
        prices=prices,
        costs=costs,
    )
