"""A trial as a dataset of Minari, in its Parquet format: a folder for each episode, which its own reader reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from omg_cmdp.mdp.episode import Episode
from omg_cmdp.validation import file_path
from omg_trial.export.logged import live_log
from omg_trial.log.events import Event
from omg_trial.trial_file.trial import Trial


def write_minari(trial: Trial, events: Iterable[Event], path: str | os.PathLike[str]) -> Path:
    """Write the episodes of `live_log` as a dataset that `minari.MinariDataset(path / "data")` reads.

    An observation has the state, and the context as a vector; infos have the probability of each action. An episode
    stops before the first step without a reward, and is then truncated.

    Parameters
    ----------
    trial, events
        As in `live_log`.
    path : path
        A new folder.

    Returns
    -------
    Path
        The folder of the data.

    Examples
    --------
    >>> import tempfile
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE
    >>> desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = write_minari(desk.trial, desk.store.read(), f"{folder}/adherence")
    ...     json.loads((data / "metadata.json").read_text())["total_episodes"]
    0

    References
    ----------
    https://minari.farama.org/content/dataset_standards/
    """
    import pyarrow
    import pyarrow.parquet

    log, target = live_log(trial, events), file_path(path) / "data"
    target.mkdir(parents=True)
    episodes = [(each, steps) for each in log.episodes if (steps := _rewarded(each))]
    vectors, size = [trial.vector(each.context) for each, _ in episodes], trial.dimension
    for number, (episode, steps) in enumerate(episodes):
        folder = target / str(number)
        folder.mkdir()
        last = np.arange(steps) == steps - 1
        whole = steps == log.space.horizon
        context = pyarrow.FixedSizeListArray.from_arrays(np.tile(vectors[number], steps + 1), size)
        state = pyarrow.array(np.asarray(episode.states[: steps + 1], dtype=np.int64))
        assert episode.propensities is not None  # a trial knows them
        chances = pyarrow.array([*map(float, episode.propensities[:steps]), 1.0])
        # All columns are as long as the observations: Minari leaves out the last entry of the others.
        columns = {
            "observations": pyarrow.StructArray.from_arrays([context, state], names=["context", "state"]),
            "actions": pyarrow.array([*map(int, episode.actions[:steps]), 0]),
            "rewards": pyarrow.array([*map(float, episode.rewards[:steps]), 0.0]),
            "terminations": pyarrow.array([*(last & whole).tolist(), False]),
            "truncations": pyarrow.array([*(last & (not whole)).tolist(), False]),
            "infos": pyarrow.StructArray.from_arrays([chances], names=["propensity"]),
        }
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / "part-0.parquet")
        (folder / "metadata.json").write_text(json.dumps({"id": number, "total_steps": steps}))
    high = float(max((np.abs(each).max() for each in vectors), default=1.0))
    box = {"type": "Box", "dtype": "float64", "shape": [size], "low": [-high] * size, "high": [high] * size}
    spaces = {"context": box, "state": _discrete(log.space.states)}
    metadata = {
        "dataset_id": "omg/trial-v0",
        "total_episodes": len(episodes),
        "total_steps": sum(steps for _, steps in episodes),
        "data_format": "parquet",
        "observation_space": json.dumps({"type": "Dict", "subspaces": spaces}),
        "action_space": json.dumps(_discrete(log.space.actions)),
        "minari_version": "0.5.3",
    }
    (target / "metadata.json").write_text(json.dumps(metadata))
    return target


def _discrete(count: int) -> dict[str, Any]:
    return {"type": "Discrete", "dtype": "int64", "start": 0, "n": count}


def _rewarded(episode: Episode) -> int:
    """Return the number of steps before the first one without a reward."""
    known = [value is not None and bool(np.isfinite(value)) for value in episode.rewards]
    return known.index(False) if False in known else len(known)
