"""Tables of logged episodes: read whatever the order of rows, and refused by column, rule and row."""

import json

import numpy as np
import pandas
import pyarrow
import pytest

from library.tests.logs.tables import SPACE, frame, random_log, same
from omg_cmdp import Episode, Log, Space, environments, play
from omg_cmdp.agents import Uniform
from omg_cmdp.contexts import context_to_json
from omg_cmdp.logs import importance_sampling, read_export, read_table

VECTOR = ["age", "weight"]


@pytest.fixture
def log(rng):
    return random_log(rng)


@pytest.fixture
def table(log):
    return frame(log)


def test_a_table_is_read_as_it_was_played(log, table):
    assert same(read_table(table, space=SPACE, context=VECTOR), log)


def test_the_order_of_rows_within_episodes_does_not_matter(log, table, rng):
    """Episodes come in the order in which the table first names them; their rows may stand anywhere."""
    firsts = table[table["step"] == 0]
    others = table[table["step"] > 0].sample(frac=1.0, random_state=int(rng.integers(2**31)))
    assert same(read_table(pandas.concat([firsts, others]), space=SPACE, context=VECTOR), log)
    backwards = read_table(table[::-1], space=SPACE, context=VECTOR)
    np.testing.assert_array_equal(backwards.states, log.states[::-1])


def test_reading_changes_nothing_in_the_table(table):
    kept = table.copy()
    read_table(table, space=SPACE, context=VECTOR)
    pandas.testing.assert_frame_equal(table, kept)


def test_columns_may_have_other_names(log, table):
    renamed = table.rename(columns={"state": "s", "propensity": "p", "episode": "patient"})
    names = {"state": "s", "propensity": "p", "person": "patient"}
    assert same(read_table(renamed, space=SPACE, context=VECTOR, **names), log)
    renamed.loc[4, "s"] = 9
    with pytest.raises(ValueError, match=r"column 's' must lie in 0\.\.1, got 9 in row 4"):
        read_table(renamed, space=SPACE, context=VECTOR, **names)


def test_one_column_of_context_holds_labels(table):
    labels = table.assign(ward=np.repeat(["north", "south", "west"] * 2, 3), bed=np.repeat(range(6), 3))
    assert read_table(labels, space=SPACE, context="ward").contexts[:2] == ["north", "south"]
    beds = read_table(labels, space=SPACE, context="bed").contexts
    assert beds == list(range(6))
    assert {type(bed) for bed in beds} == {int}


def test_a_list_of_columns_with_labels_or_gaps_makes_records(table):
    labels = table.assign(ward=np.repeat(["north", "south", None] * 2, 3), bed=np.repeat(range(6), 3))
    assert read_table(labels, space=SPACE, context=["ward", "bed"]).contexts[2] == {"ward": None, "bed": 2}


def test_contexts_have_usual_names(log, table):
    vectors = table.rename(columns={"age": "context_0", "weight": "context_1"})
    assert same(read_table(vectors, space=SPACE), log)
    labels = read_table(table.assign(context=table["episode"]), space=SPACE)
    assert labels.contexts[2] == "patient 2"
    with pytest.raises(ValueError, match="`frame` must have a column 'context'"):
        read_table(table, space=SPACE)


def test_the_order_of_columns_does_not_matter(table):
    """By name, `context_10` comes before `context_2`."""
    wide = table.assign(**{f"context_{place}": float(place) for place in range(12)})
    assert read_table(wide[sorted(wide)], space=SPACE).contexts[0].tolist() == list(range(12))


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_columns_may_be_of_any_dtype(log, table, backend):
    assert same(read_table(table.convert_dtypes(dtype_backend=backend), space=SPACE, context=VECTOR), log)
    categories = table.astype(dict.fromkeys(("episode", "state", "action", "age"), "category"))
    assert same(read_table(categories, space=SPACE, context=VECTOR), log)


def test_what_was_played_in_gymnasium_is_read():
    pytest.importorskip("gymnasium")
    lake = environments.from_gymnasium("FrozenLake-v1", [0.5, 0.9], arguments="success_rate", horizon=20)
    played = play(lake, Uniform(lake.space), [0.5, 0.9, 0.5])
    log = read_table(played.table(), space=played.space, reward_range=played.reward_range)
    assert log.contexts == [0.5, 0.9, 0.5]
    np.testing.assert_array_equal(log.rewards.sum(axis=1), played.returns)
    always_left = np.tile(np.eye(4)[0], (20, 17, 1))
    assert importance_sampling(log, lambda context: always_left).mean_weights.shape == (20,)


