"""Weighted least squares over people: coefficients, with a sandwich covariance that is clustered by person."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.validation import FloatArray, probability


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ClusteredEstimate:
    """Coefficients with their covariance. `clustered_fit` and `excursion_effect` make it.

    Parameters
    ----------
    names : tuple of str
        Names of the coefficients.
    values : array, shape (p,)
        The coefficients.
    covariance : array, shape (p, p)
        Sandwich covariance, clustered by person.
    people : int
        Number of people.
    decisions : int
        Number of decisions.
    freedom : int
        Degrees of freedom: people less all fitted coefficients, those that are not shown too.

    Examples
    --------
    >>> effect = ClusteredEstimate(
    ...     names=("effect",), values=np.array([0.2]), covariance=np.array([[0.01]]), people=20, decisions=9, freedom=18
    ... )
    >>> effect.interval().round(3).tolist()
    [[-0.01, 0.41]]
    """

    names: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    people: int
    decisions: int
    freedom: int

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the coefficients, shape (p,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))  # rounding, where nothing varies

    def interval(self, level: float = 0.95) -> FloatArray:
        """Return Student's intervals of the coefficients, shape (p, 2)."""
        from scipy.special import stdtrit

        probability("level", level)
        width = float(stdtrit(self.freedom, (1.0 + level) / 2.0)) * self.standard_errors
        return np.stack([self.values - width, self.values + width], axis=1)

    def last(self, count: int) -> ClusteredEstimate:
        """Return the last coefficients alone; degrees of freedom stay those of the whole fit."""
        names, values, covariance = self.names[-count:], self.values[-count:], self.covariance[-count:, -count:]
        return dataclasses.replace(self, names=names, values=values, covariance=covariance)


def clustered_fit(
    *,
    design: ArrayLike,
    outcome: ArrayLike,
    weights: ArrayLike,
    person: Sequence[Any] | NDArray[Any],
    names: Sequence[str],
) -> ClusteredEstimate:
    """Minimise Σ w·(y - x·θ)², with errors that allow for any dependence among the rows of a person.

    The covariance is B·(Σ_i u_i·u_iᵀ)·B, where B = (Σ w·x·xᵀ)⁻¹ and u_i is the score of a person whose residuals were
    divided by I - H_ii: the correction of Mancl and DeRouen for few people.

    Parameters
    ----------
    design : array, shape (n, p)
        The regressors x.
    outcome, weights : array, shape (n,)
        y and w.
    person : sequence of n
        Who each row is about.
    names : sequence of p str
        Names of the coefficients.

    Returns
    -------
    ClusteredEstimate

    Examples
    --------
    >>> rows = [[1.0], [1.0], [1.0], [1.0]]
    >>> mean = clustered_fit(
    ...     design=rows, outcome=[1.0, 3.0, 2.0, 4.0], weights=[1.0] * 4, person="aabb", names=["mean"]
    ... )
    >>> mean.values.tolist(), mean.people
    ([2.5], 2)

    References
    ----------
    L. A. Mancl, T. A. DeRouen, A covariance estimator for GEE with improved small-sample properties, Biometrics 57
    (2001), 126-134.
    """
    rows, values, scale = (np.asarray(each, dtype=np.float64) for each in (design, outcome, weights))
    _, of_person = np.unique(np.asarray(list(person)), return_inverse=True)
    people, size = int(of_person.max(initial=-1)) + 1, rows.shape[1]
    if not (np.isfinite(rows).all() and np.isfinite(values).all() and np.isfinite(scale).all()):
        raise ValueError("`design`, `outcome` and `weights` must be finite: leave out rows that are not")
    if people <= size:
        raise ValueError(f"{people} people are too few for {size} coefficients")
    weighted = scale[:, None] * rows
    bread = np.linalg.pinv(rows.T @ weighted)
    found = bread @ (weighted.T @ values)
    scores, moments = np.zeros((people, size)), np.zeros((people, size, size))
    np.add.at(scores, of_person, weighted * (values - rows @ found)[:, None])
    np.add.at(moments, of_person, weighted[:, :, None] * rows[:, None, :])
    # X'W(I - XBX'W)⁻¹r = (I - X'WXB)⁻¹X'Wr: a small system for each person, however many rows they have.
    corrected = np.linalg.solve(np.eye(size) - moments @ bread, scores[:, :, None])[:, :, 0]
    covariance = bread @ (corrected.T @ corrected) @ bread
    return ClusteredEstimate(
        names=tuple(names),
        values=found,
        covariance=covariance,
        people=people,
        decisions=len(values),
        freedom=people - size,
    )
