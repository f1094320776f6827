"""Studies made in code: worlds, adversaries and agents as in a study file; and tables for the guide."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from omg_lab.studies.config import presets, unchecked_plan
from omg_lab.studies.plan import StudyPlan

Parts = Mapping[str, Mapping[str, Any]]
"""As in a study file: the kind and options of every world, adversary or agent, by name."""


def preset(name: str) -> dict[str, Any]:
    """Return the content of a preset."""
    return tomllib.loads(presets()[name])


def grid(content: Mapping[str, Any], agents: Parts, *, seeds: Iterable[int], episodes: int) -> StudyPlan:
    """Return a study with other agents, seeds and episodes; not all of its runs need be possible."""
    return unchecked_plan({**content, "agents": dict(agents), "seeds": list(seeds), "episodes": episodes})


def markdown(frame: pd.DataFrame) -> str:
    """Return a table for the guide."""
    rows = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(object).fillna("").to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(value) for value in row) + " |" for row in rows)
