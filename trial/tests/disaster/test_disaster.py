"""A small share of every tool, and that each tool finds what it is made to find."""

import random

import pytest

from trial.tests.disaster import compound, cuts, nth, planted, servers, simulation
from trial.tests.disaster.kernel import Kernel
from trial.tests.disaster.platter import Platter


def bug(name):
    [found] = [each for each in planted.BUGS if each.name == name]
    return found


def test_a_simulated_trial_keeps_its_promises(seed):
    wrong, world = simulation.play(seed, days=20, faults=12)
    assert not wrong, "\n".join(wrong[:5])
    assert world.starts > 1


def test_the_same_seed_is_the_same_simulation():
    played = [simulation.play(7, days=8, faults=5)[1].attempts for _ in range(2)]
    assert played[0] == played[1]


@pytest.mark.parametrize("kind", ["trial", "outbox", "agent"])
def test_power_cuts_lose_nothing(kind, seed):
    assert cuts.power_cuts(kind, seed, 40, go_on=20) == []


@pytest.mark.parametrize(
    ("path", "kind"), [("open", "error"), ("erase", "full"), ("close", "memory"), ("tick", "error"), ("agent", "full")]
)
def test_the_nth_failure_is_recovered_from(path, kind):
    failures, wrong = nth.every_failure(path, kind, most=15)
    assert failures > 3
    assert wrong == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "publishing" else ()) for name in compound.FAULTS]
)
def test_two_faults_in_a_row(name):
    assert compound.FAULTS[name]() == []


@pytest.mark.slow
@pytest.mark.skipif(servers.PROGRAMS is None, reason="PostgreSQL is not installed: apt-get install postgresql")
@pytest.mark.parametrize("name", servers.SCENES)
def test_scenes_on_a_server(name):
    assert servers.SCENES[name]() in ([], "skipped: no pgbouncer is installed")


def test_a_crash_at_every_point_of_founding_a_trial_and_another_one_after_it():
    strikes, wrong = compound.struck_twice("found", stride=5)
    assert strikes > 10
    assert wrong == []


@pytest.mark.parametrize(
    "name",
    [
        "commits are not synced",
        "files are renamed before they are synced",
        "an older log is believed if recovering fails once",
        "a key is forgotten, and stays in its file",
        "a damaged log behind a snapshot is served",
    ],
)
def test_planted_bugs_are_found(name):
    place, _, wrong = planted.look_for(bug(name))
    assert place is not None, wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["answers leave before they are kept", "a model is published while the state is ahead"]
)
def test_planted_bugs_are_found_by_slower_tools(name):
    assert planted.look_for(bug(name))[0] is not None


def test_virtual_time_goes_by_in_order():
    kernel, seen = Kernel(), []

    def task(name, *pauses):
        for pause in pauses:
            kernel.sleep(pause)
            seen.append((name, kernel.now))

    kernel.spawn(task, "a", 1.0, 5.0)
    kernel.spawn(task, "b", 2.0, 2.0)
    kernel.run(5.0)
    assert seen == [("a", 1.0), ("b", 2.0), ("b", 4.0)]
    kernel.run(10.0)
    assert seen[-1] == ("a", 6.0)


def test_a_platter_keeps_what_was_synced_and_may_lose_the_rest():
    found = set()
    for seed in range(200):
        platter = Platter()
        for step in (("create", "f"), ("write", "f", 0, b"a" * 1024), ("sync", "f"), ("sync folder", "")):
            platter.do(*step)
        platter.do("write", "f", 0, b"b" * 1024)
        found.add(platter.after_power_cut(random.Random(seed))["f"])
    assert found == {b"a" * 1024, b"b" * 1024, b"b" * 512 + b"a" * 512, b"a" * 512 + b"b" * 512}
