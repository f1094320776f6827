"""Is it better than what was done: estimated propensities, paired differences, and refusals with a reason."""

import itertools
import sys

import numpy as np
import pytest

from library.tests.logs.tables import SPACE, changed, policies, random_log
from omg_cmdp import Episode, Log, Space
from omg_cmdp.logs import estimate_propensities, importance_sampling, improvement
from omg_cmdp.logs.off_policy.improvement import weights_of_states
from omg_cmdp.logs.off_policy.steps import LoggedSteps

ARMS = Space(states=1, actions=2, horizon=1)
FIRST, SECOND, UNIFORM = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]]), np.full((1, 1, 2), 0.5)


def greedy_log(rng, rounds=200, explore=0.2):
    """Return what an agent logs that mostly plays the better mean so far, of two arms that both pay ½ on average."""
    paid, tried, log = np.ones(2), np.full(2, 2.0), Log(ARMS)
    for _ in range(rounds):
        chances = explore / 2 + (1.0 - explore) * np.eye(2)[np.argmax(paid / tried)]
        action, reward = int(rng.random() > chances[0]), float(rng.random() < 0.5)
        paid[action], tried[action] = paid[action] + reward, tried[action] + 1.0
        steps = {"states": [0, 0], "actions": [action], "rewards": [reward]}
        log.add(Episode(context="c", **steps, propensities=[chances[action]]))
    return log


def by_doctors(rng, count=300):
    """Return what doctors log who give the second drug to the sicker half, to whom it does good, and others harm."""
    log = Log(ARMS)
    for sickness in rng.uniform(-1.0, 1.0, size=count):
        action = int(rng.random() < 1.0 / (1.0 + np.exp(-2.0 * sickness)))
        reward = float(rng.random() < 0.5 + 0.3 * sickness * (2 * action - 1) - 0.2 * sickness)
        log.add(Episode(context=np.array([sickness, rng.normal()]), states=[0, 0], actions=[action], rewards=[reward]))
    return log


def test_propensities_are_those_by_which_people_decided(rng):
    log = estimate_propensities(by_doctors(rng, 1000))
    true = 1.0 / (1.0 + np.exp(-2.0 * np.array(log.contexts)[:, 0] * (2 * log.actions[:, 0] - 1)))
    assert np.abs(log.propensities[:, 0] - true).mean() < 0.05
    assert log.overlap.never_taken == ()
    assert log.overlap.smallest == log.propensities.min()


def test_nobody_predicts_their_own_choice(rng):
    """A tree that learns by heart would be sure of every choice that it has seen."""
    from sklearn.tree import DecisionTreeClassifier

    episodes = [changed(e, context=rng.normal(size=2)) for e in greedy_log(rng, 300, explore=1.0).episodes]
    log = estimate_propensities(Log(ARMS, episodes), DecisionTreeClassifier(random_state=0))
    assert 0.4 < (log.propensities > 0.5).mean() < 0.6


def test_what_was_never_done_has_a_name_and_ended_steps_have_no_choice():
    space = Space(states=2, actions=2, horizon=2)
    steps = {"context": "c", "states": [0, 1, 1], "rewards": [1.0, 0.0], "length": 1}
    episodes = [Episode(**steps, actions=[0, 0]), Episode(**steps, actions=[1, 0])] * 20
    log = Log(space, episodes, state_names=["ill", "dead"], action_names=["A", "B"])
    made = estimate_propensities(log)
    assert (made.propensities[:, 1] == 1.0).all()
    np.testing.assert_allclose(made.propensities[:, 0], 0.5, atol=0.1)
    assert made.overlap.steps == 40
    one = estimate_propensities(Log(space, [changed(e, actions=[0, 0]) for e in episodes], action_names=["A", "B"]))
    assert (0, "B") in one.overlap.never_taken
    assert "Never taken: B in 0" in str(one.overlap)


def test_costs_are_kept(rng):
    log = by_doctors(rng)
    priced = Log(ARMS, [changed(episode, costs=episode.rewards) for episode in log.episodes])
    earned, paid = (estimate_propensities(each) for each in (log, priced))
    values = [improvement(each, lambda _: FIRST).value for each in (paid.of_costs(), earned)]
    assert values[0] == values[1]


