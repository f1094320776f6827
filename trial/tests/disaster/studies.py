"""Power cuts of the files of the library and the lab: a study under way, and an agent that is saved again and again.

Calls to the operating system are recorded as they are made; see `platter` for what a power cut may leave of them.
"""

import contextlib
import functools
import os
from pathlib import Path
from unittest import mock

import numpy as np

import omg_cmdp as omg
from trial.tests.disaster.platter import Cut, scratch

STUDY = """
description = "small"
episodes = 40
seeds = 1
checkpoint = 10

[worlds.decoy]
context_count = 4
reward_class_size = 4

[agents.omg]
[agents.uniform]
"""


@contextlib.contextmanager
def recorded_calls(folder):
    """Record what is done to files in a folder: content when it is synced or renamed, names when they change."""
    cut, known = Cut(folder), {}
    sync, replace, unlink, mkdir = os.fsync, os.replace, os.unlink, os.mkdir

    def ours(path):
        return os.path.realpath(path).startswith(cut.root[:-1])

    def written(path):
        content = Path(path).read_bytes()
        if known.get(path) != content:
            known[path] = content
            cut.note("create", path)
            cut.note("cut", path, 0)
            cut.note("write", path, 0, content)

    def fsync(number):
        sync(number)
        path = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
        if ours(path) and Path(path).is_dir():
            cut.note("sync folder", path)
        elif ours(path):
            written(path)
            cut.note("sync", path)

    def replacing(path, to, **given):
        if ours(path):
            written(str(path))
            cut.note("rename", str(path), str(to))
            known[str(to)] = known.pop(str(path))
        replace(path, to, **given)

    def unlinking(path, **given):
        unlink(path, **given)
        if ours(path) and known.pop(str(path), None) is not None:
            cut.note("delete", str(path))

    with (
        mock.patch.object(os, "fsync", fsync),
        mock.patch.object(os, "replace", replacing),
        mock.patch.object(os, "unlink", unlinking),
        mock.patch.object(os, "mkdir", mkdir),
    ):
        yield cut


def record_study(seed):
    """Record a study in this process."""
    from omg_lab.studies.config import read_plan
    from omg_lab.studies.directory import open_study
    from omg_lab.studies.engines import Serial

    with scratch() as folder, recorded_calls(os.path.realpath(folder)) as cut:
        plan = read_plan(STUDY, name="small")
        store = open_study(plan, Path(os.path.realpath(folder)))
        cut.promise(functools.partial(check_study, text=STUDY))
        Serial().run(plan.tasks(), store, lambda event: None)
    return cut


def check_study(folder, go_on=False, text=STUDY):
    """Return what is wrong with the files of a study; if it is to go on, it is played to its end."""
    from omg_lab.studies.config import read_plan
    from omg_lab.studies.directory import open_study
    from omg_lab.studies.engines import Serial
    from omg_lab.studies.results import load
    from omg_lab.studies.store import StudyStore

    store = StudyStore(folder)
    store.study()
    for path in store.state.glob("*.npz") if store.state.exists() else ():
        with store.checkpoint(path.stem) as saved:
            for number, digest in enumerate(saved["parts"].tolist()):
                store.read_part(path.stem, number, digest)
    for result in store.results() if store.runs.exists() else ():
        for number, digest in enumerate(result.get("parts", ())):
            store.read_part(result["run"], number, digest)
    if not go_on:
        return []
    plan = read_plan(text, name="small")
    Serial().run(plan.tasks(), open_study(plan, Path(folder)), lambda event: None)
    found = load(folder)
    return [f"run {run} failed" for run in found.failed["run"]] + ["runs are missing"] * (
        len(found.runs) < len(plan.tasks())
    )


def _agent(seed=0):
    sizes = {"states": 2, "actions": 2, "horizon": 2}
    oracles = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
    return omg.OMG(omg.Space(**sizes), *oracles, seed=seed)


def record_agent(seed, episodes=10):
    """Record an agent that is saved after every episode."""
    draw = np.random.default_rng(seed)
    with scratch() as folder, recorded_calls(os.path.realpath(folder)) as cut:
        agent = _agent()
        for episode in range(episodes):
            states, actions = draw.integers(2, size=3).tolist(), draw.integers(2, size=2).tolist()
            agent.update(omg.Trajectory(context=0, states=[0, *states[1:]], actions=actions, rewards=[1.0, 0.0]))
            agent.save(Path(os.path.realpath(folder), "agent.npz"))
            cut.promise(functools.partial(check_agent, least=episode + 1))
    return cut


def check_agent(folder, go_on=False, least=0):
    """Return what is wrong with a saved agent, which must have learned from `least` episodes or more."""
    path = Path(folder, "agent.npz")
    if not path.exists():
        return [f"there is no agent, and one was saved after {least} episodes"] if least else []
    agent = _agent()
    agent.restore(path)
    found = agent.episodes_seen
    return [] if found >= least else [f"the agent has learned {found} episodes, and was saved after {least}"]
