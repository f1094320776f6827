"""Off-policy estimates: unbiased to rounding, by listing every episode that can happen; what cannot work is refused."""

import itertools

import numpy as np
import pytest

from library.tests.logs.tables import CONTEXTS, SPACE, changed, every_episode, mdps, policies, random_log
from omg_cmdp import Episode, Space, policy_value
from omg_cmdp.logs import Log, doubly_robust, importance_sampling


def zero_model(space):
    transitions = np.full((space.states, space.actions, space.states), 1.0 / space.states)
    return space.mdp(transitions=transitions, rewards=np.zeros((space.states, space.actions)))


def bandit_log(rounds, actions=2):
    """Return a log of one state and one step, from (action, reward, propensity)."""
    episodes = [
        Episode(context=0, states=[0, 0], actions=[a], rewards=[float(r)], propensities=[p]) for a, r, p in rounds
    ]
    return Log(Space(states=1, actions=actions, horizon=1), episodes)


def same(one, other):
    for name in ("value", "standard_error", "effective_sample_size", "mean_weights"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)


@pytest.fixture
def tiny(rng):
    """Return the truth, what played, what is to be valued, and a wrong model."""
    return mdps(rng), policies(rng), policies(rng), mdps(rng)


def test_the_expected_estimate_is_the_exact_value(tiny):
    (truth, behaviour, target, wrong), context = tiny, "mild"
    estimators = {
        "sampling": lambda log: importance_sampling(log, target.get),
        "robust, wrong model": lambda log: doubly_robust(log, target.get, wrong.get),
    }
    episodes = list(every_episode(truth[context], behaviour[context], context))
    assert sum(p for p, _ in episodes) == pytest.approx(1.0, abs=1e-12)
    exact = policy_value(truth[context], target[context])
    for estimator in estimators.values():
        assert sum(p * estimator(log).value for p, log in episodes) == pytest.approx(exact, abs=1e-12)


def test_the_weights_have_mean_one(tiny):
    truth, behaviour, target, _ = tiny
    episodes = every_episode(truth["mild"], behaviour["mild"], "mild")
    means = sum(p * importance_sampling(log, target.get).mean_weights for p, log in episodes)
    np.testing.assert_allclose(means, 1.0, atol=1e-12)


@pytest.mark.slow
def test_a_good_model_takes_variance_away(tiny):
    truth, behaviour, target, _ = tiny
    episodes = list(every_episode(truth["severe"], behaviour["severe"], "severe"))
    exact = policy_value(truth["severe"], target["severe"])

    def variance(estimate):
        return sum(p * (estimate(log).value - exact) ** 2 for p, log in episodes)

    plain = variance(lambda log: importance_sampling(log, target.get))
    assert variance(lambda log: doubly_robust(log, target.get, truth.get)) < 0.5 * plain


def test_a_log_whose_player_learned_is_unbiased_too():
    """Two bandit episodes; the second is played by a policy that depends on what the first has paid."""
    means, target = (0.3, 0.8), np.array([[[0.6, 0.4]]])
    expected = 0.0
    for a, r, b, q in itertools.product((0, 1), repeat=4):
        first, second = (0.5, 0.5), ((0.9, 0.1) if r == a else (0.2, 0.8))
        chance = first[a] * (means[a] if r else 1 - means[a]) * second[b] * (means[b] if q else 1 - means[b])
        log = bandit_log([(a, r, first[a]), (b, q, second[b])])
        expected += chance * importance_sampling(log, lambda context: target).value
    assert expected == pytest.approx(0.6 * 0.3 + 0.4 * 0.8, abs=1e-12)


def test_a_policy_that_was_chosen_by_the_same_log_looks_too_good():
    """Two arms, both worth ½, drawn evenly, in four episodes: the arm that did better in them is worth ½ as well."""
    arms, expected = np.eye(2)[:, None, None, :], 0.0
    for outcomes in itertools.product(itertools.product((0, 1), repeat=2), repeat=4):
        log = bandit_log([(a, r, 0.5) for a, r in outcomes])
        expected += max(importance_sampling(log, lambda context, arm=arm: arm).value for arm in arms) / 4**4
    assert expected > 0.7


def test_without_a_model_doubly_robust_is_importance_sampling(tiny, rng):
    *_, target, _ = tiny
    log = random_log(rng, 20)
    table = target["mild"]
    for weighted in (False, True):
        robust = doubly_robust(log, lambda context: table, lambda context: zero_model(SPACE), weighted=weighted)
        plain = importance_sampling(log, lambda context: table, weighted=weighted)
        same(robust, plain)


