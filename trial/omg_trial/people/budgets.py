"""Weekly budgets: an action's probabilities of a week sum to its budget at most, spread over the week.

Let a week have N decisions, m the budget of an action a, and p_j its probability in the j-th decision that is drawn.
In the k-th it is at most

    u_k = m·min(k, N)/N - Σ_{j<k} p_j:

every decision pays m/N into an account, and a probability is taken out of it. Where a policy wants less than that, the
rest is saved for later in the week. Three things follow.

- *The budget holds.* p_k ≤ u_k gives Σ_{j≤k} p_j ≤ m·min(k, N)/N, whatever was drawn. Each p_j is fixed before its
  draw, so a is drawn E[Σ_{j≤k} p_j] ≤ m·k/N times on average in the first k decisions, and at most m times in a week.
- *The floor holds.* For k ≤ N the sum before is at most m·(k - 1)/N, and so u_k ≥ m/N. A trial file is refused unless
  m/N ≥ floor. An action keeps the floor in all N decisions, and those without a budget only gain.
- *Nothing is eaten on Monday*: by the k-th decision at most the k-th part of the week's budget is spent.

In decisions beyond the N that the file announces, u_k may be below the floor; the action is then closed.

A least number l of an action is kept alike: its probability is raised to l·min(k, N)/N - Σ_{j<k} p_j, as far as the
floors of the others allow.
"""

from __future__ import annotations

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_trial.people.participants import WeekAccount
from omg_trial.trial_file.between import Limits

ROUNDING = 1e-9


def budget_bounds(limits: Limits, account: WeekAccount, row: FloatArray, floor: float) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest probability (A,) of each action in the next decision.

    Parameters
    ----------
    limits : Limits
        Budgets and least numbers of a week.
    account : WeekAccount
        What the week has had so far.
    row : array (A,)
        The policy's probabilities. Fixed ones may be below the floor; they are not raised.
    floor : float
        The least probability of an open action. One whose budget is below it is closed: both bounds are 0.

    Examples
    --------
    >>> limits = Limits(most={}, least={}, mean={1: 2.0}, decisions_per_week=8)
    >>> budget_bounds(limits, WeekAccount("", 2, (1.7, 0.3), (0, 0)), np.array([0.2, 0.8]), 0.1)[1].tolist()
    [1.0, 0.45]
    """
    floors, upper = np.minimum(row, floor), np.ones(len(row))
    lower, week = floors.copy(), limits.decisions_per_week or 1
    share = min(account.drawn + 1, week) / week
    spent = account.spent or (0.0,) * len(row)
    for action, mean in limits.mean.items():
        budget = mean * share - spent[action]
        upper[action] = max(budget, floors[action]) if budget >= floor * (1.0 - ROUNDING) - ROUNDING else 0.0
        lower[action] = min(lower[action], upper[action])
    for action, least in limits.least.items():
        lower[action] = min(max(lower[action], least * share - spent[action]), upper[action])
    raised = lower - np.minimum(floors, lower)
    if (needed := lower.sum()) > 1.0 and raised.any():  # floors of 1/A may be above it by rounding
        lower -= raised * (needed - 1.0) / raised.sum()
    return lower, upper


def keep_within(row: FloatArray, lower: FloatArray, upper: FloatArray, instead: FloatArray) -> FloatArray:
    """Return probabilities between two bounds: `row` itself if it is.

    What is above its bound goes to the actions of `instead`, in its proportions; what is needed below a bound comes
    from all others, in proportion to what they have above theirs.

    Parameters
    ----------
    row, lower, upper : array (A,)
        Probabilities and their bounds.
    instead : array (A,)
        Weights, 0 for every action that has a bound above.

    Examples
    --------
    >>> keep_within(np.array([0.2, 0.8]), np.array([0.1, 0.1]), np.array([1.0, 0.3]), np.array([1.0, 0.0])).tolist()
    [0.7, 0.3]
    """
    if ((lower <= row) & (row <= upper)).all():
        return row
    kept = np.clip(row, lower, upper)
    rest = 1.0 - kept.sum()
    if rest >= 0.0:
        return np.asarray(kept + rest * instead / instead.sum())
    above = kept - lower
    if not above.any():  # the bounds below sum to 1, but for rounding
        return np.asarray(kept / kept.sum())
    return np.asarray(np.maximum(kept + rest * above / above.sum(), 0.0))  # rounding may go below 0
