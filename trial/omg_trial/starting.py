"""What a store must be, before a desk goes on from what it holds or founds a trial there."""

from __future__ import annotations

from omg_trial.keys.ring import KeyFileError
from omg_trial.log.database import Database
from omg_trial.state import State
from omg_trial.trial_file.trial import Trial


def check_store(trial: Trial, state: State, store: Database, new: bool | None) -> None:
    """Refuse a store of another trial, one without its key file, and one that is empty or not against the wish."""
    if new is not None and new != (not state.number):
        found = "has a trial already: without --new it goes on" if new else "is empty: with --new a trial is founded"
        raise ValueError(f"the database {found}; or name another one")
    if state.number and state.trial != trial.digest:
        advice = "use the file that the trial began with, or another database"
        raise ValueError(f"the database does not belong to the trial {trial.name!r} as its file is now; {advice}")
    if state.number and not state.secret:
        raise KeyFileError(f"there is no key file {store.keys.path or ''}: give the one of this log (--keys)")
