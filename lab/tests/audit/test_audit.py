"""Audits of real runs."""

import copy
import dataclasses
import functools

import numpy as np
import pytest
from scipy.stats import binom

import omg_cmdp as omg
from omg_cmdp.agents import Greedy
from omg_cmdp.agents.exploration.schedules import Schedule
from omg_cmdp.agents.exploration.theorems import Anytime
from omg_cmdp.agents.exploration.uncertainty import UncertaintyWeighted
from omg_cmdp.theory import bounds, errors
from omg_cmdp.theory.constants import most_tuples
from omg_lab.audit import Audit, Summary, combine
from omg_lab.audit.rows import Check
from omg_lab.audit.statements import STATEMENTS
from omg_lab.worlds import CombinationLock, SoftmaxWorld

EPISODES = 40


class Uniform(omg.Agent):
    """An agent without a model."""

    def __init__(self, space):
        self.space = space

    def policy(self, context):
        shape = (self.space.horizon, self.space.states, self.space.actions)
        return np.full(shape, 1.0 / self.space.actions)

    def update(self, trajectory):
        pass


def oracles(world):
    horizon = world.space.horizon
    return (
        omg.oracles.FiniteRewards(world.reward_functions, horizon=horizon),
        omg.oracles.FiniteDynamics(world.transition_functions, horizon=horizon),
    )


AGENTS = {
    "fixed": lambda world: omg.OMG(world.space, *oracles(world), Schedule(100.0), episodes=EPISODES),
    "growing": lambda world: omg.OMG(world.space, *oracles(world), lambda t: 30.0 * t**0.5),
    "theory": lambda world: omg.OMG(world.space, *oracles(world), "theory", episodes=EPISODES),
    "anytime": lambda world: omg.OMG(world.space, *oracles(world), Anytime(0.05)),
    "adaptive": lambda world: omg.OMG(world.space, *oracles(world), UncertaintyWeighted()),
    "greedy": lambda world: Greedy(world.space, *oracles(world)),
    "uniform": lambda world: Uniform(world.space),
}
WORLDS = {"softmax": SoftmaxWorld, "lock": CombinationLock}


@functools.cache
def audited(world_name, agent_name, seed, episodes=EPISODES):
    world = WORLDS[world_name](seed=seed)
    agent, audit = AGENTS[agent_name](world), Audit()
    ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes, seed=seed, observe=audit)
    return audit, ledger, agent


each_world = pytest.mark.parametrize("world", WORLDS)
each_agent = pytest.mark.parametrize("agent", AGENTS)


@each_world
@each_agent
def test_no_statement_fails_on_a_run(world, agent, seed):
    audit, _, _ = audited(world, agent, seed)
    rows = audit.rows()
    # The statements with a probability hold as well on these runs: their right sides are far away.
    assert [row for row in rows if not row.holds] == []
    of_rounds = [row for row in rows if row.name in ("optimum", "decomposition", "optimality")]
    assert all(row.checks == EPISODES for row in of_rounds)


NOT_HERE = {"Theorem A", "known dynamics", "delayed regret, rewards", "delayed regret, dynamics"}
NOT_HERE |= {"budget", "budget certificate", "Theorem H"}
"""Of known dynamics, of late feedback, and of budgets."""


@pytest.mark.parametrize(
    ("agent", "applies", "spared"),
    [
        ("uniform", {"optimum", "played"}, set(STATEMENTS) - {"optimum", "played"}),
        ("greedy", {"decomposition", "measure, rewards", "square loss"}, {"optimality", "theorem, corrected"}),
        (
            "adaptive",
            {"Theorem B", "certificate", "theorem, corrected"},
            {"cost for π*", "theorem, exact", "theorem, printed"},
        ),
        ("fixed", set(STATEMENTS) - NOT_HERE, NOT_HERE),
        ("growing", {"Theorem B", "theorem, corrected"}, {"theorem, printed"}),
    ],
)
def test_agents_are_spared_what_does_not_apply(agent, applies, spared, seed):
    names = {row.name for row in audited("softmax", agent, seed)[0].rows()}
    assert applies <= names
    assert not spared & names


