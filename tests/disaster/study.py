"""A small study whose power is cut, and whose disk fails: the lab's share of `python -m trial.tests.disaster`."""

import functools
import os
from pathlib import Path

import omg_lab
from omg_lab.studies.config import read_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.engines import play_here
from omg_lab.studies.results import load
from omg_lab.studies.store import StudyStore
from trial.tests.disaster import cuts, nth
from trial.tests.disaster.files import recorded_calls
from trial.tests.disaster.platter import scratch

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


def record_study(seed):
    """Record a study in this process."""
    with scratch() as folder, recorded_calls(os.path.realpath(folder)) as cut:
        plan = read_plan(STUDY, name="small")
        store = open_study(plan, Path(os.path.realpath(folder)))
        cut.promise(functools.partial(check_study, text=STUDY))
        play_here(plan.tasks(), store, lambda event: None)
    return cut


def check_study(folder, go_on=False, text=STUDY):
    """Return what is wrong with the files of a study; if it is to go on, it is played to its end."""
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
    play_here(plan.tasks(), open_study(plan, Path(folder)), lambda event: None)
    found = load(folder)
    return [f"run {run} failed" for run in found.failed["run"]] + ["runs are missing"] * (
        len(found.runs) < len(plan.tasks())
    )


def study_acts(folder):
    """Return how a study is played, and how its files are checked."""
    plan = read_plan(STUDY.replace("episodes = 40", "episodes = 20"), name="small")

    def act():
        play_here(plan.tasks(), open_study(plan, folder), lambda event: None)

    return act, lambda: check_study(folder)


cuts.RECORDS["study"] = record_study, check_study
nth.FILE_ACTS["study"] = study_acts
nth.OURS += (str(Path(omg_lab.__file__).parent),)
