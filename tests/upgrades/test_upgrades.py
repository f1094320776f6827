"""Files of every format: the current one goes on bit for bit; an earlier one is refused in the sentence of the guide.

An earlier snapshot is only a cache: it is left aside, and the log is folded. A new format adds its files and its row.
"""

import contextlib
import json
import re
import shutil

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.studies.examples import run_study
from omg_cmdp.persistence import AGENT_FILE
from omg_cmdp.planning.problem import _VERSION as PROBLEM
from omg_cmdp.runs.simulate import _VERSION as RUN
from omg_lab.studies import store
from omg_trial import snapshots
from omg_trial import verify as verifier
from omg_trial.desk import Desk
from omg_trial.keys import ring
from omg_trial.log import events
from omg_trial.log.database import Database
from omg_trial.replay import replay
from omg_trial.tokens import Tokens
from omg_trial.trial_file.trial import Trial
from tests.upgrades.make import FILES, STUDY, TRIAL, database, lesson, new_agent, new_problem, new_run

CURRENT = {
    **{"agent": AGENT_FILE["version"], "run": RUN, "study": store.FORMAT, "log": events.FORMAT},
    **{"snapshot": snapshots.FORMAT, "keys": int(ring.FORMAT), "tokens": 1, "problem": PROBLEM},
}
KNOWN = {
    **{"agent": (2, 3, 4), "run": (5, 6, 7, 8), "study": (3, 4, 5), "log": (2, 3, 4, 5, 6)},
    "snapshot": (5, 6, 7, 8, 9),
    **{"keys": (1,), "tokens": (1,), "problem": (1, 2, 3)},
}


def earlier(kind):
    return [number for number in KNOWN[kind] if number < CURRENT[kind]]


def log(number, folder):
    """Make the database of a log of this format, with its keys if it has any."""
    database(json.loads((FILES / f"log-{number}.json").read_text()), folder / "trial.db")
    keys = FILES / f"keys-1-of-{number}.json"
    if keys.exists():
        database(json.loads(keys.read_text()), folder / "trial.keys")
    return folder / "trial.db"


def test_every_current_format_has_its_file():
    found = {path.stem for path in FILES.iterdir()}
    assert {f"{kind}-{number}" for kind, number in CURRENT.items()} - {"keys-1"} <= found
    assert {kind: numbers[-1] for kind, numbers in KNOWN.items()} == CURRENT
    assert f"keys-{ring.FORMAT}-of-{events.FORMAT}" in found


@pytest.mark.parametrize("read", [omg.load, lambda path: new_agent().restore(path)])
@pytest.mark.parametrize("number", earlier("agent"))
def test_an_earlier_agent_is_refused(read, number):
    path = FILES / f"agent-{number}.npz"
    with pytest.raises(ValueError, match=re.escape(f"must be a saved agent of format {CURRENT['agent']}, got {path}")):
        read(path)


def test_the_current_agent_goes_on():
    agent, fresh = omg.load(FILES / f"agent-{CURRENT['agent']}.npz"), new_agent()
    fresh.update(lesson())
    for each in (agent, fresh):
        each.update(lesson())
    assert {name: array.tobytes() for name, array in agent.state().items()} == {
        name: array.tobytes() for name, array in fresh.state().items()
    }


@pytest.mark.parametrize("number", earlier("run"))
def test_an_earlier_run_is_refused(number):
    with pytest.raises(ValueError, match=f"`path` must be a saved run of format {RUN}"):
        new_run().restore(FILES / f"run-{number}.npz")


def test_the_current_run_goes_on():
    again, whole = new_run(), new_run()
    again.restore(FILES / f"run-{RUN}.npz")
    again.advance(2)
    whole.advance(5)
    np.testing.assert_allclose(
        again.ledger.regret, whole.ledger.regret, atol=1e-9
    )  # written on another machine, perhaps
    assert again.ledger.contexts == whole.ledger.contexts


