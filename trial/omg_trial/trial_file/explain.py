"""A trial file in plain sentences, for those who have to agree to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omg_trial.trial_file.table import FileTable
from omg_trial.trial_file.trial import Trial


def explain_trial(trial: Trial) -> list[str]:
    """Return each key of a trial file with its value and its meaning, and then what follows from them together.

    Thresholds of checks and alerts, which may change during the trial, are left out.

    Parameters
    ----------
    trial : Trial
        The trial of the file.

    Examples
    --------
    >>> from omg_trial.trial_file import EXAMPLE
    >>> explain_trial(Trial.parse(EXAMPLE))[:2]
    ['trial.name = adherence. Name of the trial.', 'trial.horizon = 2. Decisions in an episode.']
    """
    tables = [each for each in trial.file if each[0] not in ("watch", "alerts")]
    keys = [sentence for name, table in tables for sentence in _explain_keys(name, table)]
    return [*keys, *_explain_together(trial)]


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number of things in words; `many` is needed where "s" is not enough.

    >>> counted(1, "policy", "policies"), counted(0, "model")
    ('1 policy', '0 models')
    """
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _explain_keys(place: str, value: Any, meaning: str | None = None) -> Iterator[str]:
    """Yield the keys, table by table."""
    if isinstance(value, FileTable):
        for name, entry in value:
            yield from _explain_keys(f"{place}.{name}", entry, type(value).model_fields[name].description)
    elif isinstance(value, dict) and any(isinstance(each, FileTable) for each in value.values()):
        for name, entry in value.items():
            yield from _explain_keys(f"{place}.{name}", entry)
    else:
        yield " ".join(f"{place} = {_in_words(value)}. {meaning or ''}".split())


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(each)}" for name, each in value.items()) or "none"
    if isinstance(value, tuple):
        return ", ".join(map(_in_words, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _explain_together(trial: Trial) -> Iterator[str]:
    if not trial.floor.probability:
        yield "Probabilities have no floor: some may be too small for an analysis afterwards."
    fixed = trial.space.horizon * (trial.budgets.costs * trial.fixed_policy()[0]).sum(axis=2).max(axis=1)
    for name, most, cost in zip(trial.budgets.names, trial.budgets.most, fixed, strict=True):
        if cost > most:
            yield f"The fixed probabilities, for the control group and without a plan, may cost {cost:g} {name}."
    week = trial.limits.decisions_per_week or 1
    for action, most in trial.limits.mean.items():
        if (wanted := float(trial.fallback[action]) * week) > most + 1e-9:
            name = trial.actions[action]
            yield f"The fixed probabilities would want {wanted:g} times {name} in a week: they are lowered."
    if trial.grants_allowances:
        yield "An app may go on with an episode without a network until the person's week ends, by an allowance."
    elif trial.steps_may_differ:
        yield "An app needs a network for every decision, because rules may change it."
        if trial.offline:
            beside = {
                "[window]": trial.window,
                "`least_per_week`": trial.limits.least,
                '`replan = "step"`': trial.replan,
                "weekly limits without `allowances`": trial.limits.any and not trial.allowances,
            }
            yield f"`offline` has no effect beside {', '.join(name for name, given in beside.items() if given)}."
    elif trial.offline:
        yield "An app may go on with an episode without a network: it has all actions from the beginning."
    else:
        yield "An app needs a network for every decision; nobody is told a draw before it is made."