def test_propensities_may_be_unknown(table):
    assert read_table(table.drop(columns="propensity"), space=SPACE, context=VECTOR).propensities is None


def test_rewards_may_have_another_range(table):
    euros = table.assign(reward=100.0 * table["reward"])
    assert read_table(euros, space=SPACE, context=VECTOR, reward_range=(0.0, 100.0)).reward_range == (0.0, 100.0)


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("state", 2, "lie in 0..1"),
        ("state", 0.5, "lie in 0..1"),
        ("state", np.nan, "be a finite number"),
        ("action", -1, "lie in 0..1"),
        ("action", "left", "be a finite number"),
        ("reward", 1.5, r"lie in \[0, 1\]"),
        ("reward", np.inf, "be a finite number"),
        ("next_state", 7, "lie in 0..1"),
        ("propensity", 0.0, r"lie in \(0, 1\]"),
        ("propensity", 1.1, r"lie in \(0, 1\]"),
        ("propensity", np.nan, "be known in all of an episode"),
        ("step", 3, "lie in 0..2"),
        ("episode", None, "be a label"),
        ("age", np.nan, "be the same in all rows of an episode"),
        ("age", 123.0, "be the same in all rows of an episode"),
    ],
)
def test_what_is_wrong_is_named_by_column_and_row(table, column, value, rule):
    table.index = [f"line {i}" for i in range(len(table))]
    broken = table.astype({column: object})
    broken.loc["line 7", column] = value
    with pytest.raises(ValueError, match=rf"column '{column}' must {rule}, got .* in row line 7"):
        read_table(broken, space=SPACE, context=VECTOR, reward_range=(0.0, 1.0))


def test_an_episode_hangs_together(table):
    broken = table.assign(next_state=table["next_state"].where(table.index != 3, 1 - table["next_state"]))
    with pytest.raises(ValueError, match=r"column 'next_state' must be the state of the next step, got . in row 3"):
        read_table(broken, space=SPACE, context=VECTOR)


def test_a_step_comes_once(table):
    twice = table.assign(step=table["step"].where(table.index != 5, 1))
    with pytest.raises(ValueError, match="column 'step' must run from 0 to 2, each once in an episode, got 1 in row 5"):
        read_table(twice, space=SPACE, context=VECTOR)
    with pytest.raises(ValueError, match="column 'step' must run from 0 to 2"):
        read_table(pandas.concat([table, table]), space=SPACE, context=VECTOR)
    with pytest.raises(ValueError, match=r"column 'step' must run from 0 to 2, .* got 1 in row 4"):
        read_table(table.drop(index=3), space=SPACE, context=VECTOR)


def test_a_truncated_episode_has_the_steps_that_were_seen(log, table):
    read = read_table(table.drop(index=5), space=SPACE, context=VECTOR)
    assert read.steps.tolist() == [3, 2, 3, 3, 3, 3]
    assert read.episodes[1].states.tolist() == log.episodes[1].states[:3].tolist()
    assert same(read_table(read.table(), space=SPACE), read)
    assert len(read.whole()) == 5


def test_a_terminated_episode_is_continued_in_the_last_state(table):
    cut = table.drop(index=5).assign(terminated=False)
    cut.loc[4, "terminated"] = True
    ended = read_table(cut, space=SPACE, context=VECTOR).episodes[1]
    assert ended.states[2:].tolist() == [1, 1]
    assert ended.rewards[2] == 0.0
    assert ended.propensities[2] == 1.0
    assert ended.length == 2
    cut.loc[3, "terminated"] = True
    with pytest.raises(ValueError, match="column 'terminated' must be true in the last step of an episode only"):
        read_table(cut, space=SPACE, context=VECTOR)


def test_a_missing_reward_is_not_known_yet(table):
    table["reward"] = table["reward"].where(table.index != 4)
    read = read_table(table, space=SPACE, context=VECTOR)
    assert np.isnan(read.rewards).sum() == 1
    assert len(read.whole()) == 5
    with pytest.raises(ValueError, match=r"`log` must hold whole episodes .* got 2 of 3 rewards in episode 1"):
        importance_sampling(read, lambda context: np.full((3, 2, 2), 0.5))


def test_an_episode_that_begins_elsewhere_is_refused(table):
    """An agent plans from where its space starts, and would play at random elsewhere."""
    table[["state", "next_state"]] = 0
    table.loc[6:8, ["state", "next_state"]] = 1
    assert len(read_table(table, space=SPACE, context=VECTOR)) == 6
    with pytest.raises(ValueError, match=r"column 'state' must begin where the space starts .*, got 1 in row 6"):
        read_table(table, space=Space(states=2, actions=2, horizon=3, start=0), context=VECTOR)


