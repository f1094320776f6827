"""Results are read from a directory, as much of them as is asked for."""

import numpy as np
import pandas
import pytest

from lab.tests.studies.examples import SMALL, run_study
from omg_lab.audit.rows import Check
from omg_lab.studies.results import Audited, load


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    run_study(SMALL, directory)
    return directory


@pytest.mark.parametrize("reader", ["pandas", "pyarrow"])
def test_one_line_reads_all_logs(reader, whole):
    if reader == "pandas":
        rows = len(pandas.read_parquet(whole / "log"))
    else:
        from pyarrow import dataset

        rows = dataset.dataset(whole / "log").count_rows()
    assert rows == 8 * 60


def test_the_log_is_read_only_when_asked_for_and_by_column(whole):
    results = load(whole)
    assert "log" not in vars(results)
    assert list(results.log_of(results.runs["run"][0], columns=["episode", "regret"])) == ["episode", "regret"]
    assert len(results.runs) == 8
    assert results.configuration["agents"]["omg"] == {"kind": "omg"}


def test_a_directory_without_a_study_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no study in"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "left", "right", "sound"),
    [
        ("certificate", 0.0, 1.0, True),
        ("certificate", 2.0, 1.0, False),
        ("certificate", 2.0, np.inf, False),  # not proven
        ("oracle regret, rewards", 0.0, np.inf, True),  # an oracle may have nothing to prove
        ("oracle regret, rewards", 2.0, 1.0, False),
        ("realizability, rewards", 0.3, 0.0, True),  # of the world
        ("square loss", 2.0, 1.0, True),  # may happen
    ],
)
def test_a_run_is_sound_if_nothing_that_must_hold_fails(name, left, right, sound):
    check = Check()
    check.note(1, left, right, np.inf)
    assert Audited(None, [check.row(name)], as_logged=True).sound is sound
    assert not Audited(None, [check.row(name)], as_logged=False).sound
