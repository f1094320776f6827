"""Power cuts of the files of the library: an agent that is saved again and again. `tests/disaster` has the lab's.

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
