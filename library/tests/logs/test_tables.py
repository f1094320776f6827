"""Tables of other people: names, first steps of 1, missing ends, and all that is wrong at once."""

import numpy as np
import pandas
import pyarrow.parquet
import pytest

import omg_cmdp as omg
from omg_cmdp import Log
from omg_cmdp.logs import read_log, read_table

NAMES = {"person": "patient", "step": "visit", "context": ["age"], "state": "stage", "action": "drug", "reward": "y"}
TABLE = pandas.DataFrame(
    {
        "patient": ["p", "p", "p", "q", "q", "r"],
        "visit": [1, 2, 3, 1, 2, 1],
        "age": [40.0, 40.0, 40.0, 50.0, 50.0, 60.0],
        "stage": ["mild", "severe", "mild", "severe", "mild", "mild"],
        "drug": ["B", "A", "A", "A", "B", "A"],
        "y": [0.0, 0.5, 1.0, 0.0, 1.0, 0.25],
    }
)


def test_names_become_numbers_and_are_kept():
    log = read_table(TABLE, **NAMES)
    assert (log.state_names, log.action_names) == (("mild", "severe"), ("A", "B"))
    assert (log.space.states, log.space.actions, log.space.horizon) == (2, 2, 3)
    np.testing.assert_allclose(log.space.start, [2 / 3, 1 / 3])
    assert log.states.tolist() == [[0, 1, 0, -1], [1, 0, -1, -1], [0, -1, -1, -1]]
    assert log.steps.tolist() == [3, 2, 1]
    assert log[1:].action_names == log.whole().action_names == ("A", "B")
    ordered = TABLE.assign(stage=pandas.Categorical(TABLE["stage"], ["severe", "mild"]))
    assert read_table(ordered, **NAMES).state_names == ("severe", "mild")
    assert read_table(TABLE, **NAMES, actions=["B", "A", "C"]).actions[0].tolist() == [0, 1, 1]


def test_where_the_last_action_led_is_learned_only_if_the_table_says_so():
    """Three ways to say it, and the way in which nobody does; the reward is learned in all of them."""
    silent = read_table(TABLE, **NAMES)
    assert not silent.episodes[0].end_known
    row = {"patient": "p", "visit": 4, "age": 40.0, "stage": "severe"}
    by_row = read_table(pandas.concat([TABLE, pandas.DataFrame([row])]), **NAMES)
    assert by_row.space.horizon == 3
    assert by_row.states[0].tolist() == [0, 1, 0, 1]
    following = TABLE.assign(next_state=["severe", "mild", "severe", "mild", None, None])
    assert read_table(following, **NAMES).states[0].tolist() == [0, 1, 0, 1]
    ended = read_table(TABLE.assign(terminated=[False, False, True, False, True, False]), **NAMES)
    assert ended.state_names == ("mild", "severe", "ended")
    assert ended.states[1].tolist() == [1, 0, 2, 2]
    sizes = {"states": 2, "actions": 2, "horizon": 3}
    seen = {}
    for name, log in (("silent", silent), ("told", by_row)):
        oracles = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
        agent = omg.logs.warm_start(omg.agents.Greedy(log.space, *oracles), log[:1])
        seen[name] = agent.model("c")
    np.testing.assert_array_equal(seen["silent"].rewards, seen["told"].rewards)
    assert (seen["silent"].transitions[0, 0] == 0.5).all()  # only the last action was A in a mild state
    assert seen["told"].transitions[0, 0, 1] > 0.5


def test_all_problems_are_reported_at_once(tmp_path):
    broken = TABLE.astype({"y": object, "visit": float})
    broken.loc[0, "drug"], broken.loc[1, "y"], broken.loc[2, "age"], broken.loc[4, "visit"] = None, "high", 41.0, 7.0
    broken.loc[3, "stage"] = None
    broken["p"] = [0.5, 0.5, 1.5, 0.5, np.nan, 0.0]
    problems = (
        r"5 problems:(?s:.*)column 'visit' must run from 1 to 7, each once in an episode, got 7.0 in row 4",
        "column 'stage' must be known, got nan in row 3",
        "column 'drug' must be known, got nan in row 0",
        "column 'y' must be a finite number, got high in row 1",
        "column 'age' must be the same in all rows of an episode, got 41.0 in row 2",
        r"column 'p' must lie in \(0, 1\], got 1.5 in row 2 \(2 in all, also in 5\)",
        "column 'p' must be known in all of an episode, got nan in row 4",
    )
    for problem in ("7 problems:", *(each.removeprefix("5 problems:(?s:.*)") for each in problems)):
        with pytest.raises(ValueError, match=problem):
            read_table(broken, **NAMES, propensity="p")
    broken.to_csv(tmp_path / "broken.csv", index=False)
    with pytest.raises(ValueError, match="column 'stage' must be known, got nan in line 5"):
        read_table(tmp_path / "broken.csv", **NAMES, propensity="p")


def test_a_file_is_a_table(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    TABLE.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        assert read_table(str(tmp_path / name), **NAMES).states.tolist() == read_table(TABLE, **NAMES).states.tolist()
    dates = TABLE.assign(visit=pandas.to_datetime("2020-01-01") + pandas.to_timedelta(TABLE["visit"] ** 2, "D"))
    assert read_table(dates, **NAMES).states.tolist() == read_table(TABLE, **NAMES).states.tolist()


@pytest.mark.parametrize("notes", ['{"columns": [{}], "index_columns": []}', "[" * 100_000, "1", "{"])
def test_a_file_whose_notes_for_pandas_are_damaged_is_refused(tmp_path, notes):
    table = pyarrow.Table.from_pandas(TABLE).replace_schema_metadata({b"pandas": notes.encode()})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="`frame` must be as pandas writes it"):
        read_table(tmp_path / "t.parquet", **NAMES)


def test_an_unknown_end_is_written_and_read(tmp_path):
    log = read_table(TABLE, **NAMES)
    again = read_log(log.write(tmp_path / "log.jsonl"), log.space)
    assert again.states.tolist() == log.states.tolist()
    assert [episode.end_known for episode in again.episodes] == [False] * 3


def test_rewards_outside_of_one_set_the_range():
    assert read_table(TABLE, **NAMES).reward_range == (0.0, 1.0)
    assert read_table(TABLE.assign(y=TABLE["y"] * 40 - 10), **NAMES).reward_range == (-10.0, 30.0)


def test_an_agent_that_was_taught_unknown_ends_is_saved_and_judges_itself(tmp_path):
    log = read_table(TABLE, **NAMES)
    sizes = {"states": 2, "actions": 2, "horizon": 3}
    agent = omg.OMG(log.space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    omg.logs.warm_start(agent, log)
    agent.misfit()
    agent.save(tmp_path / "agent.npz")
    again = omg.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(again.policy("c"), agent.policy("c"))
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "agent.npz").read_bytes()
    omg.logs.suggest_features(Log(log.space, log.episodes * 20))
