"""What a class of functions can already fit: the features of its parameters, in which residuals say nothing.

A class with weights θ changes, to first order, by its derivative in θ. Residuals along these *tangents* are the errors
of an oracle that is still learning; what is left of a direction without its tangents is what the class lacks.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from omg_cmdp.contexts import Keyed
from omg_cmdp.oracles.base import Oracle
from omg_cmdp.oracles.basis import BasisDynamics
from omg_cmdp.oracles.combined.composite import Alternating, Composite
from omg_cmdp.oracles.counts.tables import CountTables
from omg_cmdp.oracles.finite.aggregating import Finite
from omg_cmdp.oracles.finite.known import KnownDynamics, KnownRewards
from omg_cmdp.oracles.frame import Frame
from omg_cmdp.oracles.linear.forecasters import LinearForecasters
from omg_cmdp.oracles.softmax import SoftmaxDynamics
from omg_cmdp.validation import FloatArray

SLACK = 0.05
"""By how much predictions of an oracle whose class is not known may be off, as it may be learning still."""


class Tangent(NamedTuple):
    """The tangents of a class at one context."""

    rows: FloatArray
    """The tangents: (1, d), with parameters of their own for each pair, or (S·A, d) with parameters that all share."""
    table: Hashable = 0
    """Contexts with different tables share no parameters."""
    slack: float = 0.0
    """The largest error of mean predictions that is not held against the class."""


def tangent(oracle: Oracle, known: Keyed) -> Tangent:
    """Return the tangents of an oracle's class at a context; none, and a slack, where the class is not known."""
    none = np.zeros((1, 0))
    if not isinstance(oracle, Frame):
        return Tangent(none, slack=SLACK)
    forecasters = oracle.forecasters
    if isinstance(forecasters, CountTables):
        return Tangent(np.ones((1, 1)), forecasters.prepare(known.to(forecasters)))
    if isinstance(forecasters, LinearForecasters) or isinstance(oracle, (SoftmaxDynamics, BasisDynamics)):
        return Tangent(np.atleast_2d(forecasters.prepare(known.to(forecasters))))
    if isinstance(forecasters, Finite) or isinstance(oracle, (KnownRewards, KnownDynamics)):
        return Tangent(none)
    if not isinstance(forecasters, Composite):
        return Tangent(none, slack=SLACK)
    # Copies of one oracle have the same class.
    oracles = forecasters.oracles[:1] if isinstance(forecasters, Alternating) else forecasters.oracles
    parts = [tangent(part, known) for part in oracles]
    longest = max(len(part.rows) for part in parts)
    rows = np.hstack([np.broadcast_to(part.rows, (longest, part.rows.shape[1])) for part in parts])
    return Tangent(rows, tuple(part.table for part in parts), max(part.slack for part in parts))
