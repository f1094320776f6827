"""Small experiments for tests, and what of a directory must be the same to the bit."""

import json

import pandas

from omg_cmdp.studies.config import read_plan
from omg_cmdp.studies.store import Store

SMALL = """
description = "small"
episodes = 60
seeds = 2
checkpoint = 20
propensities = true

[worlds.decoy]
context_count = 4
reward_class_size = 8

[adversaries.bursts]
length = 3

[agents.omg]
[agents.ucbvi]
[agents.pc_igw]
[agents.posterior_sampling]
"""


def small_plan(**changes):
    return read_plan(SMALL, name="small").__class__(**{**vars(read_plan(SMALL, name="small")), **changes})


def content(directory):
    """Return all rows of the log and all results, as bytes or text, but seconds and dates."""
    log = pandas.read_parquet(directory / "log").sort_values(["world", "adversary", "agent", "seed", "episode"])
    log = log[[name for name in log if not name.startswith("seconds_")]]
    columns = {name: [str(value) if hasattr(value, "__len__") else value for value in log[name]] for name in log}
    results = [
        {name: value for name, value in result.items() if "seconds" not in name and name != "ended"}
        for result in Store(directory).results()
    ]
    bits = {
        name: pandas.Series(values).to_numpy().tobytes() if log[name].dtype.kind in "fi" else values
        for name, values in columns.items()
    }
    return bits, json.dumps(results, sort_keys=True)
