"""Oracles made of other people's models: anything with the methods of scikit-learn."""

from omg_cmdp.oracles.adapters.refitted import RefittedDynamics, RefittedRewards

__all__ = ["RefittedDynamics", "RefittedRewards"]
