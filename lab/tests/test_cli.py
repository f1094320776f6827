"""The command line: what is typed, what is printed, the exit codes."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pandas
import pytest
from rich.console import Console
from typer.testing import CliRunner

import omg_cmdp
from lab.tests.studies.examples import SMALL, content, run_study
from lab.tests.studies.processes import ROOT, command, wait_for
from omg_lab.cli import app
from omg_lab.reports.terminal import RunDisplay
from omg_lab.studies.catalogue import DELAYS
from omg_lab.studies.config import load_plan, presets, read_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.results import load
from omg_lab.studies.runner import Failed, Finished, Lost, Progress


def called(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def done(file, tmp_path_factory):
    directory = tmp_path_factory.mktemp("done")
    result = called("run", file, "--out", directory, "--workers", 1)
    assert result.exit_code == 0, result.output
    return directory


def test_a_run_ends_with_a_table_and_says_where_it_is(file, tmp_path):
    result = called("run", file, "--out", tmp_path, "--workers", 1, "--seeds", 1)
    assert result.exit_code == 0
    assert "4/4 decoy--sorted--posterior-sampling--0: regret" in result.output
    assert "mean regret" in result.output
    assert "\x1b" not in result.output
    assert str(tmp_path) in result.output.replace("\n", "")


def test_what_is_finished_is_not_run_again(file, done):
    before = content(done), {path.name: path.stat().st_mtime_ns for path in (done / "runs").iterdir()}
    result = called("run", file, "--out", done, "--workers", 1)
    assert result.exit_code == 0
    assert (content(done), {path.name: path.stat().st_mtime_ns for path in (done / "runs").iterdir()}) == before


def test_a_study_can_grow_but_not_change(file, tmp_path):
    grow = ("run", file, "--out", tmp_path, "--workers", 1)
    assert called(*grow, "--seeds", 1).exit_code == 0
    assert called(*grow, "--set", "agents.blind.kind=ucbvi", "--set", "agents.blind.cover=blind").exit_code == 0
    assert len(load(tmp_path).runs) == 2 * 5
    assert len(load(tmp_path).configuration["agents"]) == 5
    for change in ("episodes=61", "agents.omg.delta=0.5"):
        result = called(*grow, "--set", change)
        assert result.exit_code == 2
        assert "holds a study with" in result.output


def test_provenance_is_kept(done):
    provenance = load(done).provenance
    assert provenance["versions"]["numpy"]
    assert provenance["version"] == omg_cmdp.__version__
    assert re.fullmatch(r"[0-9a-f]{40}( \(with uncommitted changes\))?|unknown", provenance["commit"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "dmeo"], "did you mean 'demo'?"),
        (["run", "FILE", "--set", "agents.omg.dellta=1"], "did you mean 'delta'?"),
        (["run", "FILE", "--set", "agents.omg.delta"], "KEY=VALUE"),
        (["run", "FILE", "--episodes", "none"], "--episodes none"),
        (["run", "FILE", "--engine", "cloud"], "--engine"),
        (["run", "FILE", "--address", "here"], "--address"),
        (["run", "FILE", "--workers", "0"], "workers"),
        (["list", "gredy"], "did you mean 'greedy'?"),
        (["audit", "NOWHERE"], "there is no study in"),
        (["report", "NOWHERE"], "there is no study in"),
        (["compare", "NOWHERE"], "there is no study in"),
        (["export", "NOWHERE"], "there is no study in"),
        (["fly"], "No such command"),
    ],
)
def test_bad_usage_ends_with_two_and_a_line(arguments, said, file, tmp_path):
    places = {"FILE": file, "NOWHERE": tmp_path / "nowhere"}
    result = called(*(places.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["audit", "compare", "export"])
def test_before_a_run_has_finished_there_is_nothing_to_show(command, tmp_path):
    open_study(read_plan(SMALL), tmp_path)
    result = called(command, tmp_path)
    assert result.exit_code == 2
    assert "finished" in result.output


def test_before_a_run_has_finished_the_report_says_so(tmp_path):
    pytest.importorskip("matplotlib")
    open_study(read_plan(SMALL), tmp_path)
    assert called("report", tmp_path).exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert "No run is finished yet." in page
    assert "0 of 8 runs are finished" in page


def test_an_audit_of_no_run_is_refused(done):
    result = called("audit", done, "--runs", "typo")
    assert result.exit_code == 2
    assert "has 'typo' in its name" in result.output


@pytest.mark.parametrize("place", ["a file", "a link in a circle", "under a file", "no UTF-8"])
def test_where_no_folder_can_be_there_is_an_error_and_no_traceback(place, file, tmp_path):
    out = tmp_path / "out"
    if place == "a link in a circle":
        out.symlink_to(out)
    elif place == "no UTF-8":
        out = Path(os.fsdecode(bytes(tmp_path) + b"/\xff"))
    else:
        out.touch()
        out = out / "study" if place == "under a file" else out
    for arguments in (("run", file, "--out", out, "--workers", 1), ("report", out)):
        result = called(*arguments)
        assert result.exit_code == 2, arguments
        assert isinstance(result.exception, SystemExit)
        assert ("UTF-8" if place == "no UTF-8" else str(out)) in result.output
    if place != "a file":
        return
    assert called("export", out).exit_code == 2


def test_nothing_that_is_shown_moves_the_terminal(file, tmp_path):
    odd = "x\x1b]0;title\x07\x1b[2J"
    for arguments in (("run", odd), ("run", file, "--set", f"agents.{odd}.kind=omg"), ("list", odd), ("audit", odd)):
        result = called(*arguments)
        assert result.exit_code == 2
        assert "\x1b" not in result.output
        assert "\\x1b[2J" in result.output or "\\x1b" in result.output
    shown = called(
        "run", file, "--set", f'description="{odd}"'.replace("\x1b", "\\u001b").replace("\x07", ""), "--dry-run"
    )
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output
    assert "\\x1b[2J" in shown.output


def test_a_failed_run_ends_with_one_and_its_error(file, tmp_path, monkeypatch):
    monkeypatch.setattr("omg_lab.rivals.ucbvi.UCBVI._learn", lambda *_: 1 / 0)
    result = called("run", file, "--out", tmp_path, "--workers", 1, "--seeds", 1)
    assert result.exit_code == 1
    assert "ZeroDivisionError" in result.output
    assert len(load(tmp_path).runs) == 3


def test_machines_get_one_document(file, tmp_path):
    result = called("run", file, "--out", tmp_path, "--workers", 1, "--seeds", 1, "--json")
    document = json.loads(result.stdout)
    assert document["directory"] == str(tmp_path)
    assert {run["agent"] for run in document["runs"]} == {"omg", "ucbvi", "pc_igw", "posterior_sampling"}


def test_quiet_is_quiet(file, tmp_path):
    assert called("run", file, "--out", tmp_path, "--workers", 1, "--seeds", 1, "--quiet").output == ""


def test_a_dry_run_says_what_it_would_do_and_does_nothing(file, tmp_path):
    result = called("run", file, "--out", tmp_path / "x", "--dry-run")
    assert result.exit_code == 0
    assert "8 runs of 60 episodes; about" in result.output
    assert not (tmp_path / "x").exists()
    shown = json.loads(called("run", file, "--dry-run", "--json", "--workers", 2).stdout)
    assert shown["seconds"] > 0.0
    assert 2 * 2**26 < shown["bytes"] < 2 * 2**34  # two processes with numpy and pandas in them


def test_presets_and_kinds_are_listed_with_sizes():
    output = called("list").output
    for name in (*presets(), "treatment", "worst_regret", "posterior_sampling", *DELAYS):
        assert name in output
    assert "80 runs of 1500 episodes" in output
    assert "delta" in called("list", "omg").output
    assert "exponent" in called("list", "heavy_tailed").output
    assert "most" in called("list", "up_to").output
    linear = called("list", "linear").output
    assert "linear (rewards): Rewards linear in features" in linear
    assert "(from the world)" in linear
    assert "(required)" not in linear
    assert "[worlds.treatment]" in called("list", "demo").output


def test_nothing_of_linux_alone_is_needed(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert called("run", "demo", "--dry-run", "--episodes", 1, "--seeds", 1).exit_code == 0


def test_a_system_without_file_locks_is_refused(file, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = called("run", file, "--out", tmp_path / "x")
    assert result.exit_code == 2
    assert "Windows" in result.output


def test_a_terminal_shows_a_line_for_each_run_and_a_bar_for_all(capsys):
    console = Console(file=io.StringIO(), force_terminal=True, width=140)
    tasks = read_plan(SMALL).tasks()
    with RunDisplay(console, tasks) as display:
        display(Progress(tasks[0].name, 0, 0.0))
        display(Lost(tasks[0].name))
        display(Progress(tasks[0].name, 30, 12.25))
        display(Finished(tasks[1].name, {"regret": 7.5, "seconds": 0.5}))
        display(Failed(tasks[2].name, "ValueError: [no] markup"))
    shown = console.file.getvalue()
    assert "its worker died" in shown
    assert "ValueError: [no] markup" in shown
    assert f"1/8 {tasks[1].name}: regret 7.5, 0.5 s" in shown
    assert f"2/8 {tasks[2].name} failed: " in shown
    last = capsys.readouterr().err.rpartition("\r")[2]
    assert last.startswith("all runs [#######")
    assert f"{30 + 60 + 60} of 480 episodes" in last


def test_an_audit_plays_runs_again_and_finds_them_sound(done):
    result = called("audit", done, "--episodes", 30, "--runs", "--omg--0")
    assert result.exit_code == 0
    assert "played again, equal to its log, bit for bit" in result.output
    assert "slack" in result.output
    records = json.loads(called("audit", done, "--episodes", 30, "--runs", "--omg--0", "--json").stdout)
    assert len(records) == 1
    assert len(records[0]["rows"]) > 10
    assert all(row["violations"] == 0 < row["checks"] for row in records[0]["rows"])


def test_agents_are_compared(done):
    result = called("compare", done)
    assert result.exit_code == 0
    assert "better on average" in result.output
    assert "better on most seeds" in result.output
    assert len(json.loads(called("compare", done, "--json").stdout)) == 6
    assert len(json.loads(called("compare", done, "--json", "--against", "omg").stdout)) == 3
    assert called("compare", done, "--against", "nobody").exit_code == 2


def test_a_scenario_with_nothing_to_compare_does_not_hide_the_others(tmp_path):
    text = "episodes = 3\nseeds = 2\n[worlds.decoy]\n[worlds.bandit]\n[agents.omg]\n[agents.greedy]\n[agents.uniform]"
    run_study(text, tmp_path)
    for path in (tmp_path / "runs").glob("decoy--iid--*"):
        if "--omg--" not in path.name:
            path.unlink()
    result = called("compare", tmp_path)
    assert result.exit_code == 0
    assert "World decoy, adversary iid; nothing to compare yet" in result.output
    assert len(json.loads(called("compare", tmp_path, "--json").stdout)) == 3
    assert len(json.loads(called("compare", tmp_path, "--json", "--against", "greedy").stdout)) == 2
    for path in (tmp_path / "runs").glob("bandit--iid--*"):
        path.unlink()
    refused = called("compare", tmp_path)
    assert refused.exit_code == 2
    assert "no two agents have finished the same seed" in refused.output.replace("\n", " ")


@pytest.mark.slow
def test_a_report_is_written(done):
    pytest.importorskip("matplotlib")
    result = called("report", done)
    assert result.exit_code == 0
    assert Path(result.output.strip()).read_text().startswith("<!")


def test_results_are_exported(done, tmp_path):
    assert called("export", done, "--out", tmp_path).exit_code == 0
    assert len(pandas.read_csv(tmp_path / "log.csv")) == 8 * 60


@pytest.mark.slow
def test_a_new_study_runs_at_once_and_its_test_passes(tmp_path):
    assert called("new", tmp_path / "mine").exit_code == 0
    ran = called("run", tmp_path / "mine" / "study.toml", "--out", tmp_path / "out", "--episodes", 3, "--workers", 1)
    assert ran.exit_code == 0, ran.output
    assert set(load(tmp_path / "out").runs["world"]) == {"ward"}
    folder = {
        "cwd": tmp_path / "mine",
        "env": {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))},
    }
    tested = subprocess.run([sys.executable, "-m", "pytest", "-q"], capture_output=True, text=True, **folder)
    assert "3 passed" in tested.stdout, tested.stdout
    refused = called("new", tmp_path / "mine")
    assert refused.exit_code == 2
    assert "must be a new or empty folder" in refused.output


def test_the_comments_of_a_new_study_are_valid_too(tmp_path):
    called("new", tmp_path)
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(re.sub(r"^#(?=\S)", "", text, flags=re.MULTILINE))
    (tmp_path / "people.csv").write_text("grip\n0.4\n0.6\n0.9\n")
    plan = load_plan(str(tmp_path / "study.toml"))
    assert {part.name for part in (*plan.worlds, *plan.adversaries, *plan.agents)} >= {"lake", "hard", "careful"}


@pytest.mark.slow
def test_ctrl_c_stops_a_study_that_would_run_for_hours(tmp_path):
    (tmp_path / "long.toml").write_text(SMALL.replace("episodes = 60", "episodes = 1000000"))
    arguments = ("run", tmp_path / "long.toml", "--out", tmp_path / "out", "--workers", 2)
    # Whoever runs the tests in the background has them ignore the signal, and so would this.
    hearing = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    process = command(*arguments, start_new_session=True, **hearing)
    wait_for(lambda: any((tmp_path / "out").glob("log/*")), process)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.endswith("stopped; the same command continues from here\n")
    assert "Traceback" not in error


def test_one_scenario_that_cannot_be_compared_does_not_hide_the_others(tmp_path):
    """In one world a single agent has finished; in another the agents have no seed in common."""
    text = (
        "episodes = 3\nseeds = 2\n[worlds.arms]\n[worlds.decoy]\n[worlds.bandit]\n[agents.greedy]\n[agents.uniform]\n"
    )
    run_study(text, tmp_path)
    for run in ("decoy--iid--greedy--0", "decoy--iid--greedy--1", "bandit--iid--greedy--0", "bandit--iid--uniform--1"):
        (tmp_path / "runs" / f"{run}.json").unlink()
    result = called("compare", tmp_path)
    assert result.exit_code == 0, result.output
    assert "arms" in result.output
    for against in ("greedy", "uniform"):
        assert called("compare", tmp_path, "--against", against).exit_code == 0
    records = json.loads(called("compare", tmp_path, "--json").stdout)
    assert {record["world"] for record in records} == {"arms"}
