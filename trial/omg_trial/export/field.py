"""Tables for the analyses of the field: MRTAnalysis (R) and lifejacket (Python). Both are about one treatment or none.

Treatment is 1 if the action that was drawn is one of `treatments`; its probability is the sum of theirs. People who
have withdrawn are left out.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.validation import instance_of
from omg_trial.export.decisions import decisions, write_table
from omg_trial.log.events import Event
from omg_trial.trial_file.trial import Trial

if TYPE_CHECKING:
    import pandas


def mrt_table(trial: Trial, table: pandas.DataFrame, treatments: Collection[str] = ()) -> pandas.DataFrame:
    """Return the table that `wcls` of MRTAnalysis takes: a row for each decision point with an outcome.

    Where nothing was drawn `availability` is 0, and so it is where a rule has left no choice. There the other numbers
    mean nothing. MRTAnalysis refuses a missing outcome, so that decision points without one are left out.

    Parameters
    ----------
    trial : Trial
        The trial.
    table : DataFrame
        Its decisions, as `decisions` returns them.
    treatments : collection of str, optional
        Actions that count as treatment; all but the first one if left out.

    Returns
    -------
    DataFrame
        The columns id, decision_point (from 1, for each person), availability, rand_prob, treatment and outcome, then
        state, episode, step and the context.

    Examples
    --------
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.export import decisions
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE
    >>> desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"))
    >>> answer = desk.call("open", {"person": "p1", "context": "alone"})
    >>> answer = desk.call("decide", {"episode": 3, "step": 0, "state": "took it"})
    >>> answer = desk.call("report", {"episode": 3, "step": 0, "reward": 1.0, "next_state": "took it"})
    >>> table = mrt_table(desk.trial, decisions(desk.trial, desk.store.read()))
    >>> table[["id", "availability", "outcome"]].values.tolist()
    [['p1', 1, 1.0]]
    """
    rows = _drawn(trial, table, treatments)
    if trial.missing_reward is not None:
        rows["outcome"] = rows["outcome"].fillna(trial.missing_reward)
    more = [name for name in table if name in ("state", "episode", "step") or name.startswith("context")]
    known = rows[["id", "decision_point", "availability", "rand_prob", "treatment", "outcome"]]
    return known.join(table[more])[rows["outcome"].notna()].reset_index(drop=True)


def lifejacket_table(trial: Trial, table: pandas.DataFrame, treatments: Collection[str] = ()) -> pandas.DataFrame:
    """Return the table that `lifejacket analyze` takes: every person at every calendar time.

    A calendar time is a place in a day, by the trial's clock; there are as many of them in a day as anybody had
    decisions. Between a person's first and last decision `in_study` is 1. Where nothing was drawn in between, or no
    outcome came, policy_num is -1, which is lifejacket's mark of a fallback, and `observed` is 0: weight by it.

    Parameters
    ----------
    trial, table, treatments
        As in `mrt_table`.

    Returns
    -------
    DataFrame
        The columns user_id, calendar_t, in_study, action, action1prob, policy_num (consecutive), reward and observed.

    Examples
    --------
    >>> import pandas
    >>> from omg_trial.trial_file import EXAMPLE
    >>> known = {"withdrawn": False, "probability_nothing": 0.5, "probability_reminder": 0.5, "reward": 1.0}
    >>> days = ["2026-11-02T08:00:00+00:00", "2026-11-04T08:00:00+00:00"]
    >>> table = pandas.DataFrame({"person": "p1", "time": days, "drawn": "reminder", "version": 0, **known})
    >>> lifejacket_table(Trial.parse(EXAMPLE), table)[["calendar_t", "in_study", "policy_num"]].values.tolist()
    [[1, 1, 0], [2, 1, -1], [3, 1, 0]]
    """
    import pandas

    rows = _drawn(trial, table, treatments).sort_values("time", kind="stable")
    if rows.empty:
        raise ValueError("there is no decision yet of anybody who has stayed in the trial")
    local = pandas.to_datetime(rows["time"], utc=True, format="ISO8601").dt.tz_convert(trial.zone.key).dt.normalize()
    day = (local.dt.tz_localize(None) - local.dt.tz_localize(None).min()).dt.days
    place = rows.groupby([rows["id"], day]).cumcount()
    rows["calendar_t"] = day * int(place.max() + 1) + place + 1
    rows["observed"] = (rows["outcome"].notna() & (rows["availability"] == 1)).astype(int)
    drawn = rows["version"].where(rows["observed"] == 1)
    rows["policy_num"] = drawn.rank(method="dense") - 1
    span = rows.groupby("id")["calendar_t"].agg(["min", "max"])
    every = pandas.MultiIndex.from_product([span.index, range(1, int(rows["calendar_t"].max()) + 1)])
    whole = rows.set_index(["id", "calendar_t"]).reindex(every.set_names(["user_id", "calendar_t"])).reset_index()
    first, last = (whole["user_id"].map(span[name]) for name in ("min", "max"))
    whole["in_study"] = whole["calendar_t"].between(first, last)
    missing = {"treatment": 0, "rand_prob": 0.0, "policy_num": -1, "outcome": 0.0, "observed": 0}
    names = {"treatment": "action", "rand_prob": "action1prob", "outcome": "reward"}
    found = whole[["user_id", "calendar_t", "in_study", *missing]].fillna(missing).rename(columns=names)
    return found.astype(dict.fromkeys(("in_study", "action", "policy_num", "observed"), int))


def write_field_table(
    trial: Trial, events: Iterable[Event], path: str | os.PathLike[str], form: str, treatments: Collection[str] = ()
) -> Path:
    """Write the table of `mrt_table` or `lifejacket_table`, without people who have withdrawn; return its path.

    Parameters
    ----------
    trial, events
        As in `decisions`.
    path : path
        Ends with .csv or .parquet.
    form : str
        mrt or lifejacket.
    treatments : collection of str, optional
        As in `mrt_table`.

    Examples
    --------
    >>> from omg_trial.trial_file import EXAMPLE
    >>> write_field_table(Trial.parse(EXAMPLE), [], "table.csv", "mtr")
    Traceback (most recent call last):
    ...
    ValueError: a table is for mrt or lifejacket, not for 'mtr'
    """
    tables = {"mrt": mrt_table, "lifejacket": lifejacket_table}
    instance_of("form", form, str)
    if form not in tables:
        raise ValueError(f"a table is for {' or '.join(tables)}, not for {form!r}")
    return write_table(tables[form](trial, decisions(trial, events), treatments), path)


def _drawn(trial: Trial, table: pandas.DataFrame, treatments: Collection[str]) -> pandas.DataFrame:
    """Return the decisions of people who have not withdrawn, in numbers."""
    instance_of("treatments", treatments, Collection)
    chosen = list(treatments) or list(trial.actions[1:])
    if strange := [each for each in chosen if each not in trial.actions]:
        raise ValueError(f"`treatments` must be among {', '.join(trial.actions)}, got {strange[0]!r}")
    kept = table[~table["withdrawn"].astype(bool)]
    chance = kept[[f"probability_{name}" for name in chosen]].sum(axis=1, skipna=False)
    choice = (chance > 0.0) & (chance < 1.0)
    return kept.assign(
        id=kept["person"],
        decision_point=kept.sort_values("time", kind="stable").groupby("person").cumcount() + 1,
        availability=choice.astype(int),
        rand_prob=np.where(choice, chance, 0.5),
        treatment=(kept["drawn"].isin(chosen) & choice).astype(int),
        outcome=kept["reward"].astype(float),
    )
