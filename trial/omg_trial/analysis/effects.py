"""What a trial has shown, from its table of decisions: effects of actions, and what the policies have earned.

Everything is by intention: what counts is the action that was drawn, whose probability is exact. Decisions at which
nothing was drawn (not available, outside the window) say nothing about effects. Rewards that never came are left out,
unless the trial file says what stands for them; people who have withdrawn are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.validation import FloatArray
from omg_trial.analysis.clustered import ClusteredEstimate, clustered_fit
from omg_trial.analysis.excursion import excursion_effect
from omg_trial.trial_file.trial import Trial

if TYPE_CHECKING:
    import pandas


def treatment_effect(
    trial: Trial, table: pandas.DataFrame, action: str, *, reference: str | None = None, by: str | None = None
) -> ClusteredEstimate:
    """Estimate how much an action changes the reward of its step, compared with another one.

    Decisions count at which both could be drawn. The state is a control variable.

    Parameters
    ----------
    trial : Trial
        The trial.
    table : DataFrame
        Its decisions, as `omg_trial.export.decisions` returns them.
    action : str
        The treatment.
    reference : str, optional
        What it is compared with; the first action of the trial file if left out.
    by : str, optional
        A column of texts: an effect for each of its values.

    Returns
    -------
    ClusteredEstimate

    Examples
    --------
    >>> import pandas
    >>> from omg_trial.trial_file import EXAMPLE
    >>> generator = np.random.default_rng(0)
    >>> drawn = generator.choice(["nothing", "reminder"], 400)
    >>> table = pandas.DataFrame({
    ...     "person": np.repeat([f"p{number}" for number in range(20)], 20), "drawn": drawn, "state": "took it",
    ...     "probability_nothing": 0.5, "probability_reminder": 0.5, "withdrawn": False,
    ...     "reward": 0.3 + 0.4 * (drawn == "reminder"),
    ... })
    >>> effect = treatment_effect(Trial.parse(EXAMPLE), table, "reminder")
    >>> effect.names, effect.values.round(6).tolist()
    (('reminder',), [0.4])
    """
    other = trial.actions[0] if reference is None else reference
    if len({action, other} & set(trial.actions)) < 2:
        raise ValueError(f"`action` and `reference` must be two of {', '.join(trial.actions)}")
    kept = counted_rows(trial, table)
    columns = [f"probability_{other}", f"probability_{action}"]
    kept = kept[kept["drawn"].isin([action, other]) & (kept[columns] > 0.0).all(axis=1)]
    groups = ["all"] if by is None else sorted(kept[by].dropna().unique())
    kept = kept if by is None else kept[kept[by].notna()]
    moderators = _indicators(np.full(len(kept), "all") if by is None else kept[by], groups)
    states = _indicators(kept["state"], trial.states)
    return excursion_effect(
        outcome=kept["reward"],
        treatment=kept["drawn"] == action,
        probabilities=kept[columns],
        person=kept["person"],
        moderators=moderators,
        controls=np.hstack([moderators, states[:, 1:]]) if by != "state" else moderators,
        names=[action] if by is None else [f"{action}, {by}: {value}" for value in groups],
    )


def earned(trial: Trial, table: pandas.DataFrame) -> ClusteredEstimate:
    """Estimate the mean reward of a decision by the fixed probabilities of the trial file, and what learning adds.

    Both are from the same people: those whose probabilities were learned, if there is a control group. A reward is
    weighted by the product of π'/p over the steps of its episode so far, where p is the probability with which the
    action was drawn, and π' the fixed one within the same rules: among the actions that could be drawn, as far as
    weekly budgets allow, and 1 where nothing was drawn. It is about episodes that begin where they have begun.

    Parameters
    ----------
    trial, table
        As in `treatment_effect`.

    Returns
    -------
    ClusteredEstimate
        "fixed probabilities", and "gain by learning" over them.

    Examples
    --------
    >>> import pandas
    >>> from omg_trial.trial_file import EXAMPLE
    >>> known = {"state": "took it", "probability_nothing": 0.2, "probability_reminder": 0.8, "withdrawn": False}
    >>> drawn = ["reminder", "reminder", "nothing", "reminder", "reminder"] * 4
    >>> table = pandas.DataFrame({
    ...     "person": [f"p{number}" for number in range(20)], "episode": range(20), "step": 0, "drawn": drawn, **known,
    ...     "reward": [float(name == "reminder") for name in drawn],
    ... })
    >>> earned(Trial.parse(EXAMPLE), table).values.round(6).tolist()
    [0.5, 0.3]
    """
    learning = table[table["arm"] != "control"] if "arm" in table else table
    kept = counted_rows(trial, learning.assign(weight=fixed_weights(trial, learning)))
    ones, size = np.ones(len(kept)), len(kept)
    # The rows stand there twice, as they were played and as they would have been: errors know that they are the same.
    return clustered_fit(
        design=np.stack([np.ones(2 * size), np.repeat([0.0, 1.0], size)], axis=1),
        outcome=np.tile(kept["reward"], 2),
        weights=np.concatenate([kept["weight"], ones]),
        person=np.tile(kept["person"], 2),
        names=["fixed probabilities", "gain by learning"],
    )


def arm_difference(trial: Trial, table: pandas.DataFrame) -> ClusteredEstimate:
    """Estimate the mean reward of a decision in the control group, and how much more there is in the learning arm.

    Parameters
    ----------
    trial, table
        As in `treatment_effect`; the table has a column `arm` with both arms.

    Returns
    -------
    ClusteredEstimate
        "control arm", and "learning arm less control arm".

    Examples
    --------
    >>> import pandas
    >>> from omg_trial.trial_file import EXAMPLE
    >>> table = pandas.DataFrame({
    ...     "person": list("abcd"), "arm": ["control", "learning"] * 2, "withdrawn": False,
    ...     "reward": [0.2, 0.9, 0.4, 0.7],
    ... })
    >>> arm_difference(Trial.parse(EXAMPLE), table).values.round(6).tolist()
    [0.3, 0.5]
    """
    kept = counted_rows(trial, table)
    learning = (kept["arm"] != "control").to_numpy(np.float64)
    return clustered_fit(
        design=np.stack([np.ones(len(kept)), learning], axis=1),
        outcome=kept["reward"],
        weights=np.ones(len(kept)),
        person=kept["person"],
        names=["control arm", "learning arm less control arm"],
    )


def counted_rows(trial: Trial, table: pandas.DataFrame) -> pandas.DataFrame:
    """Return the decisions that count: of people who have not withdrawn, with a reward."""
    kept = table[~table["withdrawn"].astype(bool)]
    if trial.missing_reward is not None:
        kept = kept.assign(reward=kept["reward"].fillna(trial.missing_reward))
    return kept[kept["reward"].notna()]


def fixed_weights(trial: Trial, table: pandas.DataFrame) -> FloatArray:
    """Return how much more probable an episode is by the fixed probabilities, within the rules, up to each decision."""
    chances = table[[f"probability_{name}" for name in trial.actions]].to_numpy(np.float64)
    names = table["drawn"].fillna("")
    drawn = np.array([trial.actions.index(name) if name in trial.actions else 0 for name in names], dtype=int)
    fixed = fixed_probabilities(trial, chances > 0.0)
    rows = np.arange(len(table))
    known = np.isfinite(chances).all(axis=1) & np.isfinite(fixed).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(known, fixed[rows, drawn] / chances[rows, drawn], 1.0)
    ordered = table.assign(ratio=ratios).sort_values(["episode", "step"])
    return np.asarray(ordered.groupby("episode")["ratio"].cumprod().reindex(table.index), dtype=np.float64)


def fixed_probabilities(trial: Trial, possible: NDArray[np.bool_]) -> FloatArray:
    """Return the fixed probabilities among the actions that are possible, (..., A), as the rules let them be played.

    A weekly budget of m in N decisions lowers one that is above m/N to m/N, every time; the actions without a budget
    share the rest.
    """
    budgets, week = trial.limits.mean, trial.limits.decisions_per_week or 1
    most = np.array([budgets.get(action, np.inf) / week for action in range(len(trial.actions))])
    lowered, free = np.minimum(trial.fallback, most), np.isinf(most)
    fixed = np.where(free, lowered / max(lowered[free].sum(), 1e-300) * (1.0 - lowered[~free].sum()), lowered)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(possible, fixed, 0.0) / (possible * fixed).sum(axis=-1, keepdims=True))


def _indicators(values: ArrayLike, groups: ArrayLike) -> FloatArray:
    equal = np.asarray(values, dtype=object)[:, None] == np.asarray(groups, dtype=object)[None, :]
    return np.asarray(equal, dtype=np.float64)
