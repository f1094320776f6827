"""A trial from its trial file to the final analysis, with what goes wrong: a small rehearsal, and one of 120 people."""

import contextlib
import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import omg_cmdp as omg
from omg_cmdp.contexts import context_from_json
from omg_trial.analysis import treatment_effect
from omg_trial.cli import app
from omg_trial.export import live_log
from omg_trial.log.database import Database
from omg_trial.rehearsal.findings import analyse
from omg_trial.rehearsal.player import FlakyDatabase, Player
from omg_trial.rehearsal.reactions import load_model, simple_model
from omg_trial.rehearsal.script import TROUBLE
from omg_trial.trial_file.trial import Trial

SIZES = [pytest.param((24, 8), id="small"), pytest.param((120, 30), id="whole", marks=pytest.mark.slow)]
"""People and days."""
SCRIPT = dataclasses.replace(TROUBLE, outage=0.03, leave=0.01, frauds=1)
TRIAL = """
[trial]
name = "twice a day"
horizon = 2
time_zone = "Europe/Berlin"

[states]
names = ["took it", "missed it"]
start = { "took it" = 0.6, "missed it" = 0.4 }

[actions]
names = ["nothing", "reminder"]
fallback = { nothing = 0.5, reminder = 0.5 }
unavailable = "nothing"

[context.columns]
age = { low = 20, high = 90 }
lives = { labels = ["alone", "with others"] }

[rewards]
[dynamics]

[exploration]
floor = 0.2

[learning]
after_episodes = 0

[people]
control = 0.25
"""


