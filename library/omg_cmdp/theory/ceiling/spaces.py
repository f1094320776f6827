"""The version space of an oracle's class of functions, for the oracles for which one is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omg_cmdp.contexts import Keyed
from omg_cmdp.oracles.base import Oracle, RewardOracle
from omg_cmdp.oracles.combined.aggregate import AggregateDynamics, AggregateRewards
from omg_cmdp.oracles.combined.copies import CopiesDynamics, CopiesRewards
from omg_cmdp.oracles.counts.dynamics import CountDynamics
from omg_cmdp.oracles.counts.rewards import CountRewards
from omg_cmdp.oracles.finite.aggregating import FiniteDynamics, FiniteRewards
from omg_cmdp.oracles.finite.known import KnownDynamics, KnownRewards
from omg_cmdp.oracles.linear.rewards import LinearRewards
from omg_cmdp.theory.ceiling.counted import CountedRows
from omg_cmdp.theory.ceiling.linear import Ellipsoids
from omg_cmdp.theory.ceiling.listed import ListedFunctions
from omg_cmdp.theory.ceiling.sets import VersionSpace
from omg_cmdp.theory.ceiling.unions import Union


def is_known(oracle: Oracle) -> bool:
    """Return whether the oracle's function is believed, so that no probability is spent on it."""
    return isinstance(oracle, (KnownRewards, KnownDynamics))


def version_space(oracle: Oracle, delta: float) -> VersionSpace | None:
    """Return what is plausible of the oracle's class, with nothing seen yet; None if no such set is known.

    It learns for itself. What the oracle has learned, and whether it did so honestly, does not matter.
    """
    of_rewards = isinstance(oracle, RewardOracle)
    if isinstance(oracle, (FiniteRewards, FiniteDynamics, KnownRewards, KnownDynamics)):
        prepare = oracle.forecasters.prepare
        return ListedFunctions(lambda context: prepare(context).tables, delta, of_rewards=of_rewards)
    if isinstance(oracle, CountRewards):
        tables, states, actions = oracle.forecasters.visits.shape
        possible = np.ones((states, actions, 2))
        return CountedRows(_table_of(oracle), tables, possible, delta, of_rewards=True)
    if isinstance(oracle, CountDynamics):
        return CountedRows(
            _table_of(oracle), len(oracle.forecasters.counts), oracle.forecasters.support, delta, of_rewards=False
        )
    if isinstance(oracle, LinearRewards):
        return Ellipsoids(oracle.forecasters, delta)
    if isinstance(oracle, (CopiesRewards, CopiesDynamics)):  # copies are all of one class
        return version_space(oracle.forecasters.oracles[0], delta)
    if isinstance(oracle, (AggregateRewards, AggregateDynamics)):
        members = [version_space(member, delta) for member in oracle.forecasters.oracles]
        known = [member for member in members if member is not None]
        return Union(known, of_rewards=of_rewards) if len(known) == len(members) else None
    return None


def _table_of(oracle: CountRewards | CountDynamics) -> Callable[[Keyed], int]:
    """Return the function from a context to the number of its table."""
    return lambda context: oracle.forecasters.prepare(context.context)
