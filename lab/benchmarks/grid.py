"""The content of presets, and tables for the guide."""

from __future__ import annotations

import tomllib
from typing import Any

import pandas as pd

from omg_lab.studies.config import presets


def preset(name: str) -> dict[str, Any]:
    """Return the content of a preset."""
    return tomllib.loads(presets()[name])


def markdown(frame: pd.DataFrame) -> str:
    """Return a table for the guide."""
    rows = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(object).fillna("").to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(value) for value in row) + " |" for row in rows)