@pytest.fixture(scope="module", params=SIZES)
def played(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trial")
    file = folder / "trial.toml"
    file.write_text(TRIAL)
    trial, (people, days) = Trial.read(file), request.param
    store = FlakyDatabase(folder / "trial.db")
    player = Player(trial, store, simple_model(trial), SCRIPT, people=people, days=days, seed=0)
    player.play()
    yield player, folder
    store.close()


@pytest.fixture(scope="module")
def table(played):
    _, folder = played
    done = CliRunner().invoke(app, ["export", str(folder / "trial.db"), "--out", str(folder / "decisions.parquet")])
    assert done.exit_code == 0, done.output
    return pandas.read_parquet(folder / "decisions.parquet")


@pytest.fixture(scope="module")
def log(played):
    player, folder = played
    store = Database(folder / "trial.db", writing=False)
    found = live_log(player.trial, store.read(), player.trial.fixed_policy())
    store.close()
    return found


def test_the_trial_had_its_troubles(played, table):
    player, _ = played
    assert player.store.failures > player.days / 3
    assert player.counts["start"] == 3
    assert player.counts["left"] > 0
    assert player.counts["erase"] == 1
    assert table["reward"].isna().any()
    assert player.desk.state.version.number >= player.days
    assert len(player.desk.state.withdrawn) + len(player.desk.state.erased) >= 2
    hours = pandas.to_datetime(table["local_time"].str[:19]).dt.hour
    assert set(hours) == {8, 14}, "by everybody's own clock"
    assert 0.05 < 1.0 - table["available"].mean() < 0.15


def test_everything_was_decided_once_with_its_probability(played, table):
    player, _ = played
    assert not table.duplicated(["episode", "step"]).any()
    assert table.groupby("person")["episode"].nunique().max() <= player.days
    drawn = table[table["available"]]
    of_action = drawn[[f"probability_{name}" for name in player.trial.actions]].to_numpy()
    places = drawn["action"].map(player.trial.actions.index).to_numpy(int)
    assert (of_action[np.arange(len(drawn)), places] == drawn["probability"]).all()
    assert (of_action >= 0.2 - 1e-12).all()
    assert (drawn["probability"][drawn["arm"] == "control"] == 0.5).all()
    assert table["probability"][~table["available"]].isna().all()


def test_the_intervals_of_the_analysis_cover_what_only_a_simulation_knows(played):
    player, _ = played
    found = analyse(player, level=0.999)
    assert {each.name for each in found} == {
        *("reminder", "reminder, state: took it", "reminder, state: missed it"),
        *("fixed probabilities", "gain by learning", "control arm", "learning arm less control arm"),
    }
    assert all(each.covered for each in found), found
    assert next(each.truth for each in found if each.name == "gain by learning") > 0.0


def test_the_statistician_gets_the_same_from_the_table_alone(played, table, log):
    """The value of the fixed probabilities, within the rules: where nothing was drawn, a step has the weight 1."""
    policy = played[0].trial.fixed_policy()
    kept = table[~table["withdrawn"]].sort_values(["episode", "step"])
    ratios = (0.5 / kept["probability"]).fillna(1.0)
    weights = ratios.groupby(kept["episode"]).cumprod()
    known = kept["reward"].notna() & kept["next_state"].notna()
    steps = kept.assign(weighted=weights * kept["reward"], known=known).groupby("episode")
    episodes = steps.agg(steps=("step", "size"), known=("known", "all"), weighted=("weighted", "sum"))
    whole = episodes[(episodes["steps"] == 2) & episodes["known"]]
    assert len(whole) == len(log.whole())
    estimate = omg.logs.importance_sampling(log.whole(), lambda context: policy)
    assert whole["weighted"].mean() == pytest.approx(estimate.value)
    assert estimate.mean_weights == pytest.approx(1.0, abs=0.1)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_base_r_finds_the_same_effect_and_error_in_the_exported_table(played, table):
    """The program of the guide, whose control variables are a constant and the second state."""
    player, folder = played
    guide = Path(__file__).parents[2] / "docs" / "trial" / "analysis.md"
    program = re.search(r"without a package.*?```\n(.*?)```", guide.read_text(), re.DOTALL)[1].replace("%.6f", "%.12f")
    options = ["export", str(folder / "trial.db"), "--for", "mrt", "--out", str(folder / "mrt.csv")]
    assert CliRunner().invoke(app, options).exit_code == 0
    done = subprocess.run(["Rscript", "-e", program], cwd=folder, capture_output=True, text=True, check=True)
    effect = treatment_effect(player.trial, table, "reminder")
    said = [float(word) for word in re.findall(r"[\d.]+\d", done.stdout)]
    assert said == pytest.approx([effect.values[0], effect.standard_errors[0]], rel=1e-9)


def test_the_log_replays_to_the_bit(played):
    done = CliRunner().invoke(app, ["replay", str(played[1] / "trial.db")])
    assert done.exit_code == 0, done.output
    assert "All else is equal to the log, bit for bit." in done.output, "who was erased cannot be computed again"


def test_contexts_come_back_as_they_were_sent(played, table):
    records = played[0].desk.state.episodes
    for row in table.drop_duplicates("episode").head(200).itertuples():
        if row.episode in records:
            sent = context_from_json(records[row.episode].context)
            assert (row.context_age, row.context_lives) == (sent["age"], sent["lives"])


def never(context, state, action, day):
    """People who never do anything."""
    return 0.0, {state: 1.0}


def test_the_command_is_the_same_to_the_byte_with_the_same_seed_and_takes_a_function_of_ones_own(tmp_path):
    file = tmp_path / "trial.toml"
    file.write_text(TRIAL)
    options = ["rehearse", str(file), "--people", "12", "--days", "3", "--seed", "4", "--out"]
    first, second = (CliRunner().invoke(app, [*options, str(tmp_path / name)]) for name in "ab")
    assert first.exit_code == 0, first.output
    assert "gain by learning: " in first.output
    for name in (
        "decisions.csv",
        "decisions.md",
        "mrt.csv",
        "lifejacket.csv",
        "analysis.csv",
        "minari/data/metadata.json",
    ):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    assert second.exit_code == 0
    model = ["--calm", "--people-model", f"{__name__}:never"]
    done = CliRunner().invoke(app, [*options, str(tmp_path / "c"), *model])
    assert done.exit_code == 0, done.output
    assert (pandas.read_csv(tmp_path / "c" / "decisions.csv")["reward"].dropna() == 0.0).all()
    with pytest.raises(ValueError, match="no module:function"):
        load_model("trial.tests.test_whole_trial:nobody")


def test_what_the_script_says_happens_once_where_the_decisions_of_two_zones_interleave(tmp_path):
    """With three decisions a day, the second one in Berlin is due before the first one in New York."""
    trial = Trial.parse(TRIAL.replace("horizon = 2", "horizon = 3"))
    with contextlib.closing(FlakyDatabase(tmp_path / "trial.db")) as store:
        player = Player(trial, store, simple_model(trial), TROUBLE, people=10, days=6, seed=0)
        player.play()
    assert (player.counts["start"], player.counts["withdraw"], player.counts["erase"]) == (3, 2, 1)
