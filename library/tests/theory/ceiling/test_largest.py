import itertools

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.mdp.bellman import value_bounds
from omg_cmdp.theory.ceiling import largest
from omg_cmdp.theory.ceiling.counted import RowsNearby
from omg_cmdp.theory.ceiling.sets import PlausibleRewards, PlausibleTransitions, listed

ONE = np.ones(1)


def random_space(rng):
    states, actions, horizon = (int(rng.integers(1, most)) for most in (5, 4, 5))
    admissible = rng.random((states, actions)) < 0.8
    admissible[:, 0] = True
    start = rng.dirichlet(np.ones(states))
    return omg.Space(states=states, actions=actions, horizon=horizon, start=start, admissible=admissible)


def random_lists(rng, space, count=4):
    """Return rewards (N, K, S, A) and transitions (M, K, S, A, S), some of them step by step."""
    steps = [int(rng.choice([1, space.horizon])) for _ in range(2)]
    rewards = rng.random((count, steps[0], space.states, space.actions))
    return rewards, rng.dirichlet(np.full(space.states, 0.5), (count, steps[1], space.states, space.actions))


def random_policies(rng, space, count=1):
    policies = rng.dirichlet(np.full(space.actions, 0.3), (count, space.horizon, space.states)) * space.admissible
    policies[..., 0] += 1e-3
    return policies / policies.sum(axis=-1, keepdims=True)


def by_hand(space, rewards, transitions, policies, probabilities):
    found = 0.0
    for means, rows in itertools.product(rewards, transitions):
        mdp = omg.TabularMDP(
            transitions=rows if len(rows) > 1 else rows[0],
            rewards=means if len(means) > 1 else means[0],
            horizon=space.horizon,
            start=space.start,
            admissible=space.admissible,
        )
        values = [omg.policy_value(mdp, policy) for policy in policies]
        found = max(found, omg.optimal_policy(mdp)[1] - np.dot(probabilities, values))
    return found


def loss(space, rewards, transitions, policies, probabilities=ONE, returns=None):
    bounds = value_bounds(space.horizon, returns or (0.0, space.horizon))
    return largest.largest_loss(space, rewards, transitions, policies, probabilities, bounds)


@pytest.mark.parametrize("number", range(20))
def test_lists_are_searched_exactly(rng, number):
    rng = np.random.default_rng([number, int(rng.integers(1 << 30))])
    space = random_space(rng)
    rewards, transitions = random_lists(rng, space)
    policies, probabilities = random_policies(rng, space, 3), rng.dirichlet(np.ones(3))
    found = loss(space, listed(rewards), listed(transitions), policies, probabilities)
    assert found.most == pytest.approx(by_hand(space, rewards, transitions, policies, probabilities), abs=1e-10)


@pytest.mark.parametrize("number", range(20))
def test_the_bound_is_above_the_exact_maximum(rng, number, monkeypatch):
    rng = np.random.default_rng([number, int(rng.integers(1 << 30))])
    space = random_space(rng)
    rewards, transitions = random_lists(rng, space)
    policies, probabilities = random_policies(rng, space, 2), np.array([0.3, 0.7])
    monkeypatch.setattr(largest, "MOST_PAIRS", 0)
    monkeypatch.setattr(largest, "MOST_STATES", 12 * (number % 2))
    found = loss(space, listed(rewards), listed(transitions), policies, probabilities)
    assert found.most >= by_hand(space, rewards, transitions, policies, probabilities) - 1e-10


def test_with_one_model_the_bound_is_exact(rng, monkeypatch):
    monkeypatch.setattr(largest, "MOST_PAIRS", 0)
    for _ in range(20):
        space = random_space(rng)
        rewards, transitions = random_lists(rng, space, 1)
        policies = random_policies(rng, space)
        found = loss(space, listed(rewards), listed(transitions), policies)
        assert found.most == pytest.approx(by_hand(space, rewards, transitions, policies, ONE), abs=1e-10)
        best = np.eye(space.actions)[found.plausible.argmax(axis=2)][None]
        for rows in (listed(transitions), listed(transitions)._replace(tables=None)):
            assert 0.0 <= loss(space, listed(rewards), rows, best).most < 1e-12


def test_with_one_step_the_bound_is_exact_over_boxes_of_rewards(rng):
    space = omg.Space(states=1, actions=3, horizon=1)
    low = rng.random((1, 1, 3))
    high = low + (1.0 - low) * rng.random((1, 1, 3))
    policies = random_policies(rng, space)
    corners = np.array([np.where(upper, high, low) for upper in itertools.product([False, True], repeat=3)])
    known = np.ones((1, 1, 1, 3, 1))
    exact = loss(space, listed(corners), listed(known), policies).most
    assert loss(space, PlausibleRewards(low, high), listed(known), policies).most == pytest.approx(exact)