def test_without_scikit_learn_the_message_says_what_to_do(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(ImportError, match="pip install scikit-learn, or give a `model`"):
        estimate_propensities(by_doctors(rng, 20))
    with pytest.raises(ValueError, match="`model` must have `fit` and `predict_proba`, got int"):
        estimate_propensities(by_doctors(rng, 20), 3)


def test_what_was_done_is_no_improvement(rng):
    """A policy that does in every state what was done there: each episode's score is its return."""
    sure = np.tile([[1.0, 0.0], [0.0, 1.0]], (SPACE.horizon, 1, 1))
    log = Log(SPACE)
    for episode in random_log(rng, count=80).episodes:
        log.add(changed(episode, actions=episode.states[:-1], propensities=np.ones(SPACE.horizon)))
    made = improvement(log, lambda context: sure)
    np.testing.assert_allclose([made.value, *made.interval()], 0.0, atol=0.05)
    assert "not shown to differ" in str(made)


def test_intervals_with_estimated_propensities_cover(rng):
    """To treat by sickness is worth E|0.3 s| = 0.15 more than a coin; the doctors do so in part."""
    best = lambda context: SECOND if context[0] > 0 else FIRST  # noqa: E731
    s = np.linspace(-1.0, 1.0, 2001)
    exact = 0.15 - np.mean(0.3 * s * (2.0 / (1.0 + np.exp(-2.0 * s)) - 1.0))
    found = [improvement(estimate_propensities(by_doctors(rng)), best).interval() for _ in range(12)]
    assert np.mean([low <= exact <= high for low, high in found]) >= 0.75
    assert np.mean([high - low for low, high in found]) < 0.3


def test_an_agent_that_learned_while_it_logged_is_no_obstacle(rng):
    """Both arms pay ½: values that are fitted to earlier episodes alone leave no bias."""
    logs = [greedy_log(rng) for _ in range(60)]
    made = [improvement(log, lambda context: UNIFORM) for log in logs]
    errors = np.array([each.policy_value - 0.5 for each in made])
    assert abs(errors.mean()) < 3.0 * errors.std() / np.sqrt(60)
    truths = [0.5 - log.returns.mean() for log in logs]
    assert np.mean([abs(each.value - truth) < 0.2 for each, truth in zip(made, truths, strict=True)]) > 0.9
    assert np.mean([low <= 0.0 <= high for low, high in (each.interval() for each in made)]) >= 0.85


def test_where_propensities_were_logged_a_score_knows_earlier_episodes_only(rng):
    """Other rewards in the second half leave differences of scores before it unchanged; the first eighth has none."""
    log = greedy_log(rng, 160)
    later = Log(ARMS, [e if t < 80 else changed(e, rewards=1.0 - e.rewards) for t, e in enumerate(log.episodes)])
    found = [improvement(each, lambda context: UNIFORM).contributions + each.returns for each in (log, later)]
    np.testing.assert_allclose(*(np.diff(each[20:80]) for each in found), atol=1e-12)
    assert np.abs(np.diff(found[0][80:]) - np.diff(found[1][80:])).max() > 0.1


def test_weights_correct_what_the_fit_gets_wrong(rng):
    """The second drug pays |s| to those of sickness s, which no line fits; given to all, it is worth ½ on average."""
    errors = []
    for _ in range(12):
        log = Log(ARMS)
        for sickness in rng.uniform(-1.0, 1.0, size=600):
            chance = 1.0 / (1.0 + np.exp(-2.0 * sickness))
            action = int(rng.random() < chance)
            steps = {"states": [0, 0], "actions": [action], "rewards": [abs(sickness) * action]}
            log.add(Episode(context=[sickness], **steps, propensities=[chance if action else 1.0 - chance]))
        errors.append(improvement(log, lambda context: SECOND).policy_value - 0.5)
    assert abs(np.mean(errors)) < 4.0 * np.std(errors) / np.sqrt(12)
    assert np.std(errors) < 0.05


def test_it_is_refused_with_a_reason(rng):
    always = Log(ARMS, [changed(e, actions=[0], propensities=[0.5]) for e in by_doctors(rng).episodes])
    with pytest.raises(ValueError, match=r"100% of its steps take actions that nobody took .* such as 1 in 0"):
        improvement(always, lambda context: SECOND)
    with pytest.raises(ValueError, match="must hold propensities"):
        improvement(by_doctors(rng), lambda context: FIRST)
    few = Log(ARMS, [changed(e, propensities=[0.5]) for e in by_doctors(rng, 20).episodes])
    with pytest.raises(ValueError, match=r"does not say what `policy` is worth: \d+ episodes count"):
        improvement(few, lambda context: FIRST)
    cut = Log(SPACE, [episode.first(2) for episode in random_log(rng).episodes])
    with pytest.raises(ValueError, match=r"`log.whole\(\)` leaves others out"):
        improvement(cut, lambda context: np.full((3, 2, 2), 0.5))


def test_weights_of_states_are_the_ratio_of_two_marginals(rng):
    """In one context: d̂^π_h(s), pushed forward through means over the log, over d̂_h(s)."""
    log, target = random_log(rng, 60, context="c"), policies(rng)["mild"]
    steps, everybody = LoggedSteps(log, lambda context: target), np.ones(60, dtype=bool)
    found = weights_of_states(steps, np.zeros((1, 0)), steps.ratios(), everybody)
    states, wanted = log.states, np.bincount(log.states[:, 0], minlength=2) / 60
    for h in range(SPACE.horizon):
        logged = np.bincount(states[:, h], minlength=2) / 60
        np.testing.assert_allclose(found[:, h], (wanted / logged)[states[:, h]], rtol=1e-12)
        ratios = target[h, states[:, h], log.actions[:, h]] / log.propensities[:, h]
        following = [(wanted / logged)[states[:, h]] * ratios * (states[:, h + 1] == s) for s in (0, 1)]
        wanted = np.mean(following, axis=1)


def test_where_products_fail_states_are_weighted(rng):
    """In a single state all weights of states are 1, whatever was done before; products of ratios are 0 or large."""
    space, target = Space(states=1, actions=2, horizon=5), np.tile([0.9, 0.1], (5, 1, 1))
    steps = {"context": "c", "states": np.zeros(6, dtype=int), "propensities": np.full(5, 0.5)}
    every = list(itertools.product((0, 1), repeat=5)) * 8
    log = Log(space, [Episode(**steps, actions=actions, rewards=rng.random(5)) for actions in every])
    assert importance_sampling(log, lambda context: target).effective_sample_size < 30
    made = improvement(log, lambda context: target)
    assert made.effective_sample_size == pytest.approx(len(log) * 7 / 8 / (2 * (0.9**2 + 0.1**2)))
    assert abs(made.value) < 4.0 * made.standard_error


def test_contexts_need_not_come_again(rng):
    """The second arm pays (1 + x)/2 for a context x; lines through other people's rewards know the best arm's worth."""
    log = Log(ARMS)
    for x in rng.uniform(-1.0, 1.0, size=300):
        arm = int(rng.integers(2))
        steps = {"states": [0, 0], "actions": [arm], "rewards": [0.5 + 0.5 * x if arm else 0.2]}
        log.add(Episode(context=np.array([x]), **steps, propensities=[0.5]))
    best = lambda context: SECOND if 0.5 + 0.5 * context[0] > 0.2 else FIRST  # noqa: E731
    scores, exact = (
        improvement(log, best).contributions + log.returns,
        [max(0.2, 0.5 + 0.5 * c[0]) for c in log.contexts],
    )
    assert np.corrcoef(scores[60:], exact[60:])[0, 1] > 0.98


def test_features_that_are_no_vectors_are_refused(rng):
    for features in (lambda c: 1.0, lambda c: [np.nan], lambda c: np.ones(int(c[0] > 0))):
        with pytest.raises(ValueError, match="`features` must return vectors of one length with finite numbers, got"):
            improvement(random_log(rng), lambda context: np.full((3, 2, 2), 0.5), features=features)