def test_a_true_model_of_a_world_without_chance_leaves_no_variance(rng):
    """Deterministic transitions, start and rewards: every single episode gives the exact value, whatever played it."""
    space = Space(states=3, actions=2, horizon=4, start=1)
    transitions = np.eye(3)[rng.integers(3, size=(3, 2))]
    truth = space.mdp(transitions=transitions, rewards=rng.integers(2, size=(3, 2)).astype(float))
    behaviour, target = policies(rng, space), policies(rng, space)
    exact = policy_value(truth, target["mild"])
    for _, log in every_episode(truth, behaviour["mild"], "mild"):
        for weighted in (False, True):
            estimate = doubly_robust(log, target.get, lambda context: truth, weighted=weighted)
            assert estimate.value == pytest.approx(exact, abs=1e-12)


def test_every_context_has_its_own_policy_and_model(rng):
    """Episodes of two contexts, in turns: the estimate is the mean of those for each context alone."""
    target, model = policies(rng), mdps(rng)
    mild, severe = (random_log(rng, 4, context=context) for context in CONTEXTS)
    turns = [episode for pair in zip(mild.episodes, severe.episodes, strict=True) for episode in pair]
    both, *each = (doubly_robust(log, target.get, model.get).value for log in (Log(SPACE, turns), mild, severe))
    assert both == pytest.approx(np.mean(each), abs=1e-12)


def test_the_squared_standard_error_is_unbiased(rng):
    """Over all logs of two bandit episodes."""
    space = Space(states=1, actions=2, horizon=1)
    truth = space.mdp(transitions=np.ones((1, 2, 1)), rewards=[[0.2, 0.7]])
    behaviour, target = np.array([[[0.4, 0.6]]]), np.array([[[0.9, 0.1]]])
    singles = list(every_episode(truth, behaviour, 0))
    values = np.array([importance_sampling(log, lambda context: target).value for _, log in singles])
    chances = np.array([p for p, _ in singles])
    variance = chances @ values**2 - (chances @ values) ** 2
    expected = 0.0
    for (p, one), (q, two) in itertools.product(singles, repeat=2):
        both = Log(space, one.episodes + two.episodes)
        expected += p * q * importance_sampling(both, lambda context: target).standard_error ** 2
    assert expected == pytest.approx(variance / 2, abs=1e-12)


def test_the_order_of_episodes_does_not_matter(rng):
    log, order = random_log(rng, 30), rng.permutation(30)
    shuffled = Log(SPACE, [log.episodes[i] for i in order])
    target, model = policies(rng)["mild"], mdps(rng)["mild"]
    for weighted in (False, True):
        one, two = (
            doubly_robust(each, lambda c: target, lambda c: model, weighted=weighted) for each in (log, shuffled)
        )
        same(one, two)


def test_the_policy_that_played_gets_the_plain_mean(tiny, rng):
    behaviour = policies(rng)["mild"]
    log = random_log(rng, 25)
    chances = behaviour[np.arange(3), log.states[:, :-1], log.actions]
    log = Log(SPACE, [changed(e, propensities=p) for e, p in zip(log.episodes, chances, strict=True)])
    returns = log.returns
    for weighted in (False, True):
        estimate = importance_sampling(log, lambda context: behaviour, weighted=weighted)
        assert estimate.value == pytest.approx(returns.mean(), abs=1e-12)
        assert estimate.standard_error == pytest.approx(returns.std(ddof=1) / 5.0, rel=1e-9)
        assert estimate.effective_sample_size == pytest.approx(25.0)
        np.testing.assert_allclose(estimate.mean_weights, 1.0)


def test_weighting_makes_sure_of_a_constant_reward(rng):
    """If every step pays 1, the weighted estimate is H, with no error; the unweighted one is not."""
    log = random_log(rng, 25)
    log = Log(SPACE, [changed(episode, context=0, rewards=np.ones(3)) for episode in log.episodes])
    target = policies(rng)["mild"]
    weighted = importance_sampling(log, lambda context: target, weighted=True)
    assert weighted.value == pytest.approx(3.0, abs=1e-12)
    assert weighted.standard_error == pytest.approx(0.0, abs=1e-12)
    assert abs(importance_sampling(log, lambda context: target).value - 3.0) > 1e-3