def test_known_dynamics_are_recognised(seed):
    world = SoftmaxWorld(seed=seed, transition_class_size=1)
    audit = Audit()
    agent = omg.OMG(world.space, *oracles(world), 50.0, episodes=EPISODES)
    omg.simulate(world, omg.adversaries.IID(world.contexts), agent, EPISODES, seed=seed, observe=audit)
    rows = {row.name: row for row in audit.rows()}
    assert rows["Theorem A"].checks == rows["known dynamics"].checks == EPISODES
    assert all(row.holds for row in rows.values())


@each_world
def test_the_audit_agrees_with_the_ledger(world, seed):
    audit, ledger, _ = audited(world, "fixed", seed)
    rows = {row.name: row for row in audit.rows()}
    assert rows["theorem, corrected"].left == pytest.approx(ledger.regret.sum(), rel=1e-9)
    assert rows["square loss"].left == pytest.approx(ledger.column("reward_error").sum(), rel=1e-9, abs=1e-12)
    assert rows["log loss"].left == pytest.approx(ledger.column("dynamics_error").sum(), rel=1e-9)
    assert rows["policy errors, sum"].left == pytest.approx(ledger.column("policy_error").sum(), abs=1e-9)


def test_delta_moves_the_right_sides(seed):
    audit, _, _ = audited("softmax", "fixed", seed)
    strict, lax = ({row.name: row.right for row in audit.rows(delta=delta)} for delta in (0.001, 0.5))
    for name, statement in STATEMENTS.items():
        if name in strict:
            # The confidence of the ceiling is fixed before the run.
            assert (strict[name] > lax[name]) == (statement.failure > 0.0 and name != "ceiling")


@each_world
def test_the_floor_bounds_the_regret_whatever_the_uncertainty(world, seed):
    floor, rounds = 0.5, []
    made = WORLDS[world](seed=seed)
    agent = omg.OMG(
        made.space, *oracles(made), UncertaintyWeighted(kappa=1e-6, floor=floor)
    )  # an agent that is far too sure
    omg.simulate(made, omg.adversaries.IID(made.contexts), agent, EPISODES, seed=seed, observe=rounds.append)
    size = made.space
    n = most_tuples(size)
    cost_of_weights = reward_error = dynamics_error = 0.0
    for t, played in enumerate(rounds, start=1):
        least, m = floor / np.sqrt(n * t), played.decision.weights / played.decision.gamma
        assert m.min() >= least * (1.0 - 1e-12)
        held = played.decision.occupancy > 0.0
        cost_of_weights += float((m - least)[held].sum())
        reward_error, dynamics_error = reward_error + played.errors[0], dynamics_error + played.errors[1]
    measured = {"horizon": size.horizon, "reward_error": reward_error, "dynamics_error": dynamics_error}
    estimation = errors.estimation(**measured)
    with_floor = bounds.with_floor(tuples=n, episodes=EPISODES, floor=floor, estimation=estimation)
    value_error = errors.value_error(**measured, episodes=EPISODES)
    assert sum(played.regret for played in rounds) <= cost_of_weights + with_floor + value_error


def test_runs_are_combined(seed):
    audits = [audited("softmax", "growing", seed * 100 + k, 10)[0] for k in range(8)]
    summaries = {summary.name: summary for summary in combine(audits, delta=0.05)}
    for name, summary in summaries.items():
        assert summary.runs == 8
        assert summary.violated == 0
        assert summary.allowed == STATEMENTS[name].failure * 0.05
        assert summary.surprise == pytest.approx(1.0)
    slacks = [{row.name: row.slack for row in audit.rows(delta=0.05)}["Theorem B"] for audit in audits]
    assert summaries["Theorem B"].smallest_slack == min(slacks)
    rows = [audit.rows(delta=0.05) for audit in audits]
    assert combine(rows, delta=0.05) == combine(audits, delta=0.05)


def with_excess(audit, excess):
    """Return a copy of an audit whose oracles regret this much."""
    changed = copy.deepcopy(audit)
    changed._run.reward_excess = changed._run.dynamics_excess = excess
    return changed


