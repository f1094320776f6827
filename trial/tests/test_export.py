"""What the statistician gets: a row for every decision, and the log with exact propensities."""

import json

import numpy as np
import pandas
import pytest

from omg_trial.contract import Refusal
from omg_trial.export import decisions, live_log, write_decisions, write_minari
from omg_trial.export.decisions import columns
from omg_trial.export.field import lifejacket_table, mrt_table
from omg_trial.export.logged import episode_of
from omg_trial.replay import replay
from omg_trial.watching.course import rewards
from omg_trial.watching.losses import watch
from omg_trial.watching.outcomes import support
from omg_trial.watching.process import Process
from trial.tests.trials import TEXT, Trialist, desk, person

FORMULA = '=HYPERLINK("http://elsewhere")'
LABELLED = (
    TEXT.replace("[context.columns]", "[context]\nlabels = ['alone', 'with others']")
    .replace("age = { low = 20, high = 90 }", "")
    .replace('lives = { labels = ["alone", "with others"] }', "")
)


def opened(at, name="p1", context=None):
    return json.loads(at.call("open", {"person": name, "context": context or person(1)}).text)["episode"]


def decided(at, episode, step, state="took it", **more):
    return json.loads(at.call("decide", {"episode": episode, "step": step, "state": state, **more}).text)


@pytest.fixture(scope="module")
def played():
    at = desk()
    Trialist(at, seed=0, people=5, overlapping=3).play(20)
    at.call("withdraw", {"person": "p3"})
    return at


def test_a_row_for_every_decision_as_the_log_has_it(played):
    table = decisions(played.trial, played.store.read(), withdrawn=True)
    events = {(e.body["episode"], e.body["step"]): e for e in played.store.read() if e.kind == "decided"}
    assert set(zip(table["episode"], table["step"], strict=True)) == events.keys()
    for row in table.to_dict("records"):
        event = events[row["episode"], row["step"]]
        assert row["probability"] == event.body["probability"]
        assert [row[f"probability_{name}"] for name in played.trial.actions] == event.body["probabilities"]
        assert row["action"] == played.trial.actions[event.body["action"]]
        assert row["time"] == event.time


def test_whoever_has_withdrawn_is_marked_in_the_table_and_not_in_the_log(played):
    table = decisions(played.trial, played.store.read(), withdrawn=True)
    assert set(table.loc[table["withdrawn"], "person"]) == {"p3"}
    known = {record.number for record in played.state.episodes.values() if record.example(None) is not None}
    assert len(live_log(played.trial, played.store.read())) == len(known)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_hold_the_table_to_the_bit_with_a_dictionary_of_every_column(played, tmp_path, ending):
    file, explained = write_decisions(
        played.trial, played.store.read(), tmp_path / f"deep/decisions.{ending}", withdrawn=True
    )
    kinds = {name: column.kind for name, column in columns(played.trial).items()}
    read = pandas.read_csv(file, dtype=kinds) if ending == "csv" else pandas.read_parquet(file).astype(kinds)
    whole = decisions(played.trial, played.store.read(), withdrawn=True)
    for name in ("rules", "closed_actions"):  # an empty text is nothing in CSV
        read[name] = read[name].fillna("")
    pandas.testing.assert_frame_equal(read, whole, check_exact=True)
    text = explained.read_text()
    assert [name for name in whole if f"| `{name}` |" not in text] == []
    assert played.state.secret not in text + file.read_bytes().decode("latin-1")