@pytest.mark.parametrize("most_states", [12, 0])
def test_what_is_surely_best_costs_nothing_however_uncertain_its_value(monkeypatch, most_states):
    monkeypatch.setattr(largest, "MOST_STATES", most_states)
    space = omg.Space(states=2, actions=2, horizon=6)
    low, high = np.array([[[0.5, 0.0], [0.5, 0.0]]]), np.array([[[1.0, 0.1], [1.0, 0.1]]])
    rows = RowsNearby(np.full((2, 2, 2), 0.5), np.full((2, 2), 0.2), np.ones((2, 2, 2), dtype=bool))
    # What a step earns now may differ by .4 at least; what comes later must not be worth more than that.
    first = np.zeros((1, 6, 2, 2))
    first[..., 0] = 1.0
    plausible = PlausibleRewards(low, high)
    short = omg.Space(states=2, actions=2, horizon=1)
    found = loss(short, plausible, PlausibleTransitions(rows), first[:, :1])
    assert (found.most, found.settled) == (0.0, 1.0)
    assert 0.0 < loss(space, plausible, PlausibleTransitions(rows), first).most < 6.0


def test_values_that_rise_and_fall_together_are_compared_in_one_model(monkeypatch):
    """Upstream is better whatever the current is; how much better is uncertain, and that costs nothing."""
    space = omg.Space(states=4, actions=2, horizon=12)
    frequencies, known = np.zeros((4, 2, 4)), np.zeros((1, 4, 2))
    frequencies[np.arange(4), 0, np.maximum(np.arange(4) - 1, 0)] = 1.0
    for place in range(4):
        frequencies[place, 1, [max(place - 1, 0), min(place + 1, 3)]] += 0.3, 0.7
    known[0, 3, 1] = 1.0
    rows = RowsNearby(frequencies, np.full((4, 2), 0.002), frequencies > 0.0)
    upstream = np.zeros((1, 12, 4, 2))
    upstream[..., 1] = 1.0
    rewards, transitions = PlausibleRewards(known, known), PlausibleTransitions(rows)
    together = loss(space, rewards, transitions, upstream)
    assert together.most < 1e-9
    monkeypatch.setattr(largest, "MOST_STATES", 0)
    apart = loss(space, rewards, transitions, upstream)
    assert apart.most > 0.2
    assert together.settled > apart.settled


def test_no_model_of_plausible_rows_loses_more_than_the_bound(rng):
    for _ in range(30):
        space = random_space(rng)
        shape = (space.states, space.actions, space.states)
        frequencies, truth = rng.dirichlet(np.ones(space.states), (2, *shape[:2]))
        radii = (frequencies * np.log(frequencies / truth)).sum(axis=2) * (1.0 + 1e-9) + 1e-12
        low, mean, high = np.sort(rng.random((3, 1, *shape[:2])), axis=0)
        policies = random_policies(rng, space)
        rows = PlausibleTransitions(RowsNearby(frequencies, radii, np.ones(shape, dtype=bool)))
        exact = by_hand(space, mean[None], truth[None, None], policies, ONE)
        assert loss(space, PlausibleRewards(low, high), rows, policies).most >= exact - 1e-9


def test_settled_is_the_share_of_reachable_states_where_all_models_agree():
    space = omg.Space(states=2, actions=2, horizon=2)
    stay = np.zeros((1, 1, 2, 2, 2))
    stay[..., 0] = 1.0  # state 1 is never reached
    policies = np.full((1, 2, 2, 2), 0.5)
    agreed = np.array([[[[0.9, 0.1], [0.0, 1.0]]], [[[0.8, 0.2], [1.0, 0.0]]]])
    assert loss(space, listed(agreed), listed(stay), policies).settled == 1.0
    disputed = np.array([[[[0.9, 0.1], [0.0, 1.0]]], [[[0.1, 0.2], [1.0, 0.0]]]])
    assert loss(space, listed(disputed), listed(stay), policies).settled == 0.0


@pytest.mark.parametrize("number", range(20))
def test_settled_and_plausible_are_those_of_backward_induction(rng, number):
    """Over all pairs of models that are listed; rewards and steps are such that ties are exact."""
    rng = np.random.default_rng([number, int(rng.integers(1 << 30))])
    space = random_space(rng)
    rewards, transitions = random_lists(rng, space, 2)
    rewards, transitions = np.round(rewards), np.eye(space.states)[transitions.argmax(axis=-1)]
    agreed = np.repeat(space.admissible[None], space.horizon, axis=0)
    possible, reached = np.zeros_like(agreed), np.zeros(agreed.shape[:2], dtype=bool)
    for means, rows in itertools.product(rewards, transitions):
        after = np.zeros(space.states)
        for h in reversed(range(space.horizon)):
            gains = np.where(space.admissible, means[h % len(means)] + rows[h % len(rows)] @ after, -np.inf)
            after = gains.max(axis=1)
            agreed[h] &= gains == after[:, None]
            possible[h] |= gains == after[:, None]
    reached[0] = space.start > 0.0
    for h, s, a in itertools.product(*map(range, (space.horizon - 1, *space.admissible.shape))):
        if reached[h, s] and space.admissible[s, a]:
            reached[h + 1] |= (transitions[:, h % transitions.shape[1], s, a] > 0.0).any(axis=0)
    found = loss(space, listed(rewards), listed(transitions), random_policies(rng, space))
    assert np.array_equal(found.plausible, possible)
    assert found.settled == pytest.approx(agreed.any(axis=2)[reached].mean())


