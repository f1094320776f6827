"""An estimate, what supports it, and its interval.

Each estimator is, to first order, a mean over the episodes of a log: v ≈ (1/n)·Σ_i ψ_i with contributions ψ_i. Their
deviation over √n is the standard error. The interval takes at each end the farther of two:

- Student's, with 2n/(κ - 1) degrees of freedom, κ the kurtosis of the ψ_i: n if they are Gaussian, few if the
  deviation itself rests on few episodes (Satterthwaite, 1946);
- the studentised bootstrap over episodes, which follows their skewness (Efron and Tibshirani, 1993, chapter 12).

Episodes are treated as independent and contexts as drawn: for fixed contexts intervals are too wide. Where the log does
not support an estimate the interval is everything that an episode can earn: large weights are rare, and mostly missing
from a small sample, so that no formula sees how wrong it is.
"""

from __future__ import annotations

import dataclasses
import enum
import math

import numpy as np

from omg_cmdp.validation import FloatArray, probability, seed_number

FEWEST_EPISODES = 30
"""The smallest effective sample size at which an estimate counts as supported."""

STANDARD_ERRORS = 3.0
"""The number of standard errors by which a mean weight may differ from 1."""

RESAMPLES = 1000
CHUNK = 2_000_000
"""Numbers drawn at a time by the bootstrap."""


class Support(enum.Enum):
    """The support that a log gives to an estimate; the value is the sentence for the user.

    Examples
    --------
    >>> Support.GOOD.value
    'The log supports it.'
    """

    GOOD = "The log supports it."
    FEW = f"Fewer than {FEWEST_EPISODES} episodes count: the log hardly ever does what the policy does."
    UNBALANCED = "The weights are not 1 on average: propensities are wrong, or the policy does what the log never did."


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """An estimate of the mean of V^π(c) over the contexts of a log, with what supports it.

    Estimators such as `importance_sampling` make it.

    Parameters
    ----------
    value : float
        The estimate.
    contributions : array, shape (n,)
        The part that each episode adds to `value`, to first order; their mean is `value`.
    effective_sample_size : float
        The equivalent number of episodes of the policy's own, where it is smallest.
    mean_weights : array, shape (H,)
        The mean weight of the episodes at each step. Far from 1, the policy does what the log never did, or
        propensities are wrong.
    support : Support
        How well the log supports the estimate.
    return_range : pair of float
        The least and the most that an episode can earn.

    Examples
    --------
    >>> estimate = Estimate(
    ...     value=0.5, contributions=np.tile([0.0, 1.0], 50), effective_sample_size=100.0, mean_weights=np.ones(1),
    ...     support=Support.GOOD, return_range=(0.0, 1.0))
    >>> [round(end, 2) for end in estimate.interval(0.95)]
    [0.4, 0.6]
    """

    value: float
    contributions: FloatArray
    effective_sample_size: float
    mean_weights: FloatArray
    support: Support
    return_range: tuple[float, float]

    @property
    def standard_error(self) -> float:
        """The standard error of `value`; nan for a single episode, and if no episode does what the policy may do."""
        count = len(self.contributions)
        if count < 2 or not self.mean_weights.all():
            return math.nan
        return float(self.contributions.std(ddof=1) / math.sqrt(count))

    def interval(self, level: float = 0.95, *, seed: int = 0) -> tuple[float, float]:
        """Return an interval that holds the policy's value in about `level` of all logs.

        It is `return_range` unless the log supports the estimate.

        Parameters
        ----------
        level : float, default 0.95
            The confidence, in (0, 1).
        seed : int, default 0
            The seed of the bootstrap.
        """
        level, generator = probability("level", level), np.random.default_rng(seed_number(seed))
        least, most = self.return_range
        if self.support is not Support.GOOD:
            return least, most
        below, above = _deviations(self.contributions, level, generator)
        error = self.standard_error
        return (
            float(np.clip(self.value - above * error, least, most)),
            float(np.clip(self.value + below * error, least, most)),
        )


def estimated(
    value: float,
    contributions: FloatArray,
    weights: FloatArray,
    return_range: tuple[float, float],
    *,
    fewest: int = FEWEST_EPISODES,
) -> Estimate:
    """Return the estimate whose episodes have these contributions, (n,), and weights, (n, H).

    The effective sample size of a step is (Σ w)²/Σ w². If it is below `fewest` anywhere, the estimate is not supported.
    """
    count, largest = len(weights), weights.max(axis=0)
    # In units of the largest: squares of weights overflow where propensities are tiny.
    shares = np.divide(weights, largest, out=np.zeros(weights.shape), where=(largest > 0.0) & np.isfinite(largest))
    squares = (shares**2).sum(axis=0)
    sizes = np.divide(shares.sum(axis=0) ** 2, squares, out=np.zeros(len(squares)), where=squares > 0.0)
    finite = np.where(np.isfinite(largest), largest, np.finfo(float).max)
    means, spread = finite * shares.mean(axis=0), finite * shares.std(axis=0)
    size, support = float(sizes.min()), Support.GOOD
    if not np.isfinite(contributions).all() or not np.isfinite(largest).all():
        support = Support.UNBALANCED
    elif size < fewest:
        support = Support.FEW
    # Weights have mean 1 if the propensities are true and nothing is missing: the one check that the log allows.
    elif (np.abs(means - 1.0) > STANDARD_ERRORS * spread / math.sqrt(count) + 1e-9).any():
        support = Support.UNBALANCED
    return Estimate(
        value=float(value),
        # Their mean is the value to first order only; the difference is rounding and bias, not variance.
        contributions=contributions - contributions.mean() + value,
        effective_sample_size=size,
        mean_weights=means,
        support=support,
        return_range=return_range,
    )


def _deviations(contributions: FloatArray, level: float, generator: np.random.Generator) -> tuple[float, float]:
    """Return how many standard errors the value may be above and below the estimate."""
    from scipy.special import stdtrit

    count, centred = len(contributions), contributions - contributions.mean()
    variance, rounding = float((centred**2).mean()), 1e-12 * float(np.abs(contributions).max())
    if variance <= rounding**2:
        return 0.0, 0.0
    kurtosis = float((centred**4).mean()) / variance**2  # at least 1
    # At least one: a t-distribution with one degree of freedom is as wide as it gets.
    freedom = max(min(2.0 * count / max(kurtosis - 1.0, 1e-9), count - 1.0), 1.0)
    student, draws = float(stdtrit(freedom, 0.5 + 0.5 * level)), []
    # In chunks: a thousand resamples of a long log would not fit into memory.
    for rows in np.array_split(np.arange(RESAMPLES), max(1, RESAMPLES * count // CHUNK)):
        drawn = centred[generator.integers(count, size=(len(rows), count))]
        deviations = drawn.std(axis=1, ddof=1)
        # A resample of equal numbers has no deviation to divide by.
        varied = deviations > rounding
        draws.append(drawn.mean(axis=1)[varied] / deviations[varied] * math.sqrt(count))
    low, high = np.quantile(np.concatenate(draws), [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    return max(student, -float(low)), max(student, float(high))
