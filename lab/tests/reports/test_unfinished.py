"""Whatever of a study is finished, failed, missing or zero, there is a report, and it says what there is."""

import re

import numpy as np
import pandas
import pytest

from lab.tests.reports.test_page import Outline
from lab.tests.studies.examples import changed, results_of
from omg_lab.reports import drawing
from omg_lab.reports.page import write_report

STUDY = """
episodes = {episodes}
seeds = {seeds}
[worlds.bandit]
[worlds.decoy]
context_count = 4
reward_class_size = 8
[agents.omg]
[agents.greedy]
[agents.uniform]
"""
TOTALS = ("regret", "best_policy_regret", "optimum_error", "plan_gap", "policy_error", "reward_error", "dynamics_error")


@pytest.fixture
def undrawn(monkeypatch):
    """Draw figures, but do not write them: that takes most of the time, and is tested elsewhere."""
    monkeypatch.setattr(drawing.Figure, "svg", lambda self: "<svg></svg>")
    monkeypatch.setattr(drawing.Figure, "save", lambda self, directory: directory)


def without_regret(results, runs):
    """Return results in which these runs have lost nothing, in no episode."""
    log, mine = results.log.copy(), results.log["agent"].isin(runs["agent"]) & results.log["seed"].isin(runs["seed"])
    zero = [name for name in log if name == "regret" or name.removeprefix("cumulative_") in TOTALS]
    log.loc[mine, zero] = log.loc[mine, zero].where(log.loc[mine, zero].isna(), 0.0)
    table, totals = results.runs.copy(), [*TOTALS, "regret_last_half"]
    chosen = table["agent"].isin(runs["agent"]) & table["seed"].isin(runs["seed"])
    table.loc[chosen, totals] = table.loc[chosen, totals].where(table.loc[chosen, totals].isna(), 0.0)
    return changed(results, log=log, runs=table)


def check(results, folder):
    """Write the report, and check that it is a page without missing numbers, which counts what is finished."""
    page = write_report(results, folder).read_text(encoding="utf-8")
    assert Outline(page).open == []
    shown = re.sub(r"<(pre|style|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf|None|NaN)\b", shown), re.search(r".{60}\b(nan|inf|None|NaN)\b.{60}", shown)
    assert f"{len(results.runs)} of " in shown
    headline = re.search(r'<p class="headline">(.*?)</p>', page, flags=re.DOTALL)[1]
    assert len(headline.strip()) > 20
    return shown


@pytest.mark.parametrize("episodes", [1, 3, *(pytest.param(length, marks=pytest.mark.slow) for length in (2, 12))])
@pytest.mark.parametrize("case", [0, *(pytest.param(case, marks=pytest.mark.slow) for case in (1, 2))])
def test_any_part_of_a_study_has_a_report(case, episodes, tmp_path, undrawn):
    rng = np.random.default_rng((case, episodes))
    whole = results_of(STUDY, episodes=episodes, seeds=3)
    runs = whole.runs[rng.uniform(size=len(whole.runs)) < rng.choice([0.0, 0.1, 0.3, 0.6, 1.0])]
    lost = whole.runs.drop(runs.index)
    failed = lost[rng.uniform(size=len(lost)) < 0.5].assign(error="Traceback\nValueError: odd\n")
    results = changed(whole, runs=runs, failed=failed[["run", "world", "adversary", "agent", "seed", "error"]])
    results.log = whole.log[whole.log["seed"].isin(runs["seed"]) & whole.log["agent"].isin(runs["agent"])]
    if len(runs) and rng.uniform() < 0.5:
        results = without_regret(results, runs[rng.uniform(size=len(runs)) < rng.choice([0.4, 1.0])])
    page = check(results, tmp_path)
    assert ("failed. Their seeds" in page) == bool(len(failed))


@pytest.mark.parametrize(("agents", "seeds"), [(1, 1), (1, 2), (2, 1)])
def test_a_trivial_study_has_a_report(agents, seeds, tmp_path, undrawn):
    whole = results_of(STUDY, episodes=1, seeds=3)
    names = ["omg", "greedy"][:agents]
    kept = (whole.runs["world"] == "bandit") & whole.runs["agent"].isin(names) & (whole.runs["seed"] < seeds)
    check(changed(whole, runs=whole.runs[kept]), tmp_path)


def test_a_study_without_a_finished_run_says_so_and_why(tmp_path, undrawn):
    whole = results_of(STUDY, episodes=1, seeds=3)
    failed = whole.runs[:2].assign(error="Traceback\nValueError: odd\n")
    nothing = changed(whole, runs=whole.runs[:0], log=pandas.DataFrame(), failed=failed)
    page = check(nothing, tmp_path)
    assert "No run is finished yet" in page
    assert "2 runs: <code>ValueError: odd</code>" in page


def test_agents_without_a_common_seed_are_told(tmp_path, undrawn):
    whole = results_of(STUDY, episodes=2, seeds=3)
    own = whole.runs["seed"] == whole.runs["agent"].map({"omg": 0, "greedy": 1, "uniform": 2})
    page = check(changed(whole, runs=whole.runs[own]), tmp_path)
    assert "no seed that all its agents have finished" in page
    assert "omg 1 of 3, greedy 1 of 3 and uniform 1 of 3" in page
