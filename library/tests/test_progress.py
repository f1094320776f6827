"""Bars of progress: when they are shown, what they say, and that nothing stops for want of a terminal."""

import io
import threading
import types

import pytest

from omg_cmdp import progress
from omg_cmdp.progress import Bar


class Terminal(io.StringIO):
    def isatty(self):
        return not super().isatty()  # raises if it is closed

    def screen(self):
        """Return the lines as they stand at the end, each without what was written over."""
        shown = []
        for line in self.getvalue().split("\n"):
            row = ""
            for part in line.split("\r"):
                row = part + row[len(part) :]
            shown.append(row.rstrip())
        return shown


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until a test moves it."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def stderr(monkeypatch):
    """A function that takes the place of stderr; pytest puts its own there when a test begins."""

    def replace(stream):
        monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=stream))
        return stream

    return replace


@pytest.fixture
def terminal(stderr):
    return stderr(Terminal())


def test_short_work_shows_nothing_and_long_work_says_how_long_it_will_take(clock, terminal):
    with Bar("simulate", 100) as bar:
        bar.update()
        clock[0] += 1.9
        bar.update()
        assert terminal.getvalue() == ""
        clock[0] += 0.2
        bar.update()
        # Two episodes in 2.1 s since the first: 97 more take 102 s.
        assert terminal.screen() == ["simulate [------------------------] 3 of 100 episodes, 1:42 left"]
        bar.update(100)
    assert terminal.screen() == ["simulate [########################] 100 of 100 episodes", ""]


def test_the_first_part_which_may_compile_does_not_count(clock, terminal):
    with Bar("play", 11) as bar:
        clock[0] += 60.0
        bar.update()
        assert "left" not in terminal.getvalue()
        clock[0] += 1.0
        bar.update()
    assert "2 of 11 episodes, 0:09 left" in terminal.getvalue()


def test_a_bar_inside_another_has_the_line_until_it_is_over(clock, terminal):
    with Bar("compare", 4, unit="runs", show=True) as outer:
        outer.update()
        with Bar("compile", 2, unit="parts", show=True) as inner:
            clock[0] += 1.0
            outer.update()
            inner.update(note="the planner and much else")
            assert terminal.screen() == ["compile [############------------] 1 of 2 parts, the planner and much else"]
        clock[0] += 1.0
        outer.update()
        assert terminal.screen() == ["compare [##################------] 3 of 4 runs, 0:01 left"]
    assert not Bar._open


@pytest.mark.parametrize(("show", "shown"), [(None, False), (False, False), (True, True)])
def test_without_a_terminal_a_bar_must_be_asked_for(show, shown, clock, stderr):
    stream = stderr(io.StringIO())
    with Bar("check", show=show, unit="rules") as bar:
        clock[0] += 10.0
        bar.update()
    assert stream.getvalue() == ("\rcheck: 1 rules\rcheck: 1 rules\n" if shown else "")


def test_a_notebook_is_one_by_its_stream_and_other_threads_are_silent(terminal, stderr):
    assert progress._watched()
    found = []
    thread = threading.Thread(target=lambda: found.append(progress._watched()))
    thread.start()
    thread.join()
    assert found == [False]
    stderr(type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})())
    assert progress._watched()


@pytest.mark.parametrize("stream", [None, Terminal()])
def test_work_goes_on_where_nothing_can_be_shown(stream, stderr):
    stderr(stream)
    with Bar("simulate", 5, show=True) as bar:
        if stream is not None:
            stream.close()
        bar.update()
    assert bar.done == 1
    assert not Bar._open
    assert not progress._watched()
