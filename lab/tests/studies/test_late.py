"""Delays in study files: of a study or of a world, stored, and continued with episodes under way."""

import json

import numpy as np
import pytest

from lab.tests.studies.examples import content, run_study
from omg_cmdp import delays
from omg_cmdp.documents import FileError
from omg_lab.reports import page
from omg_lab.studies import runner
from omg_lab.studies.config import read_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.results import audits, load
from omg_lab.studies.runner import play
from omg_lab.studies.store import StudyStore, digest_of

LATE = """
episodes = 40
seeds = 1
checkpoint = 20
delay = { kind = "heavy_tailed", exponent = 1.5, scale = 4.0 }
[worlds.decoy]
context_count = 2
reward_class_size = 4
[worlds.soon]
kind = "decoy"
context_count = 2
reward_class_size = 4
delay = 3
[agents.greedy]
[agents.uniform]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("late")
    run_study(LATE, directory)
    return directory


def test_a_world_may_have_a_delay_of_its_own(made):
    results = load(made)
    late = {world: log["delay"].to_numpy() for world, log in results.log.groupby("world")}
    assert (late["soon"] == 3.0).all()
    assert len(np.unique(late["decoy"])) > 2
    assert json.loads((made / "study.json").read_text())["configuration"]["delay"]["kind"] == "heavy_tailed"


def test_a_result_has_the_bounds_for_its_delay():
    """At once, late with oracles that promise nothing of that, and with oracles that do; and in a random order."""
    slow = 'oracles = { rewards = { kind = "finite", rate = "proven", delay = 3 }, dynamics = "known" }'
    base = "episodes = 40\n{}\n[worlds.decoy]\nreward_class_size = 4\n{}\n[agents.greedy]"
    found = []
    for delay, pair in (
        ("", ""),
        ("delay = 3", ""),
        ("delay = 3", slow),
        ('delay = {kind = "up_to", most = 3}', slow),
    ):
        [task] = read_plan(base.format(delay, pair)).tasks()
        run = task.start()
        run.advance(1)
        found.append(runner._regret_bounds(run, 40)["reward_regret_bound"])
    at_once, late, promised, random = found
    assert at_once < promised < np.inf
    assert late == random == np.inf


def test_all_agents_wait_for_the_same_time(made):
    log = load(made).log
    for world in ("decoy", "soon"):
        greedy, uniform = (log[(log["world"] == world) & (log["agent"] == a)]["delay"] for a in ("greedy", "uniform"))
        assert greedy.to_list() == uniform.to_list()


def test_a_run_that_is_stopped_continues_with_episodes_under_way(made, tmp_path):
    def stop(event):
        if getattr(event, "episode", 0) >= 20:
            raise KeyboardInterrupt

    plan = read_plan(LATE)
    store = open_study(plan, tmp_path)
    task = plan.tasks()[0]
    with pytest.raises(KeyboardInterrupt):
        play(task, store, stop)
    assert StudyStore(tmp_path).saved_at(task.name)
    for each in plan.tasks():
        play(each, store, lambda event: None)
    assert content(tmp_path) == content(made)


def test_runs_with_delays_can_be_audited(made):
    found = list(audits(load(made), episodes=20, choose=lambda name: True))
    assert len(found) == 4
    assert all(each.sound for each in found)


@pytest.mark.slow
def test_the_report_says_that_feedback_is_late(made):
    results = load(made)
    late = "feedback late (kind = heavy_tailed, exponent = 1.5, scale = 4.0)"
    assert f"40 episodes each, {late}" in page._subtitle(results.configuration)
    assert "delay = 3" in page.write_report(results, made).read_text(encoding="utf-8")


def test_without_a_delay_settings_are_what_they_were():
    """So that runs that were finished before there were delays stay finished."""
    text = LATE.replace('delay = { kind = "heavy_tailed", exponent = 1.5, scale = 4.0 }\n', "")
    none, zero, three = (read_plan(each).tasks()[0] for each in (text, f"delay = 0\n{text}", f"delay = 3\n{text}"))
    parts = [part.resolved() for part in (none.world, none.adversary, none.agent)]
    assert none.settings == digest_of([none.labels, parts, none.plan.seed, none.episodes, none.plan.propensities])
    assert none.settings == zero.settings != three.settings
    assert three.start().pending.delay == delays.Fixed(3)


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        ("-1", "`delay` must be an integer of at least 0, got -1"),
        ('"long"', "`delay` must be an integer of at least 0, got 'long'"),
        ("{ mean = 3 }", "`delay` must have a kind, fixed, geometric, heavy_tailed, reversed, up_to, got None"),
        ('{ kind = "geometric", men = 3 }', "'geometric' has no option 'men'"),
        ('{ kind = "geometric" }', "'geometric' needs the option 'mean'"),
        ('{ kind = "geometric", mean = -1 }', "`mean` must be a positive, finite number, got -1"),
    ],
)
@pytest.mark.parametrize(
    "line", ["delay = {}\n" + LATE.replace("delay = {", "#"), LATE.replace("delay = 3", "delay = {}")]
)
def test_a_bad_delay_is_refused_with_its_line(delay, message, line):
    text = line.replace("delay = {}", f"delay = {delay}")
    with pytest.raises(FileError) as caught:
        read_plan(text, name="study", file="study.toml")
    assert message in str(caught.value)
    number = text.splitlines().index(f"delay = {delay}") + 1
    assert str(caught.value).startswith(f"study.toml, line {number}:")


def test_a_directory_with_another_delay_is_refused(made):
    with pytest.raises(FileError, match="holds a study with delay"):
        open_study(read_plan(LATE.replace("scale = 4.0", "scale = 5.0")), made)
