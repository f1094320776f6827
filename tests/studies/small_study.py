"""Results of small experiments that were really run, in the form of `omg_cmdp.studies.results.Results`."""

import functools
from types import SimpleNamespace

import pandas

from omg_cmdp.studies.config import read_plan
from omg_cmdp.studies.journal import LOGGED_TOTALS

STUDY = """
description = "three agents in two worlds"
episodes = {episodes}
seeds = {seeds}
[worlds.treatment]
[worlds.decoy]
[agents.omg]
[agents.greedy]
[agents.uniform]
"""


@functools.cache
def study(text=STUDY, *, episodes=300, seeds=4):
    """Return the results of a configuration."""
    plan = read_plan(text.format(episodes=episodes, seeds=seeds), name="small study")
    runs, logs = [], []
    for task in plan.tasks():
        run = task.start()
        run.advance(task.episodes)
        labels = {"world": task.world.name, "adversary": task.adversary.name, "agent": task.agent.name}
        rows = run.ledger.table().reset_index().assign(**labels, seed=task.seed)
        logs.append(rows.assign(**{f"cumulative_{name}": rows[name].cumsum() for name in LOGGED_TOTALS}))
        runs.append({"run": task.name, **labels, "seed": task.seed, "episodes": task.episodes})
    return SimpleNamespace(
        configuration=plan.configuration(),
        provenance={"version": "0.0", "commit": "unknown", "date": "2024-02-29"},
        runs=pandas.DataFrame(runs),
        failed=pandas.DataFrame(columns=["run", "error"]),
        log=pandas.concat(logs, ignore_index=True),
    )


def changed(results, **parts):
    """Return results with some parts replaced."""
    return SimpleNamespace(**{**vars(results), **parts})
