"""Environments: contextual MDPs with tables, and Gymnasium environments with contexts."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.environments.encoders.base import Encoder
from omg_cmdp.environments.encoders.bins import Bins
from omg_cmdp.environments.encoders.clusters import Clusters
from omg_cmdp.environments.encoders.report import EncodingReport, encoding_report
from omg_cmdp.environments.encoders.steps import Steps
from omg_cmdp.environments.gymnasium.contextual_env import gymnasium_space
from omg_cmdp.environments.gymnasium.make import from_gymnasium
from omg_cmdp.environments.gymnasium.worlds import SampledWorld, TableWorld

if TYPE_CHECKING:
    from omg_cmdp.environments.gymnasium.discretise import Discretised, random_steps

__all__ = [
    "Bins",
    "Clusters",
    "ContextualMDP",
    "Discretised",
    "Encoder",
    "EncodingReport",
    "SampledWorld",
    "Steps",
    "TableWorld",
    "encoding_report",
    "from_gymnasium",
    "gymnasium_space",
    "random_steps",
]


def __getattr__(name: str) -> Any:
    if name not in ("Discretised", "random_steps"):  # these need Gymnasium, and are imported with their first use
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("omg_cmdp.environments.gymnasium.discretise"), name)
