"""Logs as files: whole or not at all; and their tables, as other programs write them."""

from pathlib import Path

import numpy as np
import pandas
import pytest

import omg_cmdp as omg
from library.tests.runs.corridor import CONTEXTS, HORIZON, Anything, Corridor
from omg_cmdp.environments import gymnasium_space
from omg_cmdp.logs import importance_sampling, read_table


@pytest.fixture(scope="module")
def logged():
    agent = Anything(gymnasium_space(Corridor(), horizon=HORIZON), reward_range=(-1.0, 4.0))
    return omg.play(Corridor(), agent, CONTEXTS * 10)


def test_a_log_is_written_whole_or_not_at_all(logged, tmp_path, monkeypatch):
    path = logged.write(tmp_path / "log.jsonl")
    before = path.read_bytes()

    def crash(file, text, **_):
        file.write_bytes(b"half of")
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", crash)
    with pytest.raises(KeyboardInterrupt):
        logged.write(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_table_is_what_off_policy_estimates_read(logged, tmp_path):
    logged.table().to_parquet(tmp_path / "log.parquet")
    logged.table().to_csv(tmp_path / "log.csv", index=False)
    for frame in (logged.table(), pandas.read_parquet(tmp_path / "log.parquet"), pandas.read_csv(tmp_path / "log.csv")):
        log = read_table(
            frame, space=logged.space, context=["context_0", "context_1"], reward_range=logged.reward_range
        )
        assert len(log) == len(logged)
        np.testing.assert_allclose(log.rewards.sum(axis=1), logged.returns)
        np.testing.assert_allclose(log.contexts[1], CONTEXTS[1])
    uniform = Anything(logged.space).policy(None)
    estimate = importance_sampling(log, lambda context: uniform)  # of the policy that was played: the mean return
    assert estimate.value == pytest.approx(logged.returns.mean(), abs=1e-9)