@pytest.mark.slow
def test_the_weighted_standard_error_agrees_with_the_jackknife(rng):
    log, target = random_log(rng, 200, context="mild"), policies(rng)["mild"]
    estimate = importance_sampling(log, lambda context: target, weighted=True)
    left_out = [
        importance_sampling(
            Log(SPACE, log.episodes[:i] + log.episodes[i + 1 :]), lambda context: target, weighted=True
        ).value
        for i in range(len(log))
    ]
    jackknife = np.sqrt((len(log) - 1) * np.var(left_out))
    assert estimate.standard_error == pytest.approx(jackknife, rel=0.05)


def test_a_model_in_zero_to_one_serves_rewards_of_another_range(rng):
    """As an agent's model does. r → low + (high - low)·r: without chance there is still no variance."""
    space = Space(states=3, actions=2, horizon=3, start=1)
    transitions = np.eye(3)[rng.integers(3, size=(3, 2))]
    truth = space.mdp(transitions=transitions, rewards=rng.integers(2, size=(3, 2)).astype(float))
    behaviour, target, (low, high) = policies(rng, space), policies(rng, space), (-2.0, 3.0)
    exact = 3 * low + (high - low) * policy_value(truth, target["mild"])
    for _, log in every_episode(truth, behaviour["mild"], "mild"):
        [episode] = log.episodes
        moved = changed(episode, rewards=low + (high - low) * episode.rewards)
        scaled = Log(space, [moved], reward_range=(low, high))
        assert doubly_robust(scaled, target.get, lambda context: truth).value == pytest.approx(exact, abs=1e-12)


def test_what_the_log_could_not_do_is_refused():
    """Action 0 was taken surely: nothing is known of a policy that also does the other."""
    space = Space(states=1, actions=2, horizon=2)
    steps = {"context": 0, "states": [0, 0, 0], "rewards": [1.0, 1.0], "propensities": [0.5, 1.0]}
    log = Log(space, [Episode(**steps, actions=[a, 0]) for a in (0, 1)])
    both = np.full((2, 1, 2), 0.5)
    with pytest.raises(ValueError, match=r"`policy` must do only what had a chance .* at step 1 of episode 0"):
        importance_sampling(log, lambda context: both)
    # Who never comes there asks for nothing there.
    held = np.array([[[1.0, 0.0]], [[1.0, 0.0]]])
    assert importance_sampling(log, lambda context: held).value == pytest.approx(2.0)
    switching = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    with pytest.raises(ValueError, match="episode 1"):
        importance_sampling(log, lambda context: switching)


def test_a_policy_that_nobody_followed_is_seen():
    log = bandit_log([(0, 1, 0.5)] * 4, actions=3)
    never = np.array([[[0.0, 1.0, 0.0]]])
    estimate = importance_sampling(log, lambda context: never)
    assert estimate.effective_sample_size == 0.0
    assert estimate.mean_weights == 0.0
    assert np.isnan(estimate.standard_error)  # and not 0.0, which would be sure of it
    with pytest.raises(ValueError, match="no episode of `log` does what `policy` may do at step 0"):
        importance_sampling(log, lambda context: never, weighted=True)


def test_what_is_missing_is_refused(rng):
    log, table = random_log(rng), policies(rng)["mild"]
    silent = Log(SPACE, [*log.episodes, changed(log.episodes[0], propensities=None)])
    for estimate in (importance_sampling, lambda *args: doubly_robust(*args, lambda context: zero_model(SPACE))):
        with pytest.raises(ValueError, match="`log` must hold propensities"):
            estimate(silent, lambda context: table)
    cut = Log(SPACE, [log.episodes[0], log.episodes[1].first(1)])
    with pytest.raises(ValueError, match=r"must hold whole episodes .*got 1 of 3 rewards in episode 1"):
        importance_sampling(cut, lambda context: table)
    with pytest.raises(ValueError, match="`policy` must have shape"):
        importance_sampling(log, lambda context: table[0])
    with pytest.raises(ValueError, match="`model` must return a TabularMDP, got NoneType"):
        doubly_robust(log, lambda context: table, lambda context: None)
    with pytest.raises(ValueError, match="`model` must return an MDP of the log's"):
        doubly_robust(log, lambda context: table, lambda context: zero_model(Space(states=2, actions=2, horizon=2)))
