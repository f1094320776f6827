"""An audit: every inequality of the analysis, checked on every episode of a run."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from omg_cmdp.theory import statements
from omg_cmdp.theory.quantities import Comparison, barrier
from omg_cmdp.theory.rounds import Round
from omg_cmdp.theory.statements import STATEMENTS, Sides, Statement
from omg_cmdp.theory.totals import Totals
from omg_cmdp.validation import instance_of, listed, probability, real_number

ROUNDING = 1e-9
"""A statement holds if left <= right + this·(1 + |left| + |right|)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row(Statement):
    """One statement: how often it was checked and violated, and its two sides where they were closest."""

    checks: int
    violations: int
    episode: int
    """Where the slack is smallest; for statements about the whole run, its last episode."""
    left: float
    right: float

    @property
    def slack(self) -> float:
        """The right side minus the left."""
        return self.right - self.left

    @property
    def holds(self) -> bool:
        """Whether it was never violated."""
        return self.violations == 0


class Audit:
    """Observes the rounds of one run, and says which statements of the analysis hold on it.

    `replan` computes a second, more precise plan in every episode, the only way to check a certificate from outside.
    Statements about models or barriers are not checked for agents without them.

    >>> import omg_cmdp as omg
    >>> world, audit = omg.environments.SoftmaxWorld(), Audit()
    >>> rewards = omg.oracles.FiniteRewards(world.reward_functions, horizon=5)
    >>> dynamics = omg.oracles.FiniteDynamics(world.transition_functions, horizon=5)
    >>> agent = omg.OMG(world.space, rewards, dynamics)
    >>> ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), agent, 3, observe=audit)
    >>> all(row.holds for row in audit.rows())
    True
    """

    def __init__(self, *, replan: bool = True) -> None:
        instance_of("replan", replan, bool)
        self.replan = replan
        self._checks: defaultdict[str, _Check] = defaultdict(_Check)
        self._run = Totals()

    def __call__(self, this: Round) -> None:
        """Check one round."""
        for name, left, right in self._sides(this):
            self._checks[name].note(this.episode, left, right)

    def _sides(self, this: Round) -> Iterator[Sides]:
        run, decision = self._run, this.decision
        run.episodes += 1
        run.last = this.episode
        run.regret += this.truth.best[1] - this.value
        yield "optimum", this.value, this.truth.best[1]
        if decision.model is None:
            run.modelled = run.barred = False
            return
        comparison = Comparison(this, decision.model)
        run.add_model(comparison, this)
        yield from statements.of_the_model(comparison)
        shape = barrier(decision, comparison)
        if shape is None:
            run.barred = False
            return
        run.add_barrier(comparison, shape)
        yield from statements.of_the_barrier(comparison, shape)
        if shape.plain:
            yield from statements.of_the_plain_barrier(comparison, shape)
        if self.replan:
            yield from statements.of_the_certificate(comparison, shape, decision)

    def rows(
        self, *, reward_regret: float | None = None, dynamics_regret: float | None = None, delta: float = 0.05
    ) -> list[Row]:
        """Return a row for every statement that was checked, in the order of the analysis.

        `reward_regret` and `dynamics_regret` are R_sq and R_log of the oracles, or bounds on them. The default is the
        excess of the model's losses over those of the truth in this run: this is what the two concentration lemmas are
        about, and it is at most the regret if the truth is in the class.
        """
        probability("delta", delta)
        for name, regret in (("reward_regret", reward_regret), ("dynamics_regret", dynamics_regret)):
            if regret is not None and math.isnan(real_number(regret)):
                raise ValueError(f"`{name}` must be a number, got {regret!r:.60}")
        found = {name: check.row(name) for name, check in self._checks.items()}
        for name, left, right in self._run.sides(reward_regret, dynamics_regret, delta):
            check = _Check()
            check.note(self._run.last, left, right)
            found[name] = check.row(name)
        return [found[name] for name in STATEMENTS if name in found]

    def table(
        self, *, reward_regret: float | None = None, dynamics_regret: float | None = None, delta: float = 0.05
    ) -> str:
        """Return the rows as plain text."""
        rows = self.rows(reward_regret=reward_regret, dynamics_regret=dynamics_regret, delta=delta)
        cells = [("statement", "claim", "checks", "violated", "left", "right", "slack", "in episode", "where")]
        for row in rows:
            numbers = (f"{row.left:.4g}", f"{row.right:.4g}", f"{row.slack:.2g}")
            counts = (str(row.checks), str(row.violations))
            cells.append((row.name, row.claim, *counts, *numbers, str(row.episode), row.where))
        return _aligned(cells, right={2, 3, 4, 5, 6, 7})


class _Check:
    """Counts for the row of one statement, under the names of its fields."""

    def __init__(self) -> None:
        self.checks = self.violations = self.episode = 0
        self.left, self.right = -math.inf, math.inf

    def note(self, episode: int, left: float, right: float) -> None:
        """Compare the two sides in one episode."""
        self.checks += 1
        # NaN on either side counts as a violation: nothing was shown.
        if not left <= right + ROUNDING * (1.0 + abs(left) + abs(right)):
            self.violations += 1
        if self.checks == 1 or not right - left >= self.right - self.left:
            self.episode, self.left, self.right = episode, left, right

    def row(self, name: str) -> Row:
        """Return the row."""
        return Row(**vars(STATEMENTS[name]), **vars(self))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """One statement over several runs."""

    name: str
    runs: int
    violated: int
    """The number of runs in which it failed."""
    allowed: float
    """The probability with which it may fail in a run."""
    smallest_slack: float

    @property
    def failure_rate(self) -> float:
        """The share of the runs in which it failed."""
        return self.violated / self.runs

    @property
    def surprise(self) -> float:
        """The probability of at least that many failures if each run failed with the probability allowed."""
        tail = range(self.violated, self.runs + 1)
        p = self.allowed
        return min(1.0, sum(math.comb(self.runs, k) * p**k * (1.0 - p) ** (self.runs - k) for k in tail))


def combine(runs: Iterable[Audit | Sequence[Row]], delta: float = 0.05) -> list[Summary]:
    """Return a summary of every statement over several runs: audits, or their rows with oracle regrets of your own."""
    delta, tables = probability("delta", delta), []
    for run in listed("runs", runs):
        tables.append(run.rows(delta=delta) if isinstance(run, Audit) else listed("runs", run))
        for row in tables[-1]:
            instance_of("runs", row, Row)
    summaries = []
    for name, statement in STATEMENTS.items():
        rows = [row for table in tables for row in table if row.name == name]
        if rows:
            summaries.append(
                Summary(
                    name=name,
                    runs=len(rows),
                    violated=sum(not row.holds for row in rows),
                    allowed=statement.failure * delta,
                    smallest_slack=min(row.slack for row in rows),
                )
            )
    return summaries


def _aligned(cells: Sequence[tuple[str, ...]], right: set[int]) -> str:
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = []
    for line in cells:
        entries = (
            entry.rjust(width) if i in right else entry.ljust(width)
            for i, (entry, width) in enumerate(zip(line, widths, strict=True))
        )
        lines.append("  ".join(entries).rstrip())
    return "\n".join(lines)
