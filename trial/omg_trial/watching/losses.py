"""What the trial has lost at most against the best policy, with 95 % confidence, and how much of it is settled.

The policy of an episode is in its event "opened"; when the episode is closed, the models that its predecessors have not
refuted say what that policy can have cost (docs/ceiling.md). Any time will do for that, as the truth is plausible at
all times. An episode in which the app did something else, or which began in an impossible state, counts as if all of it
had been lost. Outcomes that come after an episode was closed, and rewards that the trial file puts in the place of
missing ones, are not learned from.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import threading
from typing import NamedTuple

import numpy as np

from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.theory.ceiling.ceiling import DELTA, RegretCeiling
from omg_cmdp.validation import FloatArray
from omg_trial.desk import Desk
from omg_trial.log.database import DamagedLogError
from omg_trial.log.events import Event
from omg_trial.rules import moment
from omg_trial.state import State
from omg_trial.trial_file.trial import Trial
from omg_trial.watching.process import Process
from omg_trial.watching.view import WEEK, TrialView

MOST_READ = 2000
"""The number of events that are read from the log between two batches of calls."""


class Losses(NamedTuple):
    """What was lost at most, in the units of the rewards."""

    episodes: int
    """Number of closed episodes that were judged."""
    total: float
    week: float
    """What was lost at most in the last seven days."""
    settled: float
    """The share of the decisions of the last ten episodes on which all plausible models agree."""
    reason: str
    """Why nothing can be said; empty if something can."""

    def text(self) -> str:
        """Return it as a sentence."""
        if self.reason:
            return f"What was lost against the best policy cannot be bounded: {self.reason}."
        return (
            f"With {1.0 - DELTA:.0%} confidence the {self.episodes} closed episodes lost at most {self.total:.3g} "
            f"against the best policy, {self.week:.3g} of it in the last seven days; {self.settled:.0%} of the "
            "decisions are settled."
        )


class LossWatch:
    """Follow the log of a trial from its first event on, and bound what its episodes have lost."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.read, self._lock = trial, 0, threading.Lock()
        self._begin()

    def _begin(self) -> None:
        # The oracles beneath a floor: the best policy is the best without it.
        rewards, dynamics = self.trial.oracles()
        told = {"reward_oracle": rewards, "dynamics_oracle": dynamics}
        self._ceiling = RegretCeiling(self.trial.agent(), delta=DELTA, **told)
        self._open: dict[int, FloatArray] = {}
        self._closed: list[tuple[int, datetime.datetime]] = []
        self._judged: list[tuple[datetime.datetime, float, float]] = []
        """When each episode was closed, what it lost at most, and the share of it that is settled."""
        self._withdrawn = 0

    def collect(self, desk: Desk) -> None:
        """Read some more events; the desk must not be used by another thread meanwhile."""
        with self._lock:
            for event in itertools.islice(desk.store.read(self.read), MOST_READ):
                desk.check_written(event)
                self.follow(event)

    def follow(self, event: Event) -> Event:
        """Take in the policy or the end of an episode; return the event."""
        self.read = event.number
        if event.kind == "opened" and event.body.get("policy") is not None:
            self._open[event.number] = np.array(event.body["policy"])
        elif event.kind == "closed":
            self._closed.append((event.body["episode"], moment(event.time)))
        return event

    def conclude(self, state: State) -> Losses:
        """Return what was lost at most when the last event had passed, after which the trial is in `state`."""
        last = moment(state.time)
        return self.look(TrialView.of(self.trial, state, last, Process(lambda: last)))

    def look(self, view: TrialView) -> Losses:
        """Judge the episodes that were closed since, and return what was lost at most."""
        with self._lock:  # the page, the metrics and the checks may look at the same time
            left = len(view.state.withdrawn) + 2 * len(view.state.erased)  # who has withdrawn may be erased later
            if left > self._withdrawn and self._judged:
                self.read = 0  # as if they had never been there: the log is read again
                self._begin()
            self._withdrawn = left
            waiting, self._closed = self._closed, []
            for number, time in waiting:
                if number > view.state.number:  # a later view has read of it already, and has not looked yet
                    self._closed.append((number, time))
                    continue
                policy, record = self._open.pop(number, None), view.state.episodes.get(number)
                if record is not None and not record.context:
                    record = None  # erased after this copy of the log was made: as if they had never been there
                example = None if record is None else record.example(None)
                if policy is not None and record is not None and example is not None:
                    path = example.trajectory(view.trial.context(record.context))
                    followed = all(each.probability is not None for each in record.choices.values())
                    self._judged.append((time, *self._judge(policy, path, followed)))
            return self._summary(view.now)

    def _judge(self, policy: FloatArray, path: Trajectory, followed: bool) -> tuple[float, float]:
        """Return what an episode lost at most, and the share of it that is settled; learn from it."""
        low, high = self.trial.reward_range
        most, settled = self.trial.space.horizon * (high - low), 0.0
        # With rules nothing can be said, and nothing is computed. No model knows an episode that began elsewhere.
        if not self.trial.steps_may_differ and self.trial.space.start[path.states[0]]:
            if followed:
                lost = self._ceiling.loss(path.context, policy)
                most, settled = min(most, lost.most), lost.settled
            self._ceiling.learn(path)
        return most, settled

    def _summary(self, now: datetime.datetime) -> Losses:
        reason = self._ceiling.reason
        if self.trial.steps_may_differ:
            reason = "rules or new models may change what is played within an episode"
        if reason:
            return Losses(len(self._judged), math.inf, math.inf, 0.0, reason)
        total = sum(most for _, most, _ in self._judged)
        week = sum(most for time, most, _ in self._judged if time > now - WEEK)
        last = [settled for _, _, settled in self._judged[-10:]]
        return Losses(len(self._judged), total, week, sum(last) / max(len(last), 1), "")


def watch(desk: Desk, process: Process) -> TrialView:
    """Return a view of the trial, with what was lost at most as far as the log has been read."""
    if process.losses is None:
        process.losses = LossWatch(desk.trial)
    if not desk.lost:  # else the log may have an event that the desk does not know
        with contextlib.suppress(DamagedLogError):  # the check "store" says so
            process.losses.collect(desk)
    process.damage = desk.damage
    return TrialView.of(desk.trial, desk.state, desk.clock(), process)


def losses(view: TrialView) -> Losses | None:
    """Return what was lost at most; None if nobody follows the log."""
    return None if view.process.losses is None else view.process.losses.look(view)
