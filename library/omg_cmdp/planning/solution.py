"""What a plan returns: the policy, its proof, and why the planner stopped."""

from __future__ import annotations

import dataclasses
import enum

from omg_cmdp.validation import FloatArray


class Status(enum.Enum):
    """Why the planner stopped; the value is the sentence shown to the user."""

    SOLVED = "The certified gap is within tolerance."
    STALLED = "No further progress at double precision; the certificate tells how far the plan may be from optimal."


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Solution:
    """A policy for the regularised program, with a proof of how good it is.

    `policy` (H, S, A) is uniform over the admissible actions where a state cannot be reached. `occupancy` (H, S, A) is
    its exact occupancy measure, and `values` (H, S) the dual, whose slacks V_h(s) - r - P·V_{h+1} are positive wherever
    the occupancy is; both are zero where a state cannot be reached. `certificate` bounds γ·(L(q*) - L(q)), or
    L(q*) - L(q) for a plan with uncertainty; `omg_cmdp.certificate` recomputes it in plain numpy.
    """

    policy: FloatArray
    occupancy: FloatArray
    values: FloatArray
    certificate: float
    status: Status
    iterations: int
