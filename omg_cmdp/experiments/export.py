"""Results for other programs: one table, or the logged decisions of every run with their propensities.

    csv, parquet    the log of all finished runs in one file; lists are JSON in the CSV
    obp             a .npz for each run: the arrays context, action, reward, pscore, ... of Open Bandit Pipeline
    vw              a .vw for each run: lines action:cost:probability | features of Vowpal Wabbit, cost = 1 - reward

For the last two a step of an episode is a round, and its features are the context, the state and the step. They need an
experiment with `propensities = true`, and hold the episodes that the log holds. A propensity is the probability that
the policy played gave to the action; agents that draw a whole policy first (posterior sampling and its like, PC-IGW)
play a deterministic one, and have 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import context_from_json
from omg_cmdp.environments.world import World
from omg_cmdp.experiments.config import checked_plan
from omg_cmdp.experiments.contestants import context_vectors
from omg_cmdp.experiments.plan import Task
from omg_cmdp.experiments.results import Results
from omg_cmdp.experiments.store import Store

FORMATS = ("csv", "parquet", "obp", "vw")
LISTS = ("states", "actions", "rewards", "propensities")


def export(results: Results, form: str, target: Path) -> list[Path]:
    """Write the finished runs into the folder `target`, and return the files."""
    if form not in FORMATS:
        raise ValueError(f"`form` must be one of {', '.join(FORMATS)}, got {form!r}")
    if form in ("obp", "vw") and not results.configuration["propensities"]:
        raise ValueError("`results` must hold propensities; run the experiment with propensities = true")
    target.mkdir(parents=True, exist_ok=True)
    if form == "csv":
        return [_csv(results, target / "log.csv")]
    if form == "parquet":
        return [_parquet(results, target / "log.parquet")]
    return [_decisions(results, task, form, target) for task in _finished(results)]


def _parts(results: Results) -> list[Path]:
    store = Store(results.directory)
    return [path for run in sorted(results.runs["run"]) for path in store.parts(run)]


def _csv(results: Results, path: Path) -> Path:
    import pandas

    for number, part in enumerate(_parts(results)):
        table = pandas.read_parquet(part)
        lists = {name: [json.dumps(entry.tolist()) for entry in table[name]] for name in LISTS if name in table}
        first = number == 0
        table.assign(**lists).to_csv(path, mode="w" if first else "a", header=first, index=False)
    return path


def _parquet(results: Results, path: Path) -> Path:
    from pyarrow import parquet

    tables = (parquet.read_table(part, partitioning=None) for part in _parts(results))
    first = next(tables)
    with parquet.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
    return path


def _finished(results: Results) -> Iterator[Task]:
    names = set(results.runs["run"])
    yield from (task for task in checked_plan(results.configuration).tasks() if task.name in names)


def _decisions(results: Results, task: Task, form: str, target: Path) -> Path:
    import pandas

    world = task.setting().world
    wanted = ["episode", "context", *LISTS]
    parts = Store(results.directory).parts(task.name)
    log = pandas.concat([pandas.read_parquet(part, columns=wanted) for part in parts], ignore_index=True)
    states, actions, rewards, propensities = (np.stack(log[name].to_list()) for name in LISTS)
    places = _places(log["context"].to_list(), world)
    if form == "vw":
        return _vw(target / f"{task.name}.vw", world, places, (states[:, :-1], actions, rewards, propensities))
    return _obp(target / f"{task.name}.npz", world, places, (states[:, :-1], actions, rewards, propensities))


Steps = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
"""States, actions, rewards and propensities, (T, H) each."""


def _places(texts: list[str], world: World) -> NDArray[np.int64]:
    """Return the place of every context in the world's list."""
    known = {str(np.asarray(context).tolist()): place for place, context in enumerate(world.contexts)}
    found = {text: known[str(np.asarray(context_from_json(text)).tolist())] for text in set(texts)}
    return np.array([found[text] for text in texts], dtype=np.int64)


def _obp(path: Path, world: World, places: NDArray[np.int64], steps: Steps) -> Path:
    states, actions, rewards, propensities = steps
    horizon, rounds = world.space.horizon, actions.size
    features = [
        np.repeat(context_vectors(world)[places], horizon, axis=0),
        np.eye(world.space.states)[states.reshape(-1)],
        np.tile(np.eye(horizon), (len(actions), 1)),
    ]
    np.savez_compressed(
        path,
        allow_pickle=False,
        n_rounds=np.array(rounds),
        n_actions=np.array(world.space.actions),
        context=np.hstack(features),
        action=actions.reshape(-1),
        position=np.zeros(rounds, dtype=np.int64),
        reward=rewards.reshape(-1),
        pscore=propensities.reshape(-1),
    )
    return path


def _vw(path: Path, world: World, places: NDArray[np.int64], steps: Steps) -> Path:
    contexts = [_vw_features(context) for context in world.contexts]
    with path.open("w", encoding="ascii") as file:
        for place, *rows in zip(places.tolist(), *(array.tolist() for array in steps), strict=True):
            for step, (state, action, reward, propensity) in enumerate(zip(*rows, strict=True)):
                label = f"{action + 1}:{1.0 - reward!r}:{propensity!r}"
                file.write(f"{label} |context {contexts[place]} |state s{state} |step h{step}\n")
    return path


def _vw_features(context: Any) -> str:
    if isinstance(context, np.ndarray):
        return " ".join(f"x{place}:{value!r}" for place, value in enumerate(context.tolist()))
    return f"c{context}"
