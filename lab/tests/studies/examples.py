"""Small studies for tests, their results, and what of a directory must be the same bit for bit."""

import dataclasses
import functools
import json
import tempfile
from types import SimpleNamespace

import pandas

from omg_lab.studies.config import read_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.engines import play_here
from omg_lab.studies.results import load
from omg_lab.studies.store import StudyStore

SMALL = """
description = "small"
episodes = 60
seeds = 2
checkpoint = 20
propensities = true

[worlds.decoy]
context_count = 4
reward_class_size = 8

[adversaries.sorted]

[agents.omg]
[agents.ucbvi]
[agents.pc_igw]
[agents.posterior_sampling]
"""

TWO_WORLDS = """
description = "three agents in two worlds"
episodes = {episodes}
seeds = {seeds}
[worlds.treatment]
[worlds.decoy]
[agents.omg]
[agents.greedy]
[agents.uniform]
"""


def small_plan(**changes):
    return dataclasses.replace(read_plan(SMALL, name="small"), **changes)


def run_study(text, directory):
    """Run a study in this process, and return its results."""
    plan = read_plan(text, name="small study")
    play_here(plan.tasks(), open_study(plan, directory), lambda event: None)
    return load(directory)


@functools.cache
def results_of(text=TWO_WORLDS, *, episodes=300, seeds=4):
    """Return the results of a study, in the form of `Results`, with a provenance that is always the same."""
    with tempfile.TemporaryDirectory() as directory:
        results = run_study(text.format(episodes=episodes, seeds=seeds), directory)
        parts = {name: getattr(results, name) for name in ("configuration", "runs", "failed", "log", "policies")}
    provenance = {"version": "0.0", "commit": "unknown", "date": "2024-02-29"}
    return SimpleNamespace(**parts, provenance=provenance)


def changed(results, **parts):
    """Return results with some parts replaced."""
    return SimpleNamespace(**{**vars(results), **parts})


def content(directory):
    """Return all rows of the log and all results, as bytes or text, without seconds and dates."""
    log = pandas.read_parquet(directory / "log").sort_values(["world", "adversary", "agent", "seed", "episode"])
    log = log[[name for name in log if not name.startswith("seconds_")]]
    columns = {name: [str(value) if hasattr(value, "__len__") else value for value in log[name]] for name in log}
    results = [
        {name: value for name, value in result.items() if "seconds" not in name and name not in ("ended", "parts")}
        for result in StudyStore(directory).results()
    ]
    bits = {
        name: pandas.Series(values).to_numpy().tobytes() if log[name].dtype.kind in "fi" else values
        for name, values in columns.items()
    }
    return bits, json.dumps(results, sort_keys=True)