@pytest.mark.parametrize("number", range(20))
def test_of_one_model_the_best_actions_are_plausible_and_all_is_settled(rng, number, monkeypatch):
    """The bounds find what the list finds, ties included."""
    rng = np.random.default_rng([number, int(rng.integers(1 << 30))])
    space = random_space(rng)
    rewards, transitions = random_lists(rng, space, 1)
    rewards, transitions = listed(np.round(rewards)), listed(np.eye(space.states)[transitions.argmax(axis=-1)])
    policies = random_policies(rng, space)
    searched = loss(space, rewards, transitions, policies)
    monkeypatch.setattr(largest, "MOST_PAIRS", 0)
    for rows in (transitions, transitions._replace(tables=None)):
        found = loss(space, rewards, rows, policies)
        assert found.settled == searched.settled == 1.0
        assert np.array_equal(found.plausible, searched.plausible)


def test_a_narrower_range_of_returns_narrows_the_bound():
    space = omg.Space(states=1, actions=2, horizon=5)
    plausible = PlausibleRewards(np.zeros((1, 1, 2)), np.ones((1, 1, 2)))
    policies, known = np.full((1, 5, 1, 2), 0.5), listed(np.ones((1, 1, 1, 2, 1)))
    assert loss(space, plausible, known, policies, returns=(0.0, 1.0)).most == 1.0
    assert loss(space, plausible, known, policies).most > 1.0


def test_a_mixture_of_the_best_policy_with_itself_never_loses_less_than_nothing():
    """Whichever way its shares are rounded."""
    space, known, same = omg.Space(states=1, actions=1, horizon=1), np.ones((1, 1, 1, 1, 1)), np.ones((10, 1, 1, 1))
    for mean in np.arange(50) / 50:
        found = loss(space, listed(np.full((1, 1, 1, 1), mean)), listed(known), same, np.full(10, 0.1))
        assert 0.0 <= found.most < 1e-15


def test_beside_an_action_that_is_not_known_the_known_one_is_not_settled():
    space, known = omg.Space(states=1, actions=2, horizon=1), listed(np.ones((1, 1, 1, 2, 1)))
    plausible, first = PlausibleRewards(np.array([[[0.5, 0.0]]]), np.array([[[0.5, 1.0]]])), np.array([[[[1.0, 0.0]]]])
    for rows in (known, known._replace(tables=None)):
        found = loss(space, plausible, rows, first)
        assert (found.most, found.settled) == (0.5, 0.0)


TIES = pytest.mark.parametrize(
    ("ahead", "tied"), [(0.2, False), (2 * largest.compiled.TIE, False), (largest.compiled.TIE, True)]
)


@TIES
def test_of_a_list_what_is_worse_by_no_more_than_a_tie_is_plausible(ahead, tied):
    space, known = omg.Space(states=1, actions=2, horizon=1), np.ones((1, 1, 1, 2, 1))
    found = loss(space, listed(np.array([[[[ahead, 0.0]]]])), listed(known), np.array([[[[1.0, 0.0]]]]))
    assert found.plausible.tolist() == [[[True, tied]]]


@TIES
def test_what_every_action_earns_later_cannot_make_up_for_less_now(ahead, tied):
    """State 1 pays anything in [0, 1], whichever action led there."""
    space = omg.Space(states=2, actions=2, horizon=2, admissible=np.array([[True, True], [True, False]]))
    onwards, first = np.zeros((1, 1, 2, 2, 2)), np.zeros((1, 2, 2, 2))
    onwards[..., 1] = first[..., 0] = 1.0
    low, high = np.array([[[[ahead, 0.0], [paid, 0.0]]] for paid in (0.0, 1.0)])
    for rows in (listed(onwards), listed(onwards)._replace(tables=None)):
        found = loss(space, PlausibleRewards(low, high), rows, first)
        assert (found.most, found.settled) == (0.0, 0.5 if tied else 1.0)
        assert found.plausible[0, 0].tolist() == [True, tied]


@pytest.mark.parametrize("number", range(20))
def test_known_rows_have_the_bound_of_any_rows(rng, number):
    rng = np.random.default_rng([number, int(rng.integers(1 << 30))])
    space = random_space(rng)
    rewards, transitions = random_lists(rng, space, 1)
    low, high = rewards[0] * rng.random(), rewards[0] + (1.0 - rewards[0]) * rng.random(rewards[0].shape)
    policies, box, known = random_policies(rng, space), PlausibleRewards(low, high), listed(transitions)
    returns = (space.horizon * 0.4 * rng.random(), space.horizon * rng.uniform(0.4, 1.0))
    compiled, plain = (
        loss(space, box, rows, policies, returns=returns) for rows in (known, known._replace(tables=None))
    )
    assert compiled.most == pytest.approx(plain.most, abs=1e-12)
    assert compiled.settled == plain.settled
    assert np.array_equal(compiled.plausible, plain.plausible)
