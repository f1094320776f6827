"""Outcomes that never come, or come late: which rules keep the truth plausible, and which do not."""

import numpy as np
import pytest

from omg_cmdp.contexts import keyed
from omg_cmdp.theory.ceiling.counted import CountedRows
from omg_cmdp.theory.ceiling.sets import Observed

DELTA, RUNS, OUTCOMES, MEAN = 0.02, 16, 120, 0.5
ANY = keyed("any")


def leaves_after_two_failures(rewards, rng):
    """People leave after two failures; what they would have had is never told. That depends on the past alone."""
    for episode in rewards.reshape(-1, 5):
        failures = np.cumsum(episode == 0.0)
        yield from episode[: int(np.searchsorted(failures, 2)) + 1]


def failures_are_not_told(rewards, rng):
    """Two of three failures are kept secret, so that it depends on an outcome whether it is missing."""
    yield from rewards[(rewards == 1.0) | (rng.random(len(rewards)) < 1.0 / 3.0)]


def late_at_random(rewards, rng):
    """Each outcome has a delay that was drawn before it was known."""
    yield from rewards[np.argsort(np.arange(len(rewards)) + rng.geometric(0.05, len(rewards)), kind="stable")]


def late_after_bad_news(rewards, rng):
    """The next outcome waits if the last that came was bad: it depends on what has arrived, and on nothing else."""
    queue = list(rewards)
    while queue:
        first = queue.pop(0)
        yield first
        if first == 0.0 and len(queue) > 3:
            queue.insert(3, queue.pop(0))


def good_news_first(rewards, rng):
    """Failures come sixty outcomes late."""
    yield from rewards[np.argsort(np.arange(len(rewards)) + 60.0 * (rewards == 0.0), kind="stable")]


def share_lost(arrivals, seed):
    """Return in which share of the runs the true mean was not plausible at some time."""
    lost = 0
    for number in range(RUNS):
        rng = np.random.default_rng([seed, number])
        versions = CountedRows(lambda context: 0, 1, np.ones((1, 1, 2)), DELTA, of_rewards=True)
        for reward in arrivals((rng.random(OUTCOMES) < MEAN).astype(float), rng):
            versions.learn(ANY, Observed(np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.array([reward])))
            plausible = versions.plausible(ANY)
            if not plausible.low[0, 0, 0] <= MEAN <= plausible.high[0, 0, 0]:
                lost += 1
                break
    return lost / RUNS


@pytest.mark.parametrize("arrivals", [leaves_after_two_failures, late_at_random, late_after_bad_news])
def test_what_depends_on_the_past_alone_keeps_the_truth(seed, arrivals):
    assert share_lost(arrivals, seed) <= 2.0 / RUNS  # more has a chance of .003 at most


@pytest.mark.parametrize("arrivals", [failures_are_not_told, good_news_first])
def test_what_depends_on_the_missing_outcome_loses_the_truth(seed, arrivals):
    assert share_lost(arrivals, seed) > 0.5
