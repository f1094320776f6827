"""Weighted least squares over people: coefficients, with errors that are clustered by person.

Each coefficient is, to first order, the truth plus a sum over people of contributions, here those of the jackknife:
leaving out person i changes the coefficients by -c_i. Σ_i c_i·c_iᵀ is the covariance of Mancl and DeRouen. An interval
is Student's, and knows three things about the contributions:

- how few people the variance rests on by design, such as a small control group (Bell and McCaffrey);
- how few it rests on in fact, by their kurtosis κ: 2n/(κ - 1) degrees of freedom at most (Satterthwaite);
- their skewness g, which moves the end on its side outwards by g·(1 + 2t²)/(6√n) standard errors (Johnson).

Policies that learn from everybody make people depend on each other. That needs no further term where each person's
score has mean zero given all that came before, as probabilities are known: docs/trial/analysis.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.validation import FloatArray, probability

UNKNOWN = 1e-9
"""What counts as nothing, beside the largest of its kind: more than rounding, less than any person's part."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ClusteredEstimate:
    """Coefficients, and how much each person contributes to them. `clustered_fit` and `excursion_effect` make it.

    Parameters
    ----------
    names : tuple of str
        Names of the coefficients.
    values : array, shape (p,)
        The coefficients.
    contributions : array, shape (n, p)
        How much each of n people moves the coefficients.
    freedom : array, shape (p,)
        Degrees of freedom; 0 where a coefficient rests on one person alone, or on nobody: its error cannot be known.
    decisions : int
        Number of decisions.

    Examples
    --------
    >>> effect = ClusteredEstimate(
    ...     names=("effect",), values=np.array([0.2]), contributions=np.tile([[0.02], [-0.02]], (10, 1)),
    ...     freedom=np.array([18.0]), decisions=40)
    >>> effect.standard_errors.round(3).tolist(), effect.interval().round(3).tolist()
    ([0.089], [[0.012, 0.388]])
    """

    names: tuple[str, ...]
    values: FloatArray
    contributions: FloatArray
    freedom: FloatArray
    decisions: int

    @property
    def people(self) -> int:
        """The number of people."""
        return len(self.contributions)

    @property
    def covariance(self) -> FloatArray:
        """The sandwich covariance of the coefficients, shape (p, p)."""
        return np.asarray(self.contributions.T @ self.contributions)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the coefficients, shape (p,)."""
        return np.sqrt(np.diag(self.covariance))

    def interval(self, level: float = 0.95) -> FloatArray:
        """Return intervals of the coefficients, shape (p, 2); infinite where one person alone tells, or nobody."""
        from scipy.special import stdtrit

        probability("level", level)
        errors, known = self.standard_errors, self.freedom > 0.0
        width = stdtrit(np.where(known, self.freedom, 1.0), (1.0 + level) / 2.0)
        # The skewness over √n, and with it the shift of Johnson's t; the other end stays where Student's is.
        shift = _share((self.contributions**3).sum(axis=0), errors**3) * (1.0 + 2.0 * width**2) / 6.0
        below, above = errors * (width - np.minimum(shift, 0.0)), errors * (width + np.maximum(shift, 0.0))
        below, above = (np.where(known, each, np.inf) for each in (below, above))
        return np.stack([self.values - below, self.values + above], axis=1)

    def last(self, count: int) -> ClusteredEstimate:
        """Return the last coefficients alone; degrees of freedom stay those of the whole fit."""
        names, values, freedom = self.names[-count:], self.values[-count:], self.freedom[-count:]
        contributions = self.contributions[:, -count:]
        return dataclasses.replace(self, names=names, values=values, contributions=contributions, freedom=freedom)


def clustered_fit(
    *,
    design: ArrayLike,
    outcome: ArrayLike,
    weights: ArrayLike,
    person: Sequence[Any] | NDArray[Any],
    names: Sequence[str],
) -> ClusteredEstimate:
    """Minimise Σ w·(y - x·θ)², with errors that allow for any dependence among the rows of a person.

    With B = (Σ w·x·xᵀ)⁻¹, and M_i and u_i the part of a person in Σ w·x·xᵀ and in Σ w·x·(y - x·θ̂), the person
    contributes c_i = B·(I - M_i·B)⁻¹·u_i: the correction of Mancl and DeRouen for few people.

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
    (2001), 126-134. R. M. Bell, D. F. McCaffrey, Bias reduction in standard errors for linear regression with
    multi-stage samples, Survey Methodology 28 (2002), 169-181. N. J. Johnson, Modified t tests and confidence intervals
    for asymmetrical populations, JASA 73 (1978), 536-544.
    """
    rows, values, scale = (np.asarray(each, dtype=np.float64) for each in (design, outcome, weights))
    _, of_person = np.unique(np.asarray(list(person)), return_inverse=True)
    people, size = int(of_person.max(initial=-1)) + 1, rows.shape[1]
    if not (np.isfinite(rows).all() and np.isfinite(values).all() and np.isfinite(scale).all()):
        raise ValueError("`design`, `outcome` and `weights` must be finite: leave out rows that are not")
    if people <= size:
        raise ValueError(f"{people} people are too few for {size} coefficients")
    weighted = scale[:, None] * rows
    whole = rows.T @ weighted
    bread = np.asarray(np.linalg.pinv(whole), dtype=np.float64)
    found = bread @ (weighted.T @ values)
    scores, moments = np.zeros((people, size)), np.zeros((people, size, size))
    np.add.at(scores, of_person, weighted * (values - rows @ found)[:, None])
    np.add.at(moments, of_person, weighted[:, :, None] * rows[:, None, :])
    # X'W(I - XBX'W)⁻¹r = (I - X'WXB)⁻¹X'Wr: a small system for each person, however many rows they have.
    left = np.eye(size) - moments @ bread
    inverse = np.linalg.pinv(left, rcond=UNKNOWN)
    influence = bread @ inverse
    # A coefficient that nobody tells, or that nobody would tell without this person.
    unknown = (np.abs(bread @ whole - np.eye(size)) > UNKNOWN).any(axis=1)
    alone = (np.abs(influence @ left - bread) > UNKNOWN * np.abs(bread).max()).any(axis=(0, 2))
    contributions = np.einsum("ipq,iq->ip", influence, scores)
    freedom = np.minimum(_freedom_by_design(influence, moments, bread), _freedom_by_kurtosis(contributions))
    return ClusteredEstimate(
        names=tuple(names),
        values=found,
        contributions=contributions,
        freedom=np.where(unknown | alone, 0.0, np.clip(freedom, 1.0, people - size)),
        decisions=len(values),
    )


def _freedom_by_design(influence: FloatArray, moments: FloatArray, bread: FloatArray) -> FloatArray:
    """Return (tr Γ)²/tr Γ² for each coefficient, Γ the covariance of contributions if rows had variances of 1/w.

    Γ_ik = k_i·(δ_ik·M_i - M_i·B·M_k)·k_k, where k_i is the coefficient's row of a person's influence.
    """
    through = influence @ moments
    own = np.einsum("ipq,ipq->ip", through, influence)
    shared = np.einsum("ipq,qr,ipr->ip", through, bread, through)
    both = np.einsum("ipq,ipr->pqr", through, through) @ bread
    squares = (own**2 - 2.0 * own * shared).sum(axis=0) + np.einsum("pqr,prq->p", both, both)
    return _share((own - shared).sum(axis=0) ** 2, squares, np.inf)


def _freedom_by_kurtosis(contributions: FloatArray) -> FloatArray:
    kurtosis = len(contributions) * _share((contributions**4).sum(axis=0), (contributions**2).sum(axis=0) ** 2)
    return 2.0 * len(contributions) / np.maximum(kurtosis - 1.0, 1e-9)


def _share(part: FloatArray, whole: FloatArray, otherwise: float = 0.0) -> FloatArray:
    return np.asarray(np.divide(part, whole, out=np.full(np.shape(whole), otherwise), where=whole > 0.0))
