"""A run that is stopped anywhere and continued is the run that was never stopped, to the bit."""

import dataclasses
import itertools
import random
import time
import tracemalloc

import numpy as np
import pytest

from lab.tests.studies.examples import content, small_plan
from omg_cmdp.runs.ledger import COLUMNS
from omg_lab.studies import runner
from omg_lab.studies.config import read_plan
from omg_lab.studies.journal import LOGGED_TOTALS
from omg_lab.studies.results import load
from omg_lab.studies.runner import Failed, Finished, Progress, estimate, play
from omg_lab.studies.store import StudyStore


def played(plan, directory):
    store = StudyStore(directory)
    store.create()
    store.write_study({"configuration": plan.configuration()})
    events = []
    for task in plan.tasks():
        play(task, store, events.append)
    return events


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    played(small_plan(), directory)
    return directory


class Stopped(BaseException):
    """Stands for the end of the process."""


def test_the_log_is_that_of_the_simulation(whole):
    results = load(whole)
    for task in small_plan().tasks():
        run = task.start()
        run.advance(task.episodes)
        table = run.ledger.table()
        labels = ["world", "adversary", "agent", "seed"]
        log = results.log
        for name in labels:
            log = log[log[name] == task.labels[name]]
        assert log["episode"].tolist() == list(range(1, 61))
        for name in COLUMNS[:-4]:
            np.testing.assert_array_equal(log[name], table[name])
        for name in LOGGED_TOTALS:
            np.testing.assert_array_equal(log[f"cumulative_{name}"], np.cumsum(table[name]))
        result = results.runs.set_index("run").loc[task.name]
        assert result["regret"] == np.cumsum(table["regret"]).iloc[-1]
        assert result["regret_last_half"] == pytest.approx(table["regret"].iloc[30:].sum())
        assert result["seconds"] > 0.0


def test_a_result_holds_what_a_report_needs_of_world_and_agent(whole):
    results = load(whole).runs.set_index("run")
    for task in small_plan().tasks():
        world, agent, result = task.setting().world, task.start().agent, results.loc[task.name]
        sizes = (world.space.states, world.space.actions, world.space.horizon)
        assert tuple(result[["states", "actions", "horizon"]]) == sizes
        bounds = result[list(runner.BOUNDS)].astype(float)
        if agent.reward_oracle is None:
            assert bounds.isna().all()
            continue
        agent.model(world.contexts[0])
        oracles = (agent.reward_oracle, agent.dynamics_oracle)
        assert bounds.to_list() == [oracle.regret_bound(task.episodes, sizes[-1]) for oracle in oracles]


def test_a_result_keeps_what_the_agent_would_do_at_its_end(whole):
    for task in small_plan().tasks():
        if task.agent.name == "pc_igw":  # of its mixture, the draw is not kept
            continue
        kept, run = StudyStore(whole).result(task.name)["policies"], task.start()
        run.advance(task.episodes)
        contexts = run.environment.contexts
        assert len(kept) == len(contexts) == 4  # all, as they are few
        for record, context in zip(kept, contexts, strict=True):
            played = run.agent.policy(context)[np.ix_(record["steps"], record["states"])]
            np.testing.assert_allclose(record["policy"], played, atol=5e-7)


def test_propensities_are_those_of_the_actions_taken(whole):
    log = load(whole).log
    for row in log[log["agent"] == "omg"].head(20).itertuples():
        assert len(row.states) == len(row.actions) + 1 == len(row.rewards) + 1 == len(row.propensities) + 1
        assert ((np.array(row.propensities) > 0.0) & (np.array(row.propensities) <= 1.0)).all()
    np.testing.assert_allclose([np.sum(rewards) for rewards in log["rewards"]], log["return"])


