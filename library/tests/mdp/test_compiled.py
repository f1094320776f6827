"""The compiled loops against the same formulas in numpy, and the compiled checks against the ones that explain."""

import numpy as np
import pytest

from library.tests.random_mdps import by_step, random_mdp, random_mdps, random_policy, with_tables
from omg_cmdp import Space, occupancy_measure, optimal_policy, policy_value, squared_hellinger, validation
from omg_cmdp.mdp import compiled as kernels

TOLERANCE = validation.ROW_SUM_TOLERANCE
ODD = (np.nan, np.inf, -np.inf, -1e-300, -0.5, 0.0, 0.5, 1.0 + 1e-7, 2.0, 1.7e308)


def accepted(check, *arguments):
    """Return whether `check` raises nothing."""
    try:
        check(*arguments)
    except ValueError:
        return False
    return True


def with_odd_entry(rng, table):
    """Return a copy in which, more often than not, one entry is odd."""
    changed = np.array(table)
    if rng.random() < 0.8:
        changed.reshape(-1)[rng.integers(changed.size)] = rng.choice(ODD)
    return changed


def tables_in_numpy(kernel, rewards, admissible):
    used = np.where(admissible[:, :, None], kernel, np.eye(1, kernel.shape[-1])[0])
    validation.distributions("transitions", used)
    validation.in_range("rewards", np.where(admissible, rewards, 0.0), 0.0, 1.0)


def test_tables_are_settled_just_when_the_plain_checks_accept_them(rng):
    verdicts = set()
    for mdp in random_mdps(rng, 400, states=3, actions=2, horizon=2):
        kernel, rewards = with_odd_entry(rng, mdp.transition_steps), with_odd_entry(rng, mdp.reward_steps)
        fine = accepted(tables_in_numpy, kernel, rewards, mdp.admissible)
        assert kernels.settle(kernel, rewards, mdp.raw[3], TOLERANCE) == fine
        assert not kernel[:, ~mdp.admissible].any()
        assert not rewards[:, ~mdp.admissible].any()
        verdicts.add((fine, bool(mdp.admissible.all())))
    assert len(verdicts) == 4


def test_policies_are_accepted_just_when_the_plain_checks_accept_them(rng):
    verdicts = set()
    for mdp in random_mdps(rng, 400, states=3, actions=3, horizon=2):
        free = with_tables(mdp, transitions=np.full((3, 3, 3), 1 / 3), admissible=None)
        policy = with_odd_entry(rng, random_policy(rng, mdp if rng.random() < 0.5 else free))
        fine = accepted(validation.policy_table, policy, policy.shape, mdp.admissible)
        assert kernels.is_policy(policy, mdp.raw[3], TOLERANCE) == fine
        verdicts.add((fine, bool(mdp.admissible.all())))
    assert len(verdicts) == 4


@pytest.mark.parametrize("bad", [-1e-300, 1.0 + 1e-15, np.nan, np.inf, -np.inf])
def test_one_entry_out_of_range_is_found_wherever_it_is(bad, rng):
    table = rng.random((2, 3, 4))
    table[0, 0, 0], table[1, 2, 3] = 0.0, 1.0
    assert kernels.is_within(table, 0.0, 1.0)
    table[tuple(rng.integers(table.shape))] = bad
    assert not kernels.is_within(table, 0.0, 1.0)


def test_an_episode_is_in_range_and_admissible(rng):
    verdicts = []
    for _ in range(500):
        admissible = rng.random((3, 2)) < 0.9
        states, actions, rewards = rng.integers(3, size=4), rng.integers(2, size=3), rng.uniform(-2.0, 5.0, size=3)
        for values, bad in ((states, (-1, 3)), (actions, (-1, 2)), (rewards, (-2.5, 5.5))):
            if rng.random() < 0.1:
                values[rng.integers(len(values))] = rng.choice(bad)
        inside = ((states >= 0) & (states < 3)).all() and ((actions >= 0) & (actions < 2)).all()
        fine = inside and ((rewards >= -2.0) & (rewards <= 5.0)).all() and admissible[states[:-1], actions].all()
        start = rng.choice([0.0, 0.1, 0.9], 3)
        fine = bool(fine and start[states[0]] > 0.0)
        assert kernels.is_episode(states, actions, rewards, start, admissible.view(np.uint8), -2.0, 5.0) == fine
        verdicts.append(bool(fine))
    assert 50 < sum(verdicts) < 450