def test_another_ending_is_refused_and_nothing_is_written(played, tmp_path):
    with pytest.raises(ValueError, match=r"`path` must end with \.csv or \.parquet, got 'x\.xlsx'"):
        write_decisions(played.trial, played.store.read(), tmp_path / "x.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_text_is_no_formula_in_a_spreadsheet(tmp_path):
    at = desk()
    decided(at, opened(at, context={"lives": FORMULA}), 0)
    file, _ = write_decisions(at.trial, at.store.read(), tmp_path / "x.csv")
    assert pandas.read_csv(file)["context_lives"].tolist() == [f"'{FORMULA}"]


def test_what_was_done_instead_has_no_probability_and_ends_the_logged_episode():
    at = desk()
    episode = opened(at)
    first = decided(at, episode, 0)
    drawn = json.loads(list(at.store.read())[episode - 1].answer)["drawn"][1][0]
    decided(at, episode, 1, action=next(name for name in at.trial.actions if name != drawn))
    decided(at, episode, 2)
    at.call("report", {"episode": episode, "step": 2, "next_state": "took it"})
    rows = decisions(at.trial, at.store.read()).set_index("step")
    assert rows.loc[1, "drawn"] == drawn != rows.loc[1, "action"]
    assert rows["probability"].isna().tolist() == [False, True, False]
    [logged] = live_log(at.trial, at.store.read()).episodes
    assert logged.actions.tolist() == [at.trial.actions.index(first["action"])]


@pytest.mark.parametrize("given", [1, 1.0, "1"])
def test_a_category_is_exported_and_checked_as_the_model_takes_it(given):
    """JSON has 1 and 1.0 for the label "1"."""
    at = desk(text=TEXT.replace('["alone", "with others"]', '["0", "1"]'))
    decided(at, opened(at, context={"age": 50, "lives": given}), 0)
    assert at.trial.vector(at.trial.context(at.state.episodes[3].context))[-1] > 0.0
    assert decisions(at.trial, at.store.read())["context_lives"].tolist() == ["1"]
    view = watch(at, Process(at.clock))
    assert support(view)[0] == "green"
    assert [row["value"] for row in rewards(view) if row["column"] == "lives"] == ["0", "1"]


def test_an_episode_that_began_in_an_impossible_state_is_in_the_table_and_not_in_the_log(tmp_path):
    """One wrong call of an app is a yellow check, and must not end the analysis."""
    at = desk()
    for name, state in (("p1", "missed it"), ("p2", "took it")):
        decided(at, episode := opened(at, name), 0, state)
        at.call("report", {"episode": episode, "step": 0, "reward": 1.0, "next_state": "took it"})
    assert not at.trial.space.start[1]
    assert decisions(at.trial, at.store.read())["person"].tolist() == ["p1", "p2"]
    [logged] = live_log(at.trial, at.store.read()).episodes
    assert logged.states[0] == 0
    assert (
        json.loads((write_minari(at.trial, at.store.read(), tmp_path) / "metadata.json").read_text())["total_episodes"]
        == 1
    )


def test_contexts_of_any_kind_have_their_columns(tmp_path):
    at = desk(text=LABELLED)
    decided(at, opened(at, context="alone"), 0)
    assert decisions(at.trial, at.store.read())["context"].tolist() == ["alone"]
    at = desk()
    decided(at, opened(at, context={"age": "forty", "lives": 3}), 0)
    file, _ = write_decisions(at.trial, at.store.read(), tmp_path / "x.parquet")
    [row] = pandas.read_parquet(file).to_dict("records")
    assert np.isnan(row["context_age"])
    assert row["context_lives"] == "3"


def test_nothing_yet_is_an_empty_table(tmp_path):
    at = desk()
    file, _ = write_decisions(at.trial, at.store.read(), tmp_path / "x.parquet")
    assert len(pandas.read_parquet(file)) == len(live_log(at.trial, at.store.read())) == 0
    with pytest.raises(ValueError, match="there is no decision yet"):
        lifejacket_table(at.trial, decisions(at.trial, at.store.read()))


@pytest.mark.parametrize("value", [10**400, -(10**400), 10**309])
def test_a_number_that_no_machine_holds_is_refused_at_the_door(value):
    at = desk()
    with pytest.raises(Refusal, match=r"`context.age`: give a finite number"):
        opened(at, context={"age": value})


@pytest.mark.parametrize("text", ["71", " 71 ", "1e1", "nan", "old"])
def test_a_text_where_a_number_belongs_is_missing_to_the_model_and_to_the_export(text):
    """Otherwise the model would decide by an age that the statistician does not see."""
    at = desk()
    policies = [
        json.loads(at.call("open", {"person": name, "context": {"age": age, "lives": "alone"}}).text)["policy"]
        for name, age in (("x1", text), ("x2", None), ("x3", 71))
    ]
    for _ in range(3):
        Trialist(at, seed=1).play(4)
    later = [
        json.loads(at.call("open", {"person": name, "context": {"age": age, "lives": "alone"}}).text)["policy"]
        for name, age in (("q1", text), ("q2", None), ("q3", 71))
    ]
    assert policies[0] == policies[1]
    assert later[0] == later[1] != later[2]
    episode = next(number for number, record in at.state.episodes.items() if record.person == "q1")
    decided(at, episode, 0)
    at.call("report", {"episode": episode, "step": 0, "reward": 1.0, "next_state": "took it"})
    at.call("close", {"episode": episode})
    at.call("learn", {})
    at.learn_here()
    table = decisions(at.trial, at.store.read())
    assert table["context_age"][table["person"] == "q1"].isna().all()
    assert replay(at.trial, at.store.read()).differences == []
    assert live_log(at.trial, at.store.read())


@pytest.mark.parametrize("text", ["alone\rwith", "alone\nwith", "a\x00b", "a\x1b[2J", "\x85x", "a\u2028b"])
def test_a_text_that_would_split_a_row_is_refused_at_the_door(text):
    with pytest.raises(Refusal, match=r"`context.lives`: give"):
        opened(desk(), context={"lives": text})


def test_a_row_of_csv_is_one_line_whatever_a_trial_file_names(tmp_path):
    at = desk(text=TEXT.replace('"missed it"', '"missed\\rit"'))
    episode = opened(at)
    decided(at, episode, 0, "missed\rit")
    path = tmp_path / "table.csv"
    write_decisions(at.trial, at.store.read(), path)
    assert len(pandas.read_csv(path)) == 1


def test_the_table_for_mrtanalysis_has_what_its_checks_ask_for(played):
    """No gaps, treatments of 0 and 1, probabilities within (0, 1) where somebody was available; nobody who left."""
    whole = decisions(played.trial, played.store.read(), withdrawn=True)
    table = mrt_table(played.trial, whole, ["call"])
    rows = whole[~whole["withdrawn"] & whole["reward"].notna()]
    assert table["id"].tolist() == rows["person"].tolist()
    assert not table[["availability", "rand_prob", "treatment", "outcome"]].isna().any().any()
    free = table["availability"] == 1
    assert table["treatment"][free].tolist() == (rows["drawn"] == "call")[free.to_numpy()].astype(int).tolist()
    assert table["rand_prob"][free].tolist() == rows["probability_call"][free.to_numpy()].tolist()
    numbers = table.groupby("id")["decision_point"]
    assert (numbers.diff().dropna() > 0).all()
    with pytest.raises(ValueError, match="`treatments` must be among nothing, reminder, call, got 'letter'"):
        mrt_table(played.trial, whole, ["letter"])


def test_the_table_for_lifejacket_is_a_rectangle_of_people_and_times(played):
    """Its own checks: all times for everybody, one unbroken stretch in the study, policies that only go forward."""
    whole = decisions(played.trial, played.store.read(), withdrawn=True)
    table = lifejacket_table(played.trial, whole)
    times = table["calendar_t"].unique()
    assert times.tolist() == list(range(1, len(times) + 1))
    assert (table.groupby("user_id")["calendar_t"].nunique() == len(times)).all()
    assert not table.duplicated(["user_id", "calendar_t"]).any()
    inside = table[table["in_study"] == 1]
    assert (inside.groupby("user_id")["calendar_t"].diff().dropna() == 1).all()
    used = inside[inside["policy_num"] >= 0]
    assert sorted(used["policy_num"].unique()) == list(range(used["policy_num"].max() + 1))
    assert (used.groupby("user_id")["policy_num"].diff().dropna() >= 0).all()
    kept = whole[~whole["withdrawn"] & whole["reward"].notna()]
    assert used["reward"].sum() == kept["reward"].sum()
    assert (used["observed"] == 1).all()
    assert len(used) == len(kept)


def test_a_folder_for_minari_has_the_episodes_of_the_log(played, tmp_path):
    """Observations are one longer than the rest, whose last entry its reader leaves out."""
    path = write_minari(played.trial, played.store.read(), tmp_path / "dataset")
    known = json.loads((path / "metadata.json").read_text())
    read = [pandas.read_parquet(path / str(number) / "part-0.parquet") for number in range(known["total_episodes"])]
    log = live_log(played.trial, played.store.read())
    assert sum(len(each) - 1 for each in read) == known["total_steps"] <= sum(log.steps)
    first, table = log.episodes[0], read[0]
    steps = len(table) - 1
    assert [row["state"] for row in table["observations"]] == list(first.states[: steps + 1])
    assert table["actions"][:-1].tolist() == list(first.actions[:steps])
    assert [row["propensity"] for row in table["infos"][:-1]] == list(first.propensities[:steps])
    assert (table["terminations"] | table["truncations"])[:-1].sum() == 1
    minari = pytest.importorskip("minari", reason="needs minari")
    assert sum(len(each.rewards) for each in minari.MinariDataset(path)) == known["total_steps"]


def test_a_probability_above_1_by_rounding_is_1_in_a_log():
    """Where a rule leaves one action, what the others had is added up."""
    at = desk()
    episode = json.loads(at.call("open", {"person": "p1", "context": person(1)}).text)["episode"]
    at.call("decide", {"episode": episode, "step": 0, "state": "took it"})
    at.call("report", {"episode": episode, "step": 0, "next_state": "took it"})
    record = at.state.episodes[episode]
    above = 1.0000000000000002
    for rules in ({}, {"probabilities": (above, 0.0, 0.0), "action": 0}):
        record.choices[0] = record.choices[0]._replace(probability=above, **rules)
        for policy in (None, at.trial.fixed_policy()):
            assert episode_of(at.trial, record, policy).propensities[0] <= 1.0
