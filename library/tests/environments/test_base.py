"""What every world inherits: sampling that agrees with the tables, exact propensities, the truth kept for a while."""

import numpy as np
import pytest
from scipy import stats

from library.tests.random_mdps import random_mdp, random_policy
from omg_cmdp import ContextualMDP, Space, TabularMDP, optimal_policy
from omg_cmdp.mdp.truth import Truth

RARE = 1e-6
"""Tests of frequencies fail by chance once in a million."""


class Coins(ContextualMDP):
    """The two members that a world needs; counts how often the truth is asked for."""

    space = Space(states=2, actions=2, horizon=3)
    asked = 0

    def mdp(self, context):
        self.asked += 1
        heads = context if isinstance(context, float) else 0.5
        transitions = np.array([[[heads, 1.0 - heads], [1.0 - heads, heads]]] * 2)
        return TabularMDP(transitions=transitions, rewards=np.array([[0.2, 0.7], [1.0, 0.0]]), horizon=3)


class Fixed(ContextualMDP):
    def __init__(self, mdp):
        self.space, self._mdp = mdp.space, mdp

    def mdp(self, context):
        return self._mdp


class Scripted(np.random.Generator):
    """A generator that always says the same."""

    def __init__(self, uniform):
        super().__init__(np.random.PCG64(0))
        self.uniform = uniform

    def random(self, count):
        return np.full(count, self.uniform)


def draws(world, policy, rng, count):
    episodes = [world.sample("c", policy, rng) for _ in range(count)]
    arrays = [np.array([getattr(e, name) for e in episodes]) for name in ("states", "actions", "rewards")]
    return *arrays, np.array([e.propensities for e in episodes])


def assert_frequencies(counts, probabilities):
    """Chi-square test of `counts` (..., K) against `probabilities` (..., K), all rows together."""
    assert counts[probabilities == 0.0].sum() == 0
    expected = counts.sum(axis=-1, keepdims=True) * probabilities
    enough = expected >= 5.0  # what the approximation wants in a cell; rarer ones are left out
    statistic = ((counts - expected)[enough] ** 2 / expected[enough]).sum()
    complete = (enough | (probabilities == 0.0)).all(axis=-1)  # the last cell of the row follows from the others
    freedom = enough.sum() - (complete & enough.any(axis=-1)).sum()
    assert freedom > 0
    assert stats.chi2.sf(statistic, freedom) > RARE


def test_a_world_needs_two_members():
    world = Coins()
    policy, value = optimal_policy(world.mdp(0.9))
    assert world.optimal_value(0.9) == value
    np.testing.assert_array_equal(world.truth(0.9).best[0], policy)
    episode = world.sample(0.9, policy, np.random.default_rng(0))
    episode.check(world.space)
    assert episode.context == 0.9
    assert episode.propensities.shape == (3,)
    assert episode.length == 3


def test_a_world_without_an_mdp_cannot_be_made():
    with pytest.raises(TypeError, match="mdp"):
        type("Half", (ContextualMDP,), {"space": Coins.space})()


@pytest.mark.parametrize(
    ("space", "rule"),
    [
        (Space(states=3, actions=2, horizon=3), "3 states, 2 actions and horizon 3, as `space` says, got 2, 2 and 3"),
        (Space(states=2, actions=5, horizon=3), "2 states, 5 actions"),
        (Space(states=2, actions=2, horizon=4), "horizon 4"),
        (Space(states=2, actions=2, horizon=3, start=1), r"`start` 0\.0 at index \(0,\), as `space` says, got 1\.0"),
        (
            Space(states=2, actions=2, horizon=3, admissible=[[True, True], [True, False]]),
            r"`admissible` False at index \(1, 1\), as `space` says, got True",
        ),
    ],
)
def test_anything_other_than_the_space_says_is_refused_by_name(space, rule):
    world = Coins()
    world.space = space
    with pytest.raises(ValueError, match=f"`mdp` must return an MDP with .*{rule}"):
        world.truth(0.5)


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        (np.full((3, 2, 3), 1 / 3), r"must have shape \(3, 2, 2\)"),
        (np.full((3, 2, 2), 0.4), "must sum to 1"),
        (np.full((3, 2, 2), np.nan), "must be finite"),
    ],
)
def test_what_is_not_a_policy_is_refused(policy, rule):
    with pytest.raises(ValueError, match=f"`policy` {rule}"):
        Coins().sample(0.5, policy, np.random.default_rng(0))


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_frequencies_are_those_of_the_tables(rng, steps, masked):
    fixed = {"kernel_steps": steps, "reward_steps": steps, "masked": masked, "start_distribution": True}
    mdp = random_mdp(rng, 4, 3, 5, kernel="sparse", rewards="uniform", **fixed)
    policy = random_policy(rng, mdp)
    states, actions, rewards, _ = draws(Fixed(mdp), policy, rng, 4000)

    assert_frequencies(np.bincount(states[:, 0], minlength=4), mdp.start)
    steps_taken = np.broadcast_to(np.arange(5), actions.shape)
    taken = np.zeros((5, 4, 3))
    np.add.at(taken, (steps_taken, states[:, :-1], actions), 1)
    assert_frequencies(taken, policy)
    # Next state and reward together: given state and action they are independent.
    assert set(np.unique(rewards)) <= {0.0, 1.0}
    outcomes = np.zeros((5, 4, 3, 4, 2))
    np.add.at(outcomes, (steps_taken, states[:, :-1], actions, states[:, 1:], rewards.astype(int)), 1)
    means = np.broadcast_to(mdp.reward_steps, (5, 4, 3))
    joint = mdp.transition_steps[..., None] * np.stack([1.0 - means, means], axis=-1)[..., None, :]
    assert_frequencies(outcomes.reshape(5, 4, 3, 8), joint.reshape(5, 4, 3, 8))