@pytest.mark.parametrize("where", ["write_part", "write_checkpoint", "write_result"])
@pytest.mark.parametrize("before", [True, False])
def test_a_stop_at_any_write_changes_nothing(where, before, whole, tmp_path, monkeypatch):
    """Stop before or after the k-th write of a kind, for all k, and start again each time."""
    store, tasks = StudyStore(tmp_path), small_plan().tasks()
    store.create()
    original = getattr(StudyStore, where)
    writes = itertools.count()

    def stopping(self, *arguments):
        number = next(writes)
        if before and number % 2 == 0:
            raise Stopped
        written = original(self, *arguments)
        if not before and number % 2 == 0:
            raise Stopped
        return written

    monkeypatch.setattr(StudyStore, where, stopping)
    stops = 0
    for task in tasks:
        while not store.is_finished(task.name):
            try:
                play(task, store, lambda event: None)
            except Stopped:
                stops += 1
    assert stops > 3
    assert content(tmp_path) == content(whole)


def test_a_stop_between_any_episodes_changes_nothing(whole, tmp_path, rng):
    store, draw = StudyStore(tmp_path), random.Random(0)
    store.create()
    stops = 0
    for task in small_plan().tasks():
        while not store.is_finished(task.name):

            def report(event):
                if draw.random() < 0.15:
                    raise Stopped

            try:
                play(task, store, report)
            except Stopped:
                stops += 1
    assert stops > 5
    assert content(tmp_path) == content(whole)


@pytest.mark.slow
def test_where_a_log_is_cut_does_not_matter(whole, tmp_path):
    played(small_plan(checkpoint=7), tmp_path)
    assert content(tmp_path) == content(whole)


def test_a_finished_run_is_not_played_again(whole):
    events = played(small_plan(), whole)
    assert {type(event) for event in events} == {Finished}


def test_a_run_that_raises_is_recorded_and_tried_again(tmp_path, monkeypatch):
    plan = small_plan(seeds=(0,))
    with monkeypatch.context() as patched:
        patched.setattr("omg_lab.rivals.ucbvi.UCBVI.decide", lambda *_: 1 / 0)
        events = played(plan, tmp_path)
    failed = [event for event in events if isinstance(event, Failed)]
    assert [event.error for event in failed] == ["ZeroDivisionError: division by zero"]
    results = load(tmp_path)
    assert len(results.runs) == 3
    assert results.failed["agent"].tolist() == ["ucbvi"]
    assert "Traceback" in results.failed["error"].iloc[0]
    played(plan, tmp_path)
    assert len(load(tmp_path).runs) == 4


def test_progress_is_reported_up_to_the_end(tmp_path):
    task = small_plan().tasks()[0]
    store, events = StudyStore(tmp_path), []
    store.create()
    play(task, store, events.append)
    progress = [event for event in events if isinstance(event, Progress)]
    assert progress[0].episode == 0
    assert progress[-1].episode == 60
    assert [event.episode for event in progress] == sorted(event.episode for event in progress)
    assert events[-1].result["regret"] == progress[-1].regret


LONG = """
episodes = 50000
propensities = true
[worlds.linear]
context_count = 200
[agents.uniform]
"""


@pytest.mark.slow
def test_memory_stays_flat_and_logs_small(tmp_path):
    """Of 28 000 rows in 1 000 000 episodes, 14 000 are in the first 50 000."""
    plan = read_plan(LONG)
    store = StudyStore(tmp_path)
    store.create()
    memory = []
    tracemalloc.start()

    def report(event):
        if isinstance(event, Progress) and event.episode % plan.checkpoint == 0:
            memory.append(tracemalloc.get_traced_memory()[0])

    play(plan.tasks()[0], store, report)
    tracemalloc.stop()
    assert memory[-1] < memory[len(memory) // 4] + 1_000_000
    size = sum(path.stat().st_size for path in store.log.iterdir())
    assert 2 * size < 100e6


@pytest.mark.slow
def test_an_estimate_is_of_the_right_size(tmp_path):
    plan = dataclasses.replace(small_plan(), episodes=200)
    guess = estimate(plan, budget=1.0)
    began = time.perf_counter()
    played(plan, tmp_path)
    assert 0.1 < guess / (time.perf_counter() - began) < 10.0


def test_reports_come_after_no_more_than_twice_the_episodes_that_were_played():
    """However short the way to the next checkpoint is, and however quick: the pace would grow without end."""
    for steps, seconds in itertools.product((1, 20, 10**6), (0.0, 1e-9, 0.1, 0.2, 60.0)):
        assert 1 <= runner._next_pace(steps, seconds) <= 2 * steps
    assert runner._next_pace(100, 0.2) == 100
