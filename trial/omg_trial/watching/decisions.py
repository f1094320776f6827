"""Checks of what was decided: probabilities, actions, the burden of each person, fallbacks."""

from __future__ import annotations

import collections

import numpy as np

from omg_trial.episodes import DecidedStep
from omg_trial.people.participants import week_of
from omg_trial.trial_file.explain import counted
from omg_trial.watching.verdicts import GREEN, RED, SHOWN, Verdict, share_within, yellow_if
from omg_trial.watching.view import WEEK, TrialView

CLIPPED = 0.01
"""A plan with at most this probability of an action leaves it to the floor."""
SURPRISE = 15.0
"""Minus the logarithm of the probability of draws that are not believed: one in three million."""


def clipped_probabilities(view: TrialView) -> Verdict:
    """Look for people whose last decisions were all left to the floor."""
    people, limit = view.by_person(view.steps), view.trial.watch.streak
    long = sum(_all_clipped(view, steps, limit) for steps in people.values())
    message = f"{long} of {len(people)} people have clipped probabilities in their last {limit} decisions"
    return yellow_if(long > 0, message)


def _all_clipped(view: TrialView, steps: list[DecidedStep], limit: int) -> bool:
    """Return whether in the last decisions of a person only the floor explored."""
    floor, admissible, streak = view.trial.floor, view.trial.space.admissible, 0
    for choice in (each.choice for each in reversed(steps)):
        rest = float(floor.rest[choice.state, 0])
        planned = choice.source == "plan" and not choice.rules and rest >= 1e-9 and admissible[choice.state].sum() > 1
        if not planned or choice.probability is None or choice.action is None:
            continue
        chance = (choice.probability - floor.least[choice.state, choice.action]) / rest
        if CLIPPED < chance < 1.0 - CLIPPED:
            return False
        streak += 1
        if streak == limit:
            return True
    return False


def shares_of_actions(view: TrialView) -> Verdict:
    """Compare how often each action was taken with the least share, for all and for each."""
    watch, actions = view.trial.watch, view.trial.actions
    whole = _action_shares(view, view.week)
    each = [
        min(_action_shares(view, steps).values(), default=1.0)
        for steps in view.by_person(view.week).values()
        if len(steps) >= watch.streak
    ]
    few = sum(share < watch.least_share for share in each)
    seldom = len(view.week) >= watch.streak and min(whole.values(), default=1.0) < watch.least_share
    shown = ", ".join(f"{actions[action]} {share:.0%}" for action, share in whole.items()) or "no decisions"
    rule = f"; below {watch.least_share:.0%} for {few} of {len(each)} people with {watch.streak} decisions"
    return yellow_if(seldom or few > 0, f"shares of actions where they are admissible: {shown}{rule}")


def _action_shares(view: TrialView, steps: list[DecidedStep]) -> dict[int, float]:
    """Return how often each action was taken where it could be."""
    admissible = view.trial.space.admissible
    could, drawn = np.zeros(admissible.shape[1], dtype=int), [each.choice for each in steps if each.choice.available]
    for choice in drawn:
        could += admissible[choice.state]
        could[list(choice.closed)] -= 1
    taken = collections.Counter(choice.action for choice in drawn)
    return {action: taken[action] / int(count) for action, count in enumerate(could) if count}


def burden(view: TrialView) -> Verdict:
    """Compare each person's weeks with the most and the least that the trial file allows."""
    limits = view.trial.limits
    if not limits.any:
        return GREEN, "the trial file sets no limits"
    above = below = 0
    for person in view.state.people.values():
        this, last = (person.account(week_of(person.local(now))).taken for now in (view.now, view.now - WEEK))
        above += any(this.count(action) > most for action, most in limits.most.items())
        whole = len(last) >= (limits.decisions_per_week or 0)
        below += whole and any(last.count(action) < least for action, least in limits.least.items())
    people = counted(above, "person", "people")
    message = f"{people} had an action more often than allowed this week, {below} had one too seldom last week"
    return (RED, message) if above else yellow_if(below > 0, message)


def window(view: TrialView) -> Verdict:
    """Count decisions that were asked for outside the window."""
    those = ["window" in each.choice.rules for each in view.week]
    return share_within(those, "asked for outside the window", view.trial.watch.outside)


def consent(view: TrialView) -> Verdict:
    """Count decisions that were asked for outside a person's consent, and refused."""
    count = view.process.lately("consent")
    decisions = counted(count, "decision was", "decisions were")
    return yellow_if(count > 0, f"{decisions} asked for outside the consent in the last hour, and refused")


def device_clocks(view: TrialView) -> Verdict:
    """Look for people whose device shows another time than the service."""
    most = view.trial.watch.drift_seconds
    off = {each.person for each in view.week if each.choice.drift is not None and abs(each.choice.drift) > most}
    devices = counted(len(off), "person's device is", "people's devices are")
    return yellow_if(bool(off), f"{devices} off by more than {most:g} seconds")


def fallbacks(view: TrialView) -> Verdict:
    """Count decisions that were not made by a fresh plan, by cause."""
    those = [each.choice for each in view.week if each.choice.cause is not None]
    causes = collections.Counter(f"{choice.source} ({choice.cause})" for choice in those)
    shown = ", ".join(f"{count} by {cause}" for cause, count in causes.most_common(SHOWN)) or "none"
    count, all_of_them = len(those), len(view.week)
    message = f"{count} of {all_of_them} decisions without a fresh plan: {shown}"
    if 2 * count > all_of_them:
        return RED, message
    return yellow_if(count > view.trial.watch.fallbacks * all_of_them, message)


def deviations(view: TrialView) -> Verdict:
    """Count actions of the app that were not the ones drawn: their probability is unknown."""
    those = [each.choice.available and each.choice.probability is None for each in view.week]
    return share_within(those, "carried out in another way than drawn", view.trial.watch.deviations)


def draws(view: TrialView) -> Verdict:
    """Compare what was drawn with its probabilities: whoever lets a draw choose what is decided at all is seen here.

    That is an app that opens, looks at the draws and closes, or says that somebody is not available, until it likes
    them. Given all before, 1{a is drawn} - p_a has mean 0; by Freedman's inequality their sum leaves, if the sum of
    p_a·(1 - p_a) is V, the interval ±(L/3 + √(L²/9 + 2·V·L)) with a probability of at most 2·exp(-L).
    """
    made = [each.choice for each in view.steps if each.choice.probabilities and each.choice.probability is not None]
    if not made:
        return GREEN, "nothing was drawn yet"
    chances = np.array([choice.probabilities for choice in made])
    taken = np.array([choice.action for choice in made])[:, None] == np.arange(chances.shape[1])
    more, spread = (taken - chances).sum(axis=0), (chances * (1.0 - chances)).sum(axis=0)
    wide = SURPRISE / 3.0 + np.sqrt(SURPRISE**2 / 9.0 + 2.0 * spread * SURPRISE)
    counts = zip(view.trial.actions, taken.sum(axis=0), chances.sum(axis=0), strict=True)
    shown = ", ".join(f"{name} {count} times ({expected:.1f} expected)" for name, count, expected in counts)
    return RED if (abs(more) > wide).any() else GREEN, f"in {counted(len(made), 'draw')}: {shown}"
