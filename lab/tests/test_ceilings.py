"""Regret below its ceiling: a small sample of the benchmark, and the figure of a report."""

import pytest

from lab.benchmarks.ceilings import interval, outcomes, summary
from lab.tests.studies.examples import run_study
from omg_lab.reports.agent_figures import ceiling
from omg_lab.reports.scenarios import scenarios

STUDY = "episodes = 30\nseeds = 2\n{}[worlds.decoy]\n[agents.omg]\n[agents.uniform]"


def test_a_sample_of_the_benchmark():
    found = list(outcomes(range(2, 3), 12, ("Decoy", "ContextualBandit")))
    assert len(found) == 2 * 5 * 3
    assert not any(each.failed[0] for each in found)
    assert all(each.regret <= each.totals[0] and each.totals[1] <= each.totals[0] for each in found)
    assert summary(found).startswith("δ = 0.05: 0 of 30 runs failed, 0.0000 to 0.1157; ")
    assert interval(0, 30)[1] == pytest.approx(1.0 - 0.025 ** (1.0 / 30.0))


def test_the_report_draws_what_was_lost_at_most(tmp_path):
    kept, plain = (
        run_study(STUDY.format(line), tmp_path / name) for name, line in (("a", "ceiling = true\n"), ("b", ""))
    )
    [scenario], [without] = scenarios(kept), scenarios(plain)
    drawn = ceiling(scenario)
    assert "Regret was above its ceiling in 0 of 2 seeds" in drawn.caption
    assert ceiling(without) is None
    for agent in scenario.agents:
        most, lost = (scenario.curves(agent, f"cumulative_{name}")[1] for name in ("ceiling", "regret"))
        assert (lost <= most + 1e-9).all()
