"""Is it better than what was done: estimated propensities, paired differences, and refusals with a reason."""

import sys

import numpy as np
import pytest

from library.tests.logs.tables import SPACE, changed, random_log
from library.tests.logs.test_learned import UNIFORM, greedy_log
from omg_cmdp import Episode, Log, Space
from omg_cmdp.logs import estimate_propensities, improvement

ARMS = Space(states=1, actions=2, horizon=1)
FIRST, SECOND = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])


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
    with pytest.raises(ValueError, match=r"`log.whole\(\)` leaves such episodes out"):
        improvement(cut, lambda context: np.full((3, 2, 2), 0.5))