def test_an_inadmissible_action_is_refused(table):
    table["state"], table["next_state"], table["action"] = 0, 0, 0
    table.loc[8, "action"] = 1
    narrow = Space(states=2, actions=2, horizon=3, admissible=[[True, False], [True, True]])
    with pytest.raises(ValueError, match="column 'action' must be admissible in its state, got 1 in row 8"):
        read_table(table, space=narrow, context=VECTOR)


def test_what_is_no_table_is_refused(table):
    for nothing in (None, [1, 2], table[:0], pyarrow.Table.from_pandas(table)):
        with pytest.raises(ValueError, match=r"`frame` must be a pandas\.DataFrame with at least one row"):
            read_table(nothing, space=SPACE, context=VECTOR)
    with pytest.raises(ValueError, match="`frame` must have a column 'reward', got"):
        read_table(table.drop(columns="reward"), space=SPACE, context=VECTOR)
    with pytest.raises(ValueError, match="`frame` must have each column once"):
        read_table(pandas.concat([table, table[["state"]]], axis=1), space=SPACE, context=VECTOR)
    for vector in ([1.0, 2.0], np.array([1.0, 2.0])):
        with pytest.raises(ValueError, match="column 'context' must be a label \\(a vector needs columns of numbers"):
            read_table(table.assign(context=[vector] * len(table)), space=SPACE)
    with pytest.raises(ValueError, match="`frame` must have a column 'height'"):
        read_table(table, space=SPACE, context=["height"])
    with pytest.raises(ValueError, match=r"`frame` must be a DataFrame or end in \.csv, \.parquet, got 'table\.xls'"):
        read_table("table.xls", space=SPACE)


def exported(log):
    lists = {name: [json.dumps(x.tolist()) for x in getattr(log, name)] for name in ("states", "actions", "rewards")}
    contexts = [context_to_json(context) for context in log.contexts]
    return pandas.DataFrame({"context": contexts, **lists, "propensities": [p.tolist() for p in log.propensities]})


def test_an_export_is_refused_by_its_row(log):
    table = exported(log)
    assert same(read_export(table, SPACE), log)
    assert read_export(table.drop(columns="propensities"), SPACE).propensities is None
    for column, value, rule in (
        ("states", "[0, 1]", "must have shapes"),
        ("actions", "[0, 0, 5]", "`actions` must lie in 0..1"),
        ("rewards", "broken", "Expecting value"),
        ("context", "broken", "Expecting value"),
        ("propensities", [0.5, 0.0, 0.5], r"`propensities` must lie in \(0, 1\]"),
        ("propensities", [0.5], "`propensities` must have shape"),
    ):
        broken = table.astype({column: object})
        broken.at[4, column] = value
        with pytest.raises(ValueError, match=f"row 4 must hold an episode of the space: .*{rule}"):
            read_export(broken, SPACE)
    with pytest.raises(ValueError, match="column 'world' must hold one world, got"):
        read_export(table.assign(world=["decoy", "lock"] * 3), SPACE)


def test_records_go_through_a_table(tmp_path):
    """What `Log.table` writes is read back: numbers, texts and what is missing; from a file, too."""
    space = Space(states=2, actions=2, horizon=2)
    log = Log(space)
    steps = {"states": [0, 1, 1], "actions": [0, 1], "rewards": [0.0, 1.0], "propensities": [0.5, 0.5]}
    for context in ({"age": 3.5, "ward": "a"}, {"age": None, "ward": "b"}):
        log.add(Episode(context=context, **steps))
    table = log.table()
    assert read_table(table, space=space).contexts == log.contexts
    table.to_csv(tmp_path / "log.csv", index=False)
    assert read_table(pandas.read_csv(tmp_path / "log.csv"), space=space).contexts == log.contexts
    chosen = read_table(table, space=space, context={"years": "context.age"})
    assert chosen.contexts == [{"years": 3.5}, {"years": None}]
    with pytest.raises(ValueError, match=r"`frame` must have a column 'weight'"):
        read_table(table, space=space, context={"weight": "weight"})
    table.loc[1, "context.ward"] = "c"
    with pytest.raises(
        ValueError, match=r"column 'context.ward' must be the same in all rows of an episode, got c in row 1"
    ):
        read_table(table, space=space)
