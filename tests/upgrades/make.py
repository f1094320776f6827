"""`python -m tests.upgrades`: write one file of each current format beside those of earlier versions.

A format's number is in its file's name. Files of earlier formats were written by the code of that time, by functions
like these; they are never written again.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np

import omg_cmdp as omg
from lab.tests.studies.examples import run_study
from omg_cmdp.persistence import AGENT_FILE
from omg_cmdp.planning.problem import _VERSION as PROBLEM
from omg_cmdp.runs import Run
from omg_cmdp.runs.simulate import _VERSION as RUN
from omg_lab.studies import store
from omg_trial import snapshots
from omg_trial.desk import Desk
from omg_trial.keys import ring
from omg_trial.log import events
from omg_trial.log.database import Database
from omg_trial.tokens import Tokens
from omg_trial.trial_file.trial import Trial

FILES = Path(__file__).parent / "files"
SIZES = {"states": 2, "actions": 2, "horizon": 2}
TRIAL = """[trial]
name = "upgrade"
horizon = 2
time_zone = "Europe/Berlin"

[states]
names = ["took it", "missed it"]

[actions]
names = ["nothing", "reminder"]
fallback = { nothing = 0.5, reminder = 0.5 }

[context]
labels = ["alone", "with others"]

[rewards]

[dynamics]

[exploration]
floor = 0.1
"""
STUDY = """
episodes = 4
seeds = 1
[worlds.decoy]
context_count = 2
reward_class_size = 2
[agents.uniform]
"""


class Coins(omg.ContextualMDP):
    """Two coins."""

    space = omg.Space(states=1, actions=2, horizon=1)

    def mdp(self, context):
        return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=[[context, 1.0 - context]])


def new_run():
    """Return a run that has not begun."""
    oracle = {"states": 1, "actions": 2, "horizon": 1, "contexts": (0.2, 0.9)}
    agent = omg.OMG(Coins.space, omg.oracles.CountRewards(**oracle), omg.oracles.CountDynamics(**oracle))
    return Run(Coins(), omg.adversaries.IID([0.2, 0.9]), agent)


def new_agent():
    """Return an agent that has learned nothing."""
    return omg.OMG(omg.Space(**SIZES), omg.oracles.CountRewards(**SIZES), omg.oracles.CountDynamics(**SIZES))


def new_problem():
    """Return a planning problem with a budget."""
    table = np.ones((2, 2, 2)) / 2.0
    mdp = omg.TabularMDP(transitions=table, rewards=table[..., 0], horizon=2)
    return omg.Problem(mdp=mdp, gamma=10.0, costs=table[None, ..., 0], budgets=[1.5])


def lesson():
    """Return what the agent has learned."""
    return omg.Trajectory(context="alone", states=[0, 1, 1], actions=[1, 0], rewards=[1.0, 0.0])


def clock():
    """Return a clock that shows a minute more with each look."""
    now = datetime.datetime(2026, 11, 2, 9, tzinfo=datetime.UTC)

    def tell():
        nonlocal now
        now += datetime.timedelta(minutes=1)
        return now

    return tell


def play(at):
    """Play two people, and learn from them."""
    for person, context in (("p1", "alone"), ("p2", "with others")):
        episode = json.loads(at.call("open", {"person": person, "context": context}).text)["episode"]
        at.call("decide", {"episode": episode, "step": 0, "state": "took it"})
        at.call("report", {"episode": episode, "step": 0, "reward": 1.0, "next_state": "missed it"})
        at.call("close", {"episode": episode, "cause": "finished"})
    at.call("learn", {})
    at.learn_here()


def dumped(file):
    """Return the tables of a SQLite file as JSON has them: bytes as hex, under the key "bytes"."""
    with contextlib.closing(sqlite3.connect(file)) as opened:
        tables = dict(opened.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        return {
            sql: [
                [{"bytes": cell.hex()} if isinstance(cell, bytes) else cell for cell in row]
                for row in opened.execute(f"SELECT * FROM {name} WHERE {name != 'snapshots'}")
            ]
            for name, sql in tables.items()
        }


def database(tables, file):
    """Undo `dumped`."""
    with contextlib.closing(sqlite3.connect(file)) as opened, opened:
        for sql, rows in tables.items():
            opened.execute(sql)
            name = sql.split()[2]
            cells = [[bytes.fromhex(c["bytes"]) if isinstance(c, dict) else c for c in row] for row in rows]
            if rows:
                opened.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", cells)


def make(folder):
    """Write one file of each current format."""
    agent, run = new_agent(), new_run()
    agent.update(lesson())
    agent.save(folder / f"agent-{AGENT_FILE['version']}.npz")
    run.advance(3)
    run.save(folder / f"run-{RUN}.npz")
    new_problem().save(folder / f"problem-{PROBLEM}.npz")
    (folder / "tokens-1").unlink(missing_ok=True)
    Tokens(folder / "tokens-1").add("app", "the phones", rate=3.0)
    with tempfile.TemporaryDirectory() as name:
        at = Desk(Trial.parse(TRIAL), Database(Path(name, "trial.db")), clock=clock())
        play(at)
        (folder / f"snapshot-{snapshots.FORMAT}").write_bytes(snapshots.pack_state(at.state, at.agent))
        at.store.close()
        for kind, file in (
            (f"log-{events.FORMAT}", "trial.db"),
            (f"keys-{ring.FORMAT}-of-{events.FORMAT}", "trial.keys"),
        ):
            (folder / f"{kind}.json").write_text(json.dumps(dumped(Path(name, file)), indent=0) + "\n")
        run_study(STUDY, Path(name, "study"))
        target = folder / f"study-{store.FORMAT}"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(Path(name, "study"), target, ignore=shutil.ignore_patterns("state", "*.lock"))