@pytest.mark.parametrize("count", [1, 3])
def test_the_account_of_an_episode_by_its_definitions(count, rng):
    for truth in random_mdps(rng, 30, states=3, actions=2, horizon=4):
        model = with_tables(random_mdp(rng, 3, 2, 4, masked=False), admissible=truth.admissible)
        probabilities = rng.dirichlet(np.ones(count))
        policies = np.array([random_policy(rng, truth) for _ in range(count)])
        best, occupancy = random_policy(rng, truth), np.empty((4, 3, 2))
        tables = *truth.raw[:3], *model.raw
        value, believed_best, believed, own_value, own_believed, squares, hellinger = kernels.account(
            *tables, best, policies, probabilities, occupancy
        )
        (kernel, rewards), (guess, means) = by_step(truth), by_step(model)
        q, q_hat = (
            sum(p * occupancy_measure(mdp, policy) for p, policy in zip(probabilities, policies, strict=True))
            for mdp in (truth, model)
        )
        np.testing.assert_allclose(occupancy, q, atol=1e-15)
        assert value == pytest.approx((q * rewards).sum(), abs=1e-13)
        assert believed == pytest.approx((q_hat * means).sum(), abs=1e-13)
        assert believed_best == pytest.approx((occupancy_measure(model, best) * means).sum(), abs=1e-13)
        own, top = optimal_policy(model)
        assert own_believed == pytest.approx(top, abs=1e-13)
        assert own_value == pytest.approx(policy_value(truth, own), abs=1e-13)
        assert squares == pytest.approx((q * (rewards - means) ** 2).sum(), abs=1e-13)
        assert hellinger == pytest.approx((q * squared_hellinger(kernel, guess)).sum(), abs=1e-13)


@pytest.mark.parametrize("states", [5, 40])
def test_many_states_flow_like_few(states, rng):
    """The last step of an occupancy measure by plain matrix products."""
    mdp = random_mdp(rng, states, 2, 4, kernel="dense", kernel_steps=True, masked=False)
    policy, marginal = random_policy(rng, mdp), mdp.start
    for h in range(3):
        marginal = (marginal[:, None] * policy[h]).reshape(-1) @ mdp.transition_steps[h].reshape(-1, states)
    np.testing.assert_allclose(occupancy_measure(mdp, policy)[3], marginal[:, None] * policy[3], rtol=1e-12)


def test_the_mdp_of_a_space_is_the_mdp_of_its_tables(rng):
    for mdp in random_mdps(rng, 20):
        same = mdp.space.mdp(transitions=mdp.transitions, rewards=mdp.rewards)
        assert same.space is mdp.space
        for mine, yours in zip(same.raw, mdp.raw, strict=True):
            np.testing.assert_array_equal(mine, yours)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"transitions": np.full((2, 3, 2), 0.4)}, "`transitions` must sum to 1"),
        ({"transitions": np.full((3, 3, 3), 1 / 3)}, r"`transitions` must have shape \(2, 3, 2\) or \(4, 2, 3, 2\)"),
        ({"rewards": np.full((2, 3), 1.5)}, r"`rewards` must lie in \[0, 1\]"),
        ({"rewards": np.zeros((3, 2))}, r"`rewards` must have shape \(2, 3\) or \(4, 2, 3\)"),
    ],
)
def test_tables_that_do_not_fit_a_space_are_refused(changes, rule):
    space = Space(states=2, actions=3, horizon=4)
    with pytest.raises(ValueError, match=rule):
        space.mdp(**({"transitions": np.full((2, 3, 2), 0.5), "rewards": np.zeros((2, 3))} | changes))


def test_spans_are_from_the_first_to_the_last_that_is_not_zero(rng):
    """An empty row has an empty span; nothing that counts is left out."""
    kernel = rng.random((72, 9)) * (rng.random((72, 9)) < 0.2)
    firsts, ends = (each.astype(int) for each in kernels.spans(kernel))
    for place in np.ndindex(firsts.shape):
        held = np.flatnonzero(kernel[place])
        assert (ends[place] - firsts[place]) == (held[-1] + 1 - held[0] if len(held) else 0)
        assert not len(held) or firsts[place] == held[0]
