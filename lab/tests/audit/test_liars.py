"""The catalogue of liars: each lies about one thing, and turns the right rows of an audit red."""

import dataclasses
import re
from pathlib import Path

import pytest

from lab.tests.audit.liars import LIES
from lab.tests.audit.lying import Lie, audited, complaint, verdicts
from omg_cmdp.theory.errors import reward_error
from omg_lab.audit.statements import STATEMENTS

(PAGE,) = (Path(__file__).parents[3] / "docs").glob("**/liars.md")


@pytest.mark.parametrize("name", LIES)
def test_a_liar_turns_the_right_rows_red(name, seed):
    assert complaint(LIES[name], seed) == ""


def test_an_honest_agent_has_no_red_row_and_none_that_is_not_proven(seed):
    audit = audited(None, seed)
    assert verdicts(audit) == (set(), set())
    late = {"delayed regret, rewards", "delayed regret, dynamics"}
    within = {"budget", "budget certificate", "Theorem H"}
    assert set(STATEMENTS) - {row.name for row in audit.rows()} == {"Theorem A", "known dynamics", *late, *within}


def test_an_honest_agent_within_budgets_has_no_red_row_and_none_that_is_not_proven(seed):
    audit = audited(Lie("honest", lambda agent, context, decision: decision, settings={"budgets": [0.9]}), seed)
    assert verdicts(audit) == (set(), set())
    assert {"budget", "budget certificate", "Theorem H"} <= {row.name for row in audit.rows()}


def test_every_claim_oracle_and_assumption_is_caught_by_some_liar():
    caught = frozenset().union(*(lie.red for lie in LIES.values()))
    for name, statement in STATEMENTS.items():
        if statement.kind in ("claim", "oracle", "assumption"):
            assert name in caught


def test_the_page_has_every_liar_with_its_lie_and_its_rows():
    cells = [re.split(r" *\| *", line.strip("| \n")) for line in PAGE.read_text(encoding="utf-8").splitlines()]
    table = {line[0]: line[1:] for line in cells if line[0] in LIES}
    for name, lie in LIES.items():
        what, red, _ = table[name]
        assert what == lie.what
        assert set(re.findall(r'"([^"]+)"', red)) == lie.red


def test_noise_seen_in_advance_is_red_because_nothing_is_cut_off(seed):
    lie = dataclasses.replace(LIES["sees the rewards"], episodes=50)
    row = next(row for row in audited(lie, seed).rows() if row.name == "square loss")
    cut_off = reward_error(horizon=3, delta=0.05, reward_regret=0.0)  # the right side if a negative regret were none
    assert row.right < 0.0 < row.left < cut_off
