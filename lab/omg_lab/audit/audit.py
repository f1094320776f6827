"""An audit: every inequality of the analysis, checked on every episode of a run, and nothing taken on trust.

What an agent says of its plan is computed again: the tuples Z of the barrier and the occupancy measure from the model
and the policy, the gap from a second plan. A statement that cannot be checked is *not proven*, and does not hold.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.theory.rounds import Round
from omg_cmdp.validation import instance_of, listed, probability
from omg_lab.audit import claims, lemmas
from omg_lab.audit.ceilings import CeilingCheck
from omg_lab.audit.quantities import ModelComparison
from omg_lab.audit.records import Records, of_the_charges
from omg_lab.audit.rows import AuditRow, Check, Summary, aligned
from omg_lab.audit.statements import STATEMENTS, Sides
from omg_lab.audit.totals import Totals
from omg_lab.audit.within import of_the_budgets

__all__ = ["Audit", "AuditRow", "Summary", "combine"]


class Audit:
    """An observer of one run that says which statements of the analysis hold on it.

    Statements about models or barriers are not checked for agents that do not claim to have them.

    In every episode a second, more precise plan is computed: the only way to check a certificate from outside.

    Examples
    --------
    >>> import omg_cmdp as omg, omg_lab
    >>> world, audit = omg_lab.worlds.SoftmaxWorld(), Audit()
    >>> rewards = omg.oracles.FiniteRewards(world.reward_functions, horizon=5)
    >>> dynamics = omg.oracles.FiniteDynamics(world.transition_functions, horizon=5)
    >>> agent = omg.OMG(world.space, rewards, dynamics)
    >>> ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), agent, 3, observe=audit)
    >>> all(row.holds for row in audit.rows())
    True
    """

    def __init__(self) -> None:
        self._checks: defaultdict[str, Check] = defaultdict(Check)
        self._run = Totals()
        self._records = Records()
        self._ceiling = CeilingCheck()

    def __call__(self, this: Round) -> None:
        """Check one round."""
        for name, left, right in self._sides(this):
            self._checks[name].note(this.episode, left, right, STATEMENTS[name].most * self._run.horizon)

    def _sides(self, this: Round) -> Iterator[Sides]:
        run, decision, truth = self._run, this.decision, this.truth.mdp
        run.add_round(this)
        limited = this.truth.limits is not None
        yield "optimum", this.value, optimal_policy(truth)[1] if limited else this.truth.best[1]
        yield from claims.of_the_play(this)
        yield from self._ceiling.sides(this)
        planned = claims.has_barrier(decision)
        if planned:
            run.add_claim(decision)
        model = decision.model
        defect = 0.0 if model is None else claims.model_defect(model, truth)
        self._records.add(this, None if defect > 0.0 else model, claims.is_planned(decision))
        of_plans = lemmas.OF_BARRIERS + (lemmas.OF_PLAIN_BARRIERS if decision.weights is None else ())
        if model is None:
            yield from _unproven(claims.OF_BARRIERS + of_plans if planned else ())
            return
        yield "model", defect, 0.0
        if defect > 0.0 or claims.mixture_defect(decision) > 0.0:  # no MDP, or no policy: nothing else can be said
            run.broken += 1
            yield from _unproven(lemmas.OF_MODELS + (claims.OF_BARRIERS + of_plans if planned else ()))
            return
        if claims.is_planned(decision):
            yield from of_the_charges(this, model)
        c = ModelComparison(this, model)
        run.add_model(c, this)
        yield from lemmas.of_the_model(c)
        yield from of_the_budgets(this, c)
        if not planned:
            yield from claims.of_gains(c, decision) if claims.is_planned(decision) else ()
            return
        held = claims.reachable(model)
        yield from claims.of_the_support(c, decision, held)
        b = claims.barrier(decision, c, held)
        closer = claims.closer_plan(c, b) if b is not None else None
        yield from claims.of_the_certificate(c, decision, b, closer)
        # Of a plan that leaves out states through which π* goes nothing is proven.
        if b is None or closer is None or float(c.believed_best[~held].sum()) > claims.LEFT_OUT:
            yield from _unproven(of_plans)
            return
        run.add_barrier(c, b)
        yield from lemmas.of_the_barrier(c, b)
        if b.plain:
            yield from lemmas.of_the_plain_barrier(c, b, closer)

    def rows(self, *, delta: float = 0.05) -> list[AuditRow]:
        """Return a row for every statement that was checked, by kind, in the order of the analysis.

        The regrets R_sq and R_log of the oracles are the excess of the model's losses over those of the truth in this
        run: the two concentration lemmas are about that, and it is at most the regret if the truth is in the class.

        Parameters
        ----------
        delta : float
            The failure probability of the statements that may fail, 0.05 by default.
        """
        probability("delta", delta)
        run = self._run
        found = {name: check.row(name) for name, check in self._checks.items()}
        for name, left, growth in run.sides(self._records.proven(), delta):
            check, most = Check(), STATEMENTS[name].most * run.horizon
            check.note(run.last, left, growth.at(run.episodes), most * run.episodes)
            check.binds_from = growth.binds_from(most)
            found[name] = check.row(name)
        for name, left, right in self._records.sides():
            check = Check()
            check.note(run.last, left, right, math.inf)
            found[name] = check.row(name)
        return [found[name] for name in STATEMENTS if name in found]

    def table(self, *, delta: float = 0.05) -> str:
        """Return the rows as plain text; `delta` as for `rows`."""
        heads = ("kind", "statement", "verdict", "checks", "violated", "unproven", "left", "right", "slack")
        cells = [(*heads, "in episode", "claim", "where")]
        for row in self.rows(delta=delta):
            counts = (str(row.checks), str(row.violations), str(row.unproven))
            numbers = (f"{row.left:.4g}", f"{row.right:.4g}", f"{row.slack:.2g}", str(row.episode))
            cells.append((row.kind, row.name, row.remark, *counts, *numbers, row.claim, row.where))
        return aligned(cells, right=set(range(3, 10)))


def _unproven(names: Iterable[str]) -> Iterator[Sides]:
    return ((name, math.nan, math.nan) for name in names)


def combine(runs: Iterable[Audit | Sequence[AuditRow]], delta: float = 0.05) -> list[Summary]:
    """Return a summary of every statement over several runs.

    Parameters
    ----------
    runs : iterable of Audit, or of lists of AuditRow
        The audits of the runs, or their rows.
    delta : float
        The failure probability of the statements that may fail, 0.05 by default.

    Examples
    --------
    >>> combine([Audit(), Audit()])  # no round was observed
    []
    """
    probability("delta", delta)
    found: dict[str, list[AuditRow]] = {name: [] for name in STATEMENTS}
    for run in listed("runs", runs):
        for row in run.rows(delta=delta) if isinstance(run, Audit) else listed("runs", run):
            instance_of("runs", row, AuditRow)
            found[row.name].append(row)
    return [Summary.of(STATEMENTS[name], rows, delta) for name, rows in found.items() if rows]
