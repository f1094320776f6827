"""Oracles made of other people's learners: anything with the methods of scikit-learn."""

from omg_cmdp.oracles.adapters.refitted import RefittedDynamics, RefittedRewards
from omg_cmdp.oracles.adapters.sklearn import SklearnDynamics, SklearnRewards

__all__ = [
    "RefittedDynamics",
    "RefittedRewards",
    "SklearnDynamics",
    "SklearnRewards",
]