def test_propensities_are_the_entries_of_the_policy(rng):
    mdp = random_mdp(rng, 4, 3, 5)
    policy = random_policy(rng, mdp)
    states, actions, _, propensities = draws(Fixed(mdp), policy, rng, 50)
    np.testing.assert_array_equal(propensities, policy[np.arange(5), states[:, :-1], actions])


def test_one_state_of_the_generator_one_episode(rng):
    mdp = random_mdp(rng, 4, 3, 5)
    world, policy = Fixed(mdp), random_policy(rng, mdp)
    first, second = np.random.default_rng(7), np.random.default_rng(7)
    for _ in range(20):
        mine, yours = world.sample("c", policy, first), world.sample("other", policy, second)
        for name in ("states", "actions", "rewards"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(yours, name))
        assert first.bit_generator.state == second.bit_generator.state


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1.0 - 2.0**-53])
def test_what_has_probability_zero_never_happens(rng, uniform):
    """At the very ends of [0, 1) too, and though rows sum to one only up to rounding."""
    for _ in range(20):
        mdp = random_mdp(rng, 5, 3, 4, kernel="sparse", masked=True)
        policy = random_policy(rng, mdp) * (rng.random((4, 5, 3)) < 0.5)
        policy += mdp.admissible * (policy.sum(axis=2, keepdims=True) == 0.0)
        policy /= policy.sum(axis=2, keepdims=True)
        states, actions, _, propensities = (table[0] for table in draws(Fixed(mdp), policy, Scripted(uniform), 1))
        transitions = np.broadcast_to(mdp.transition_steps, (4, 5, 3, 5))
        assert mdp.start[states[0]] > 0.0
        assert (propensities > 0.0).all()
        assert (transitions[np.arange(4), states[:-1], actions, states[1:]] > 0.0).all()


def test_inadmissible_actions_are_never_drawn(rng):
    mdp = random_mdp(rng, 4, 3, 5, masked=True)
    states, actions, _, _ = draws(Fixed(mdp), random_policy(rng, mdp), rng, 300)
    assert mdp.admissible[states[:, :-1], actions].all()


def test_a_world_may_draw_rewards_its_own_way(rng):
    class Sure(Fixed):
        def draw_reward(self, mean, uniform):
            return float(mean)

    mdp = random_mdp(rng, 4, 3, 5)
    states, actions, rewards, _ = draws(Sure(mdp), random_policy(rng, mdp), rng, 20)
    steps = np.arange(5) if len(mdp.reward_steps) > 1 else 0
    np.testing.assert_array_equal(rewards, mdp.reward_steps[steps, states[:, :-1], actions])


def test_the_truth_is_computed_once_per_context():
    world = Coins()
    assert world.truth(0.9) is world.truth(0.9)
    assert world.truth(np.array([1.0])) is world.truth(np.array([1.0]))
    assert world.truth("a") is not world.truth("b")
    assert world.asked == 4


def test_worlds_share_no_memory():
    first, second = Coins(), Coins()
    assert first.truth(0.9) is not second.truth(0.9)


def test_the_truth_of_contexts_used_longest_ago_is_dropped():
    world = Coins()
    world.kept_bytes = 3 * Truth(world.mdp("a")).nbytes
    world.asked = 0
    for context in ("a", "b", "c", "a", "d"):  # b is the oldest
        world.truth(context)
    assert world.asked == 4
    world.truth("a")
    assert world.asked == 4
    world.truth("b")
    assert world.asked == 5


def test_the_truths_kept_take_no_more_memory_than_they_may():
    """50 states, 5 actions and 20 steps: 140 KiB for each context, and 4 096 of them would take 560 MiB."""

    class Large(ContextualMDP):
        space = Space(states=50, actions=5, horizon=20)
        kept_bytes = 2**20

        def mdp(self, context):
            return self.space.mdp(transitions=np.full((50, 5, 50), 0.02), rewards=np.full((50, 5), context))

    world = Large()
    for context in np.linspace(0.0, 1.0, 20):
        assert world.truth(context).best[1] == pytest.approx(20 * context)
    kept = world._truths._kept.values()
    held = [truth.mdp.transitions.nbytes + truth.mdp.rewards.nbytes + truth.best[0].nbytes for truth in kept]
    assert 2**20 / 2 < sum(held) <= 2**20


def test_contexts_that_may_change_in_place_are_not_remembered():
    world = Coins()
    for context in ({"age": {40}}, {"age": {40}}, object(), np.array([{}], dtype=object)):
        world.truth(context)
    assert world.asked == 4
    context = np.array([0.5])
    before = world.truth(context)
    context[0] = 0.7
    assert world.truth(context) is not before


def test_a_world_cannot_change_the_context_that_an_agent_learns_from():
    class Thief(ContextualMDP):
        space = Space(states=1, actions=1, horizon=1)

        def mdp(self, context):
            return self.space.mdp(transitions=np.ones((1, 1, 1)), rewards=[[context.pop("pay")]])

    told = {"pay": 0.5}
    episode = Thief().sample(told, np.ones((1, 1, 1)), np.random.default_rng(0))
    assert episode.context == told == {"pay": 0.5}
