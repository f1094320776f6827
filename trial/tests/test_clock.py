"""Clocks that jump: time goes on, nothing is closed, the team hears of it, and a correction is an event."""

import contextlib
import datetime
import json

import pytest
from typer.testing import CliRunner

from omg_trial.cli import app
from omg_trial.clock import SteadyClock
from omg_trial.desk import Desk
from omg_trial.log.database import Database
from omg_trial.replay import replay
from omg_trial.verify import verify
from omg_trial.watching.incidents import tick
from omg_trial.watching.process import Process
from trial.tests.trials import Clock, desk, person, trial

WINDOW = '[window]\nbegin = "08:00"\nend = "20:00"\noutside = "nothing"\n'
YEAR = datetime.timedelta(days=365)


class Machine:
    """A wall clock that somebody sets, and the seconds that the machine has been up."""

    def __init__(self):
        self.wall, self.seconds = datetime.datetime(2026, 11, 2, 9, tzinfo=datetime.UTC), 0.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.seconds)

    def wait(self, **amount):
        self.wall += datetime.timedelta(**amount)
        self.seconds += datetime.timedelta(**amount).total_seconds()


def asked(at, name="p1"):
    episode = json.loads(at.call("open", {"person": name, "context": person(1)}).text)["episode"]
    return episode, json.loads(at.call("decide", {"episode": episode, "step": 0, "state": "took it"}).text)


@pytest.mark.parametrize("jump", [YEAR, -YEAR, datetime.timedelta(minutes=5), datetime.timedelta(minutes=-5)])
def test_a_reading_that_jumps_is_not_believed(jump):
    machine = Machine()
    before = machine.clock()
    machine.wall += jump
    machine.wait(minutes=1)
    assert machine.clock() == before + datetime.timedelta(minutes=1)
    assert machine.clock.jump == jump.total_seconds()
    machine.wall -= jump
    assert (machine.clock(), machine.clock.jump) == (machine.wall, 0.0)


def test_a_clock_that_is_set_by_small_steps_is_believed():
    machine = Machine()
    for _ in range(100):
        machine.wait(hours=1)
        machine.wall += datetime.timedelta(seconds=10)
        assert machine.clock() == machine.wall
    assert machine.clock.jump == 0.0


@pytest.mark.parametrize("seconds", [50, -0.9])
def test_a_clock_that_creeps_at_another_pace_is_not_believed(seconds):
    """Each step is small, and after some hours weeks would have passed."""
    machine = Machine()
    before = machine.clock()
    for _ in range(3600):
        machine.wait(seconds=1)
        machine.wall += datetime.timedelta(seconds=seconds)
        assert abs((machine.clock() - before).total_seconds() - 3600) <= 3600 + 100
    assert abs((machine.clock() - before).total_seconds() - 3600) <= 100
    assert machine.clock.jump == pytest.approx(3600 * seconds, rel=0.1)


def test_nothing_is_closed_by_a_clock_that_jumps_and_the_team_hears_of_it():
    machine = Machine()
    at, process = desk(clock=machine.clock), Process(machine.clock)
    for number in range(5):
        asked(at, f"p{number}")
    machine.wall += YEAR
    tick(lambda task: task(at), process)
    assert len(at.state.open) == 5
    assert [(each.check, each.severity) for each in at.state.incidents] == [("clock", "red")]
    asked(at, "late")
    assert at.state.time < "2026-11-03"
    machine.wall -= YEAR
    tick(lambda task: task(at), process)
    machine.wait(hours=1)  # that all is well is noted after a while
    tick(lambda task: task(at), process)
    assert [(each.check, each.severity) for each in at.state.incidents][1:] == [("clock", "green")]
    assert at.state.time < "2026-11-03"


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_windows_go_on_while_the_clock_is_wrong(jump):
    machine = Machine()
    at = desk(WINDOW, clock=machine.clock)
    assert asked(at, "p1")[1]["fallback"] is None
    machine.wall += jump
    machine.wait(hours=12)  # 22:00 in Berlin
    assert asked(at, "p2")[1]["fallback"]["rules"] == ["window"]
    machine.wait(hours=12)
    assert asked(at, "p3")[1]["fallback"] is None