def test_failures_are_counted_against_delta(seed):
    audits = [audited("softmax", "growing", seed * 100 + k, 10)[0] for k in range(8)]
    # δ close to 1 and a regret of zero: the right sides are nearly the errors themselves.
    rows = [with_excess(audit, 0.0).rows(delta=0.999999) for audit in audits]
    summaries = {summary.name: summary for summary in combine(rows, delta=0.999999)}
    logs = summaries["log loss"]
    assert logs.surprise == pytest.approx(binom.sf(logs.violated - 1, 8, logs.allowed))


def test_surprise_is_the_tail_of_the_binomial_distribution():
    counts = {"runs": 20, "violated": 5, "unproven": 0, "vacuous": 0}
    rare = Summary(name="log loss", kind="probable", **counts, allowed=0.05, smallest_slack=-1.0)
    assert rare.surprise == pytest.approx(binom.sf(4, 20, 0.05))
    never = dataclasses.replace(rare, allowed=0.0)
    assert never.surprise == 0.0
    assert dataclasses.replace(never, violated=0).surprise == 1.0


def test_a_negative_regret_is_not_cut_off(seed):
    audit, _, _ = audited("softmax", "fixed", seed)
    rows = {row.name: row for row in with_excess(audit, -1e3).rows()}
    assert {name for name, row in rows.items() if not row.holds} == {"Freedman", "square loss", "log loss"}
    assert rows["square loss"].right == pytest.approx(1.685 * -1e3 + 16.85 * np.log(2.0 / 0.05), rel=1e-3)


def test_verdicts():
    def row(*sides, most=np.inf):
        check = Check()
        for left, right in sides:
            check.note(1, left, right, most)
        return check.row("Theorem B")

    assert row((0.0, 1.0)).verdict == row((0.0, 1.0), (0.0, 9.0), most=2.0).verdict == "holds"
    assert row((0.0, 3.0), (0.0, 9.0), most=2.0).verdict == "vacuous"
    assert row((2.0, 1.0), (0.0, np.nan)).verdict == row((np.inf, 1.0)).verdict == "violated"
    for sides in ((np.nan, 1.0), (0.0, np.nan), (0.0, np.inf), (np.inf, np.inf), (np.nan, np.nan)):
        assert row((0.0, 1.0), sides).verdict == row(sides, (0.0, 1.0)).verdict == "not proven"
        assert not row(sides).holds
    assert row((0.0, 3.0), most=2.0).holds
    assert row((0.0, np.nan), (0.5, 1.0), (0.0, 3.0)).slack == 0.5
    # In JSON there is neither inf nor nan.
    assert {row((np.nan, np.inf)).record()[name] for name in ("left", "right", "most", "binds_from")} == {None, 1.0}


def test_a_vacuous_theorem_says_from_which_t_on_it_binds(seed):
    rows = {row.name: row for row in audited("softmax", "fixed", seed)[0].rows()}
    for name in ("theorem, corrected", "theorem, exact", "theorem, printed", "corollary"):
        row = rows[name]
        assert row.verdict == "vacuous"
        assert row.right > EPISODES * 5
        assert EPISODES < row.binds_from < np.inf
        assert f"T < {row.binds_from:.2g}" in row.remark
    # The theorem's own γ is so small that exploration costs more than H in every episode.
    small = {row.name: row for row in audited("softmax", "theory", seed)[0].rows()}
    assert small["theorem, corrected"].remark == "vacuous here, for any T"


def test_an_audit_of_nothing_is_empty():
    assert Audit().rows() == []
    assert combine([Audit()]) == []


def test_the_table_is_plain_text(seed):
    audit, _, _ = audited("softmax", "fixed", seed)
    lines = audit.table().splitlines()
    rows = audit.rows()
    assert len(lines) == len(rows) + 1
    assert lines[0].split()[:3] == ["kind", "statement", "verdict"]
    for line, row in zip(lines[1:], rows, strict=True):
        assert line.startswith(row.kind)
        assert row.name in line
        assert row.remark in line
        assert row.claim in line
        assert str(row.checks) in line