@pytest.mark.parametrize("number", earlier("problem"))
def test_an_earlier_planning_problem_is_refused(number):
    with pytest.raises(ValueError, match=f"`path` must be a planning problem of format {PROBLEM}"):
        omg.Problem.load(FILES / f"problem-{number}.npz")


def test_the_current_planning_problem_is_the_one_that_was_saved():
    found, saved = omg.Problem.load(FILES / f"problem-{PROBLEM}.npz"), new_problem()
    for name in vars(saved).keys() - {"mdp"}:
        np.testing.assert_equal(getattr(found, name), getattr(saved, name))
    for name in ("transitions", "rewards", "horizon", "start", "admissible"):
        np.testing.assert_equal(getattr(found.mdp, name), getattr(saved.mdp, name))


@pytest.mark.parametrize("number", earlier("study"))
def test_an_earlier_study_is_refused(number, tmp_path):
    shutil.copytree(FILES / f"study-{number}", tmp_path / "study")
    with pytest.raises(ValueError, match=f"must be a study of format {CURRENT['study']}, got "):
        run_study(STUDY, tmp_path / "study")
    assert [path.name for path in (tmp_path / "study").rglob("*.json")] == ["study.json"]


def test_the_current_study_has_its_results(tmp_path):
    kept = store.StudyStore(shutil.copytree(FILES / f"study-{CURRENT['study']}", tmp_path / "study"))
    [result] = kept.results()
    assert kept.study() is not None
    assert result["episodes"] == 4


@pytest.mark.parametrize("number", earlier("log"))
def test_an_earlier_log_is_refused_and_left_as_it_is(number, tmp_path):
    path, said = log(number, tmp_path), f"the log has format {number}, and this version reads format {CURRENT['log']}"
    with contextlib.closing(Database(path)) as kept:
        rows = list(kept.rows())
        with pytest.raises(ValueError, match=said):
            Desk(Trial.parse(TRIAL), kept)
        with pytest.raises(ValueError, match=f"{said}|is not the trial of this log"):
            replay(Trial.parse(TRIAL), kept.read())
        with pytest.raises(ValueError, match=f"the log has format {number}, and this verifier reads"):
            verifier.verify(kept.rows())
        assert list(kept.rows()) == rows


def test_the_current_log_is_replayed_and_served(tmp_path):
    trial = Trial.parse(TRIAL)
    with contextlib.closing(Database(log(CURRENT["log"], tmp_path))) as kept:
        found = replay(trial, kept.read())
        assert (found.differences, found.policies, found.versions) == ([], 2, 1)
        assert verifier.verify(kept.rows(), keys=verifier.read_keys(str(kept.keys.path))).problems == []
        at = Desk(trial, kept)
        opened = json.loads(at.call("open", {"person": "p1", "context": "alone"}).text)
        assert (opened["source"], opened["version"]) == ("plan", 1)


@pytest.mark.parametrize("number", earlier("snapshot"))
def test_an_earlier_snapshot_is_left_aside(number):
    with pytest.raises(ValueError, match=r"snapshot|SavedState"):
        snapshots.unpack_state(Trial.parse(TRIAL), (FILES / f"snapshot-{number}").read_bytes())


def test_the_current_snapshot_is_the_state(tmp_path):
    with contextlib.closing(Database(log(CURRENT["log"], tmp_path), writing=False)) as kept:
        folded = replay(Trial.parse(TRIAL), kept.read()).state
    state, _ = snapshots.unpack_state(Trial.parse(TRIAL), (FILES / f"snapshot-{CURRENT['snapshot']}").read_bytes())
    assert (state.number, state.hash) == (folded.number, folded.hash)
    assert {number: vars(record) for number, record in state.episodes.items()} == {
        number: vars(record) for number, record in folded.episodes.items()
    }


def test_tokens_of_the_current_format_are_known(tmp_path):
    [token] = Tokens(shutil.copy(FILES / "tokens-1", tmp_path)).all()
    assert (token.role, token.name, token.rate) == ("app", "the phones", 3.0)
