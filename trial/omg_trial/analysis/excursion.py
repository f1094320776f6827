"""The effect of an action on what comes next: weighted and centred least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_trial.analysis.clustered import ClusteredEstimate, clustered_fit

NUMERATOR = 0.5
"""p̃."""


def excursion_effect(
    *,
    outcome: ArrayLike,
    treatment: ArrayLike,
    probabilities: ArrayLike,
    person: Sequence[Any] | NDArray[Any],
    moderators: ArrayLike | None = None,
    controls: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> ClusteredEstimate:
    """Estimate E[Y(1) - Y(0) | S, available] = S·β: what treating changes now, whatever was done before.

    Weighted and centred least squares minimises Σ w·(Y - G·α - (A - p̃)·S·β)² with w = p̃/p(1) where A = 1, and
    (1 - p̃)/p(0) where A = 0. p̃ = 1/2 is a constant: β is the same estimand whatever the policy was. β̂ is consistent
    whatever G is, since the probabilities are known; G only makes it more precise. Errors are clustered by person, as
    in `clustered_fit`.

    Parameters
    ----------
    outcome : array, shape (n,)
        What came of each decision.
    treatment : array, shape (n,)
        1 where the treatment was drawn, 0 where the reference was.
    probabilities : array, shape (n, 2)
        Probability of the reference and of the treatment at each decision; both positive. They need not sum to 1: there
        may be other actions, whose decisions are left out.
    person : sequence of n
        Who each decision was for.
    moderators : array, shape (n, p), optional
        S, with its constant; a constant alone if left out, which is the marginal effect.
    controls : array, shape (n, q), optional
        G, with its constant; the moderators if left out.
    names : sequence of p str, optional
        Names of the moderators.

    Returns
    -------
    ClusteredEstimate

    Examples
    --------
    >>> generator = np.random.default_rng(1)
    >>> treated = generator.random(1200) < 0.3
    >>> effect = excursion_effect(
    ...     outcome=1.0 + 0.5 * treated + generator.normal(size=1200), treatment=treated,
    ...     probabilities=np.tile([0.7, 0.3], (1200, 1)), person=np.repeat(np.arange(40), 30),
    ... )
    >>> low, high = effect.interval()[0]
    >>> bool(low < 0.5 < high), effect.people
    (True, 40)

    References
    ----------
    A. Boruvka, D. Almirall, K. Witkiewitz, S. A. Murphy, Assessing time-varying causal effect moderation in mobile
    health, JASA 113 (2018), 1112-1121.
    """
    treated, chances = np.asarray(treatment, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    if not (chances > 0.0).all() or not np.isin(treated, (0.0, 1.0)).all():
        raise ValueError("`treatment` must be 0 or 1, and `probabilities` positive: leave out what was not drawn")
    effects = np.ones((len(treated), 1)) if moderators is None else np.asarray(moderators, dtype=np.float64)
    known = effects if controls is None else np.asarray(controls, dtype=np.float64)
    count = effects.shape[1]
    called = [f"moderator {place}" for place in range(count)] if names is None else list(names)
    return clustered_fit(
        design=np.hstack([known, (treated - NUMERATOR)[:, None] * effects]),
        outcome=outcome,
        weights=NUMERATOR / np.where(treated == 1.0, chances[:, 1], chances[:, 0]),
        person=person,
        names=[f"control {place}" for place in range(known.shape[1])] + called,
    ).last(count)
