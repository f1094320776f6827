"""Logs as files: whole or not at all, and what other programs read in them."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas
import pytest

import omg_cmdp as omg
from library.tests.runs.corridor import CONTEXTS, HORIZON, Anything, Corridor
from omg_cmdp.environments import from_gymnasium, gymnasium_space
from omg_cmdp.logs import importance_sampling, read_table


@pytest.fixture(scope="module")
def logged():
    agent = Anything(gymnasium_space(Corridor(), horizon=HORIZON), reward_range=(-1.0, 4.0))
    return omg.play(Corridor(), agent, CONTEXTS * 10)


def test_a_log_is_written_whole_or_not_at_all(logged, tmp_path, monkeypatch):
    path = logged.write(tmp_path / "log.csv")
    before = path.read_bytes()

    def crash(table, file, **_):
        Path(file).write_text("half of")
        raise KeyboardInterrupt

    monkeypatch.setattr("pandas.DataFrame.to_csv", crash)
    with pytest.raises(KeyboardInterrupt):
        logged.write(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_table_is_what_off_policy_estimates_read(logged, tmp_path):
    logged.write(tmp_path / "log.parquet")
    logged.write(tmp_path / "log.csv")
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


def test_obp_gets_a_round_for_every_decision(logged, tmp_path):
    with np.load(logged.write(tmp_path / "log.npz")) as feedback:
        lengths = [played.length for played in logged.episodes]
        assert int(feedback["n_rounds"]) == sum(lengths) == len(feedback["action"]) == len(feedback["pscore"])
        assert int(feedback["n_actions"]) == 2
        assert feedback["context"].shape == (sum(lengths), 2 + 4 + HORIZON)
        np.testing.assert_array_equal(feedback["context"][lengths[0], :2], CONTEXTS[1])
        assert (feedback["pscore"] == 0.5).all()
        # Inverse propensities value another policy: of the first step, to go on pays -1 for sure.
        first = feedback["context"][:, 6] == 1.0
        weights = (feedback["action"] == 1) / feedback["pscore"]
        assert (weights * feedback["reward"])[first].mean() == pytest.approx(-1.0, abs=5.0 / np.sqrt(first.sum()))


def test_vowpal_wabbit_reads_and_learns_from_the_log(logged, tmp_path):
    path = logged.write(tmp_path / "log.vw")
    lines = path.read_text().splitlines()
    label, context, state, step = (part.strip() for part in lines[0].split("|"))
    action, cost, probability = label.split(":")
    played = logged.episodes[0]
    assert (int(action), float(cost), float(probability)) == (played.actions[0] + 1, 4.0 - played.rewards[0], 0.5)
    assert (context, state, step) == ("context x0:0.9 x1:0.5", "state s0", "step h0")
    if importlib.util.find_spec("vowpalwabbit") is None:
        pytest.skip("vowpalwabbit is not installed")
    from vowpalwabbit import Workspace

    learner = Workspace("--cb 2 --quiet")
    for line in lines:
        learner.learn(line)
    assert learner.predict(lines[0].partition(" ")[2]) in (1, 2)
    learner.finish()


def test_labels_and_numbers_can_be_contexts(tmp_path):
    lake = from_gymnasium("FrozenLake-v1", [0.5, 0.9], arguments="success_rate", horizon=HORIZON)
    log = omg.play(lake, Anything(lake.space), [0.5, 0.9])
    assert set(log.table()["context"]) == {0.5, 0.9}
    assert "|context x0:0.5 |" in log.write(tmp_path / "log.vw").read_text()
    named = from_gymnasium(
        "FrozenLake-v1", ["wet", "dry"], arguments=lambda c: {"success_rate": {"wet": 0.4, "dry": 1.0}[c]}, horizon=6
    )
    log = omg.play(named, Anything(named.space), ["wet", "dry", "wet"])
    assert "|context cdry |" in log.write(tmp_path / "named.vw").read_text()
    with np.load(log.write(tmp_path / "named.npz")) as feedback:
        assert feedback["context"][0, :2].tolist() == [1.0, 0.0]
