"""Reports of worlds with budgets: what was spent stands beside the regret, which may be negative."""

import functools

import numpy as np
import pytest

from lab.tests.studies.examples import results_of
from omg_lab.reports import figures
from omg_lab.reports.page import write_report
from omg_lab.reports.scenarios import scenarios
from omg_lab.reports.tables import agents_table

STUDY = """
episodes = 12
seeds = 2
[worlds.reminders]
oracles = "counts"
[worlds.decoy]
[agents.omg]
[agents.greedy]
[agents.informed]
"""


@functools.cache
def results():
    return results_of(STUDY)


def scenario(world):
    return next(each for each in scenarios(results()) if each.world == world)


def test_the_table_has_what_the_log_sums_to():
    each = scenario("reminders")
    rows = {row["agent"]: row for row in agents_table(each).rows}
    for agent, row in rows.items():
        log = each.logs[agent]
        assert row["violation"] == pytest.approx(log["violation"].sum() / 2)
        assert row["cost"] == pytest.approx(log["cost"].mean())
        assert row["budget"] == pytest.approx(2.0)
    assert rows["informed"]["violation"] == pytest.approx(0.0, abs=1e-9)
    assert rows["informed"]["regret"] == pytest.approx(0.0, abs=1e-9)


def test_the_figure_draws_cost_less_budget():
    each = scenario("reminders")
    (axes,) = figures.spending(each).canvas.axes
    drawn = {line.get_label(): line for line in axes.lines}
    log = each.logs["omg"]
    last = log.loc[log["episode"] == 12]
    assert drawn["omg"].get_ydata()[-1] == pytest.approx((last["cost"] - last["budget"]).mean())
    np.testing.assert_allclose(drawn["informed"].get_ydata(), 0.0, atol=1e-9)  # it spends all that it may


def test_worlds_without_budgets_show_none(tmp_path):
    each = scenario("decoy")
    assert "violation" not in agents_table(each).rows[0]
    assert [figure.name for figure in figures.comparing_figures(each) if "budget" in figure.name] == []
    page = write_report(results(), tmp_path).read_text(encoding="utf-8")
    assert page.count("Cost against budget</") >= 1
    assert "total violation" in page
