"""A run that was stopped, saved and continued elsewhere is the run that was never stopped, to the bit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.runs.worlds import AGENTS, Own, counts, make_run
from omg_cmdp import adversaries
from omg_cmdp.persistence import read_arrays, write_arrays

ROOT = Path(omg.__file__).parents[1]
HALF = 12


def content(path):
    """Return all that a file of a run holds, to the bit, but the seconds that things took (the last four columns)."""
    arrays = read_arrays(path, kind="saved run", version=8)
    arrays["ledger/rows"] = arrays["ledger/rows"][:, :-4]
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Return a folder with half a run of every kind, and its other half played in one other process."""
    folder = tmp_path_factory.mktemp("halves")
    for kind in AGENTS:
        run = make_run(kind, walk=True)
        run.advance(HALF)
        run.save(folder / kind)
        run.advance(HALF)  # the run that was saved goes on unharmed
        run.save(folder / f"{kind}, unharmed")
    subprocess.run([sys.executable, "-m", "tests.runs.worlds", folder, str(HALF)], cwd=ROOT, check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", AGENTS)
def test_halves_in_two_processes_are_the_whole(kind, halves, tmp_path):
    whole = make_run(kind, walk=True)
    whole.advance(2 * HALF)
    whole.save(tmp_path / "whole")
    assert content(halves / f"{kind}, continued") == content(tmp_path / "whole")
    assert content(halves / f"{kind}, unharmed") == content(tmp_path / "whole")


def test_what_was_restored_is_all_there(tmp_path):
    run, other = make_run("adaptive, linear"), make_run("adaptive, linear", seed=99)
    run.advance(5)
    run.save(tmp_path / "run")
    other.advance(2)
    other.restore(tmp_path / "run")
    np.testing.assert_array_equal(other.ledger.table(), run.ledger.table())
    for mine, theirs in zip(other.ledger.contexts, run.ledger.contexts, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes()


def test_contexts_of_all_kinds_are_restored(tmp_path):
    run, other = make_run("fixed, counts"), make_run("fixed, counts")
    run.advance(20)
    run.save(tmp_path / "run")
    other.restore(tmp_path / "run")
    assert other.ledger.contexts == run.ledger.contexts
    assert {type(context) for context in other.ledger.contexts} == {str, int, tuple}


def test_a_run_may_be_saved_before_it_begins(tmp_path):
    run, other = make_run("fixed, counts"), make_run("fixed, counts", seed=7)
    run.save(tmp_path / "run")
    other.advance(3)
    other.restore(tmp_path / "run")
    assert len(other.ledger) == 0
    for each in (run, other):
        each.advance(5)
    assert other.ledger.contexts == run.ledger.contexts
    np.testing.assert_array_equal(other.ledger.regret, run.ledger.regret)


@pytest.fixture
def saved(tmp_path):
    run = make_run("fixed, counts")
    run.advance(4)
    run.save(tmp_path / "run")
    return tmp_path / "run"


def state_of(run, path):
    run.save(path)
    return content(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_torn_file_is_refused(saved, share, tmp_path):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(share * len(whole))])
    run = make_run("fixed, counts")
    run.advance(2)
    before = state_of(run, tmp_path / "before")
    with pytest.raises(ValueError, match="`path` must be a saved run of format 8"):
        run.restore(saved)
    assert state_of(run, tmp_path / "after") == before


def test_an_agents_file_is_not_a_runs(saved, tmp_path):
    run = make_run("fixed, counts")
    run.agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match="`path` must be a saved run of format 8"):
        run.restore(tmp_path / "agent")
    with pytest.raises(ValueError, match="`path` must be a saved agent of format 4"):
        run.agent.restore(saved)


def test_a_file_of_another_agent_is_refused(saved, tmp_path):
    run = make_run("adaptive, finite")
    before = state_of(run, tmp_path / "before")
    with pytest.raises(ValueError, match="`state` must come from"):
        run.restore(saved)
    assert state_of(run, tmp_path / "after") == before


def test_a_file_of_another_adversary_is_refused_and_nothing_changes(saved, tmp_path):
    run = make_run("fixed, counts", walk=True)
    run.advance(2)
    before = state_of(run, tmp_path / "before")
    with pytest.raises(ValueError, match="must come from a run with the same settings"):
        run.restore(saved)
    assert state_of(run, tmp_path / "after") == before


@pytest.mark.parametrize("part", ["noise", "choice", "ledger/rows", "ledger/contexts", "agent/episodes_seen"])
def test_a_file_with_a_part_missing_is_refused(saved, part, tmp_path):
    arrays = read_arrays(saved, kind="saved run", version=8)
    del arrays[part]
    write_arrays(saved, arrays, kind="saved run", version=8)
    run = make_run("fixed, counts")
    before = state_of(run, tmp_path / "before")
    with pytest.raises(ValueError, match="`"):
        run.restore(saved)
    assert state_of(run, tmp_path / "after") == before


def test_contexts_that_cannot_be_written_leave_the_old_file(saved):
    contexts = [frozenset({1})]

    class Odd(Own):
        def mdp(self, context):
            return super().mdp("a")

    world = Odd()
    sizes = counts(world)[1]
    agent = omg.agents.Greedy(world.space, omg.oracles.CountRewards(states=3, actions=2, horizon=3), sizes)
    run = omg.Run(world, adversaries.Sequence(contexts), agent)
    run.advance(1)
    before = saved.read_bytes()
    with pytest.raises(ValueError, match="`context` must be a vector, a number, a text, or a tuple"):
        run.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["run"]


def test_a_drained_ledger_goes_on_counting(tmp_path):
    """What was drained, what came after, and a restart in between: together the rows of an undisturbed run."""
    whole, drained = make_run("fixed, counts"), make_run("fixed, counts")
    whole.advance(7)
    drained.advance(3)
    first = drained.ledger.drain()
    assert (len(first), len(drained.ledger), drained.ledger.episodes) == (3, 0, 3)
    drained.save(tmp_path / "run")
    resumed = make_run("fixed, counts")
    resumed.restore(tmp_path / "run")
    resumed.advance(4)
    assert list(resumed.ledger.table().index) == [4, 5, 6, 7]
    np.testing.assert_array_equal(np.concatenate([first.regret, resumed.ledger.regret]), whole.ledger.regret)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{}", "1", '{"bit_generator": "PCG64", "state": {"state": -1, "inc": 1}}']
)
def test_a_random_stream_that_was_changed_is_refused(tmp_path, text):
    run, path = make_run("adaptive, linear"), tmp_path / "run"
    run.save(path)
    arrays = read_arrays(path, kind="saved run", version=8)
    write_arrays(path, arrays | {"noise": np.array(text)}, kind="saved run", version=8)
    with pytest.raises(ValueError, match="the state of a random stream must be as it was saved"):
        run.restore(path)