def test_a_start_behind_the_log_is_refused_and_a_correction_is_an_event():
    """The clock was a year ahead when something was logged: with the right time, windows and weeks go on."""
    clock = Clock()
    clock.forward(days=365)
    at = desk(WINDOW, clock=clock)
    asked(at)
    right = Clock()
    with pytest.raises(ValueError, match="the clock is 365 days behind the last event"):
        Desk(at.trial, at.store, clock=right)
    again = Desk(at.trial, at.store, clock=right, correct_clock=True)
    assert again.state.time.startswith("2026-11-02")
    [event] = [event for event in at.store.read() if event.kind == "clock corrected"]
    assert event.body["before"].startswith("2027-11-02")
    right.forward(hours=12)
    assert asked(again, "p2")[1]["fallback"]["rules"] == ["window"]
    found = replay(again.trial, again.store.read())
    assert found.differences == []
    rows = [tuple(vars(event)[name] for name in FIELDS) for event in again.store.read()]
    assert verify(rows).problems == []
    Desk(at.trial, at.store, clock=right)


FIELDS = ("number", "time", "kind", "text", "key", "request", "answer", "hash")


def test_a_start_so_far_ahead_that_it_would_close_everything_is_refused():
    clock = Clock()
    at = desk(clock=clock)
    episode, _ = asked(at)
    clock.forward(days=300)
    with pytest.raises(ValueError, match="the clock is 300 days after the last event"):
        Desk(at.trial, at.store, clock=clock)
    again = Desk(at.trial, at.store, clock=clock, correct_clock=True)
    tick(lambda task: task(again), Process(clock))
    assert episode in again.state.open


def test_a_start_that_is_days_ahead_closes_nothing_by_that():
    """The service has rested, or the clock is ahead: nobody was silent in that time."""
    clock = Clock()
    at = desk(clock=clock)
    first, _ = asked(at, "p1")
    clock.forward(days=1)
    second, _ = asked(at, "p2")
    clock.forward(days=13, hours=12)
    again = Desk(at.trial, at.store, clock=clock)
    tick(lambda task: task(again), Process(clock))
    assert list(again.state.open) == [first, second]
    clock.forward(days=13, hours=1)
    tick(lambda task: task(again), Process(clock))
    assert list(again.state.open) == [second]
    assert replay(again.trial, again.store.read()).differences == []


def test_a_start_after_a_quiet_fortnight_is_a_start_and_after_a_month_the_team_hears_of_it():
    clock = Clock()
    at = desk("[watch]\nclose_after_hours = 24\n", clock=clock)
    at.call("close", {"episode": asked(at)[0]})
    clock.forward(days=14)
    quiet = Desk(at.trial, at.store, clock=clock).state.number
    assert quiet == at.state.number + 1
    clock.forward(days=30)
    [incident] = Desk(at.trial, at.store, clock=clock).state.incidents
    assert (incident.check, incident.severity) == ("clock", "red")
    assert "the clock is 30 days after the last event" in incident.message
    clock.forward(days=30)
    sure = Desk(at.trial, at.store, clock=clock, correct_clock=True)
    assert [event.kind for event in sure.store.read()][-2:] == ["clock corrected", "started"]
    assert sure.state.incidents == [incident]


def test_serve_says_what_to_do_with_a_clock_that_is_behind(tmp_path):
    file = tmp_path / "trial.toml"
    file.write_text(trial().text)
    clock = Clock()
    clock.now += 100 * YEAR
    with contextlib.closing(Database(tmp_path / "trial.db")) as store:
        Desk(trial(), store, clock=clock)
    done = CliRunner().invoke(app, ["serve", str(file), "--port", "0"])
    assert done.exit_code == 2
    assert "--correct-clock" in done.output


def test_the_log_says_by_how_much_the_clock_of_a_device_is_ahead():
    clock = Clock()
    at = desk(clock=clock)
    episode, _ = asked(at)
    for step, seconds in enumerate((90.0, -90.0), 1):
        told = (clock.now + datetime.timedelta(seconds=seconds)).isoformat()
        at.call("decide", {"episode": episode, "step": step, "state": "took it", "device_time": told})
    assert [choice.drift for choice in at.state.episodes[episode].choices.values()] == [None, 90.0, -90.0]
