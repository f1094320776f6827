"""The rows of an audit: one statement each, with a verdict."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Sequence, Set
from typing import Any

from omg_lab.audit.statements import STATEMENTS, Statement

ROUNDING = 1e-9
"""A statement holds if left <= right + this·(1 + |left| + |right|)."""


def at_most(left: float, right: float) -> bool:
    """Return whether left <= right, up to rounding; of nan that is not known, and False.

    >>> at_most(1.0, 1.0 - 1e-12), at_most(1.0, 0.9), at_most(float("nan"), 0.0)
    (True, False, False)
    """
    return left < math.inf and left <= right + ROUNDING * (1.0 + abs(left) + abs(right))


@dataclasses.dataclass(frozen=True, kw_only=True)
class AuditRow(Statement):
    """One statement: how often it was checked and violated, and its two sides where they were closest."""

    checks: int
    """Number of times it was checked."""
    violations: int
    """Number of checks in which the left side exceeded the right."""
    unproven: int
    """Number of checks in which a side could not be computed, or the right side was infinite, which shows nothing."""
    vacuous: int
    """Number of checks in which the right side was more than the left can ever be."""
    episode: int
    """The episode in which the slack is smallest; for statements about the whole run, its last episode."""
    left: float
    """The left side in that episode."""
    right: float
    """The right side in that episode."""
    binds_from: float = math.nan
    """For a statement about the run, the T from which its right side is below T·H, if what an episode costs and what
    the oracles regret stay as they are; inf if it never is. nan for the other statements."""

    @property
    def slack(self) -> float:
        """The right side minus the left."""
        return self.right - self.left

    @property
    def holds(self) -> bool:
        """Whether it was checked every time, and never violated."""
        return self.violations == 0 and self.unproven == 0

    @property
    def verdict(self) -> str:
        """The word "violated", "not proven", "vacuous" or "holds".

        A vacuous statement holds, but says nothing, because its right side is more than an agent can lose.
        """
        if self.holds:
            return "vacuous" if self.vacuous == self.checks else "holds"
        return "violated" if self.violations else "not proven"

    @property
    def remark(self) -> str:
        """The verdict; for a vacuous statement about the run also the T from which it says something."""
        if self.verdict != "vacuous" or math.isnan(self.binds_from):
            return self.verdict
        return "vacuous here, for any T" if self.binds_from == math.inf else f"vacuous here, T < {self.binds_from:.2g}"

    def record(self) -> dict[str, Any]:
        """Return the fields and the verdict as JSON can hold them: None for inf and nan."""
        fields = dataclasses.asdict(self) | {"verdict": self.verdict}
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}


class Check:
    """The counts for the row of one statement, under the names of its fields."""

    def __init__(self) -> None:
        self.checks = self.violations = self.unproven = self.vacuous = self.episode = 0
        self.left = self.right = self.binds_from = math.nan

    def note(self, episode: int, left: float, right: float, most: float) -> None:
        """Compare the two sides in one episode; the left is at most `most`, whatever happens."""
        self.checks += 1
        left, right = float(left), float(right)
        if math.isnan(left) or not right < math.inf:
            self.unproven += 1
        else:
            self.vacuous += right >= most
            self.violations += not at_most(left, right)
            if not right - left >= self.right - self.left:
                self.episode, self.left, self.right = episode, left, right

    def row(self, name: str) -> AuditRow:
        """Return the row."""
        return AuditRow(**vars(STATEMENTS[name]), **vars(self))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """One statement over several runs."""

    name: str
    """Its name in the catalogue."""
    kind: str
    """One of `KINDS`."""
    runs: int
    """The number of runs in which it was checked."""
    violated: int
    """The number of runs in which it failed."""
    unproven: int
    """The number of runs in which it did not fail, and was not shown."""
    vacuous: int
    """The number of runs in which it said nothing."""
    allowed: float
    """The probability with which it may fail in a run."""
    smallest_slack: float
    """The right side minus the left, where that is smallest over all runs."""

    @classmethod
    def of(cls, statement: Statement, rows: Sequence[AuditRow], delta: float) -> Summary:
        """Return the summary of one statement over its rows in several runs."""
        counted = collections.Counter(row.verdict for row in rows)
        return cls(
            name=statement.name,
            kind=statement.kind,
            runs=len(rows),
            violated=counted["violated"],
            unproven=counted["not proven"],
            vacuous=counted["vacuous"],
            allowed=statement.failure * delta,
            smallest_slack=min((row.slack for row in rows if not math.isnan(row.slack)), default=math.nan),
        )

    @property
    def surprise(self) -> float:
        """The probability of at least that many failures if each run failed with the probability allowed."""
        from scipy.special import bdtrc  # imported with the first use: the package's import stays light

        return float(bdtrc(self.violated - 1, self.runs, self.allowed))


def aligned(cells: Sequence[tuple[str, ...]], right: Set[int]) -> str:
    """Return a table as plain text; the columns `right` hold numbers.

    >>> print(aligned([("name", "count"), ("optimum", "12")], right={1}))
    name     count
    optimum     12
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    line = "  ".join(f"{{:{'>' if i in right else '<'}{width}}}" for i, width in enumerate(widths))
    return "\n".join(line.format(*entries).rstrip() for entries in cells)
