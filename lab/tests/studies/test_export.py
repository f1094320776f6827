"""What is exported says what the log says, in the words of other programs."""

import itertools
import json

import numpy as np
import pandas
import pytest
from pyarrow import parquet

from lab.tests.studies.examples import run_study
from library.tests.logs.tables import same
from omg_cmdp.logs import read_export
from omg_lab.studies.config import read_plan
from omg_lab.studies.export import export
from omg_lab.worlds import TreatmentTrial

STUDY = """
episodes = 30
seeds = 2
checkpoint = 12
propensities = {}
[worlds.treatment]
context_count = 5
[worlds.decoy]
context_count = 3
[agents.omg]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_study(STUDY.format("true"), tmp_path_factory.mktemp("study"))


def test_a_csv_holds_every_row(results, tmp_path):
    path = export(results, tmp_path)
    table = pandas.read_csv(path)
    assert list(table) == list(results.log)
    np.testing.assert_allclose(table["cumulative_regret"], results.log["cumulative_regret"], rtol=1e-15)
    assert json.loads(table["propensities"][7]) == results.log["propensities"][7].tolist()


def test_no_name_is_a_formula_in_a_csv(tmp_path):
    text = 'episodes = 2\n[worlds.decoy]\ncontext_count = 2\n[agents."=1+1"]\nkind = "uniform"'
    path = export(run_study(text, tmp_path / "study"), tmp_path)
    assert set(pandas.read_csv(path)["agent"]) == {"'=1+1"}


def test_an_export_is_replaced_whole_or_not_at_all(results, tmp_path, monkeypatch):
    """It fails at the third part of the log."""
    original, calls = parquet.ParquetFile, itertools.count()

    def failing(*arguments, **settings):
        if next(calls) == 2:
            raise RuntimeError("on the way")
        return original(*arguments, **settings)

    (tmp_path / "log.csv").write_text("the old one")
    monkeypatch.setattr(parquet, "ParquetFile", failing)
    with pytest.raises(RuntimeError, match="on the way"):
        export(results, tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the old one"]


def test_propensities_are_the_policys_probabilities_of_what_was_done(results):
    for task in read_plan(STUDY.format("true")).tasks():
        rounds = []
        task.start(observe=rounds.append).advance(30)
        log = results.log[(results.log["world"] == task.world.name) & (results.log["seed"] == task.seed)]
        for this, actions, propensities in zip(rounds, log["actions"], log["propensities"], strict=True):
            states = this.played.states[:-1]
            chances = this.decision.policy[np.arange(len(actions)), states, actions]
            np.testing.assert_array_equal(propensities, chances)


def test_propensities_are_exported_if_they_were_logged(tmp_path):
    results = run_study(STUDY.format("false"), tmp_path)
    path = export(results, tmp_path / "out")
    assert "propensities" not in pandas.read_csv(path)


def test_exports_are_read_back(tmp_path):
    """As logs of the library; and so is the folder `log` of the study itself."""
    study = "episodes = 20\nseeds = 1\npropensities = true\n[worlds.treatment]\ncontext_count = 3\n[agents.omg]"
    results = run_study(study, tmp_path / "study")
    space = TreatmentTrial(context_count=3).space
    logs = [
        read_export(pandas.read_csv(export(results, tmp_path)), space),
        read_export(pandas.read_parquet(tmp_path / "study" / "log"), space),
    ]
    for log in logs:
        assert same(log, logs[0])
        np.testing.assert_array_equal(log.propensities, np.stack(results.log["propensities"].to_list()))
        np.testing.assert_array_equal(log.states, np.stack(results.log["states"].to_list()))
        assert len({context.tobytes() for context in log.contexts}) <= 3
