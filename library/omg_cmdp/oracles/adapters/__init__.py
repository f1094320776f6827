"""Oracles made of other packages' learners; each package is imported with the first use of its adapters."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omg_cmdp.oracles.adapters.refitted import RefittedDynamics, RefittedRewards
    from omg_cmdp.oracles.adapters.river import RiverDynamics, RiverRewards
    from omg_cmdp.oracles.adapters.sklearn import SklearnDynamics, SklearnRewards
    from omg_cmdp.oracles.adapters.torch import TorchDynamics, TorchRewards

__all__ = [
    "RefittedDynamics",
    "RefittedRewards",
    "RiverDynamics",
    "RiverRewards",
    "SklearnDynamics",
    "SklearnRewards",
    "TorchDynamics",
    "TorchRewards",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = name.removesuffix("Rewards").removesuffix("Dynamics").lower()
    return getattr(importlib.import_module(f"{__name__}.{package}"), name)
