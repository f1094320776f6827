"""Intervals cover, and estimates without support say so."""

import numpy as np
import pytest

from library.tests.logs.tables import changed, random_log
from omg_cmdp import ContextualMDP, Space, policy_value
from omg_cmdp.logs import Log, Support, doubly_robust, importance_sampling
from omg_cmdp.logs.off_policy.estimate import estimated


class Chain(ContextualMDP):
    """A small random MDP, whatever the context."""

    def __init__(self, rng, horizon=8):
        self.space = Space(states=3, actions=2, horizon=horizon)
        self.tables = {"transitions": rng.dirichlet(np.ones(3), (3, 2)), "rewards": rng.random((3, 2))}

    def mdp(self, context):
        return self.space.mdp(**self.tables)


def chain_log(rng, behaviour, count=100):
    """Return an MDP, and a function that draws logs of it."""
    chain = Chain(rng)
    return chain.mdp("c"), lambda: Log(chain.space, [chain.sample("c", behaviour, rng) for _ in range(count)])


def test_intervals_cover_the_exact_value(rng):
    """Nominally 95 %, with a wrong model too."""
    behaviour, target = np.full((8, 3, 2), 0.5), np.tile([0.6, 0.4], (8, 3, 1))
    truth, draw = chain_log(rng, behaviour)
    wrong = truth.space.mdp(transitions=truth.transitions, rewards=1.0 - truth.rewards)
    exact, covered = policy_value(truth, target), []
    for log in (draw() for _ in range(30)):
        made = [doubly_robust(log, lambda c: target, lambda c: wrong)]
        made += [importance_sampling(log, lambda c: target, weighted=weighted) for weighted in (False, True)]
        covered.append([low <= exact <= high and high - low < 4.0 for low, high in (e.interval() for e in made)])
    assert np.mean(covered, axis=0).min() >= 0.8


def test_a_policy_that_was_hardly_played_is_flagged(rng):
    """Always the same of two actions, eight times, in a log that draws them: a product of ratios is 2⁸ or 0."""
    never = np.tile([1.0, 0.0], (8, 3, 1))
    _, draw = chain_log(rng, np.full((8, 3, 2), 0.5))
    log = draw()
    plain = importance_sampling(log, lambda c: never)
    assert plain.support is Support.FEW
    assert plain.interval() == (0.0, 8.0)


def skewed(rng, support_of=400):
    contributions = rng.exponential(size=support_of)
    return estimated(float(contributions.mean()), contributions, np.ones((support_of, 1)), (0.0, 50.0))


def test_an_interval_follows_the_skewness(rng):
    estimate = skewed(rng)
    low, high = estimate.interval()
    assert high - estimate.value > estimate.value - low > 1.9 * estimate.standard_error


def test_intervals_are_deterministic_and_nested(rng):
    estimate = skewed(rng)
    assert estimate.interval(seed=1) == estimate.interval(seed=1) != estimate.interval(seed=2)
    (a, b), (c, d) = estimate.interval(0.5), estimate.interval(0.99)
    assert 0.0 <= c < a < estimate.value < b < d
    for level in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="`level` must"):
            estimate.interval(level)


def test_equal_episodes_leave_a_point():
    ones = estimated(1.0, np.full(50, 1.0), np.ones((50, 1)), (0.0, 2.0))
    assert ones.interval() == (1.0, 1.0)


def test_wrong_propensities_are_seen(rng):
    """Halved, they double every weight."""
    behaviour = np.full((8, 3, 2), 0.5)
    _, draw = chain_log(rng, behaviour)
    log = draw()
    wrong = Log(log.space, [changed(e, propensities=np.append(0.25, e.propensities[1:])) for e in log.episodes])
    assert importance_sampling(log, lambda c: behaviour).support is Support.GOOD
    assert importance_sampling(wrong, lambda c: behaviour).support is Support.UNBALANCED


def test_arguments_of_the_wrong_kind_are_refused(rng):
    whole = {"log": random_log(rng), "policy": lambda c: np.full((3, 2, 2), 0.5), "model": lambda c: None}
    for name in whole:
        with pytest.raises(ValueError, match=f"`{name}` must be a "):
            doubly_robust(**whole | {name: 3})
