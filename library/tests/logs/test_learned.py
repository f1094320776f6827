"""Logs of agents that learned: what was unlucky is not tried again, and plain means are too low."""

import numpy as np
import pytest

from library.tests.logs.tables import changed
from omg_cmdp import Episode, Log, Space
from omg_cmdp.logs import Support, evaluate, fitted_q, importance_sampling
from omg_cmdp.logs.off_policy.evaluation import UNCHANGING

SPACE, UNIFORM = Space(states=1, actions=2, horizon=1), np.full((1, 1, 2), 0.5)


def greedy_log(rng, rounds=200, explore=0.2):
    """Return what an agent logs that mostly plays the better mean so far, of two arms that both pay ½ on average."""
    paid, tried, log = np.ones(2), np.full(2, 2.0), Log(SPACE)
    for _ in range(rounds):
        chances = explore / 2 + (1.0 - explore) * np.eye(2)[np.argmax(paid / tried)]
        action, reward = int(rng.random() > chances[0]), float(rng.random() < 0.5)
        paid[action], tried[action] = paid[action] + reward, tried[action] + 1.0
        steps = {"states": [0, 0], "actions": [action], "rewards": [reward]}
        log.add(Episode(context="c", **steps, propensities=[chances[action]]))
    return log


def test_what_is_believed_of_a_log_that_learned_is_right(rng):
    """The uniform policy is worth ½: fitted Q is below it on average, and what is believed covers it."""
    logs = [greedy_log(rng) for _ in range(60)]
    errors = np.array([fitted_q(log, lambda context: UNIFORM).value - 0.5 for log in logs])
    assert errors.mean() < -2.0 * errors.std() / np.sqrt(len(errors))
    every = [evaluate(log, lambda context: UNIFORM) for log in logs]
    learned = [made for made in every if made.changed and made.supported]  # now and then the first arm stays the better
    assert len(learned) > 40
    assert all(made.supported[0] != "fitted Q" for made in learned)
    intervals = [made.intervals[made.supported[0]] for made in learned]
    assert np.mean([low <= 0.5 <= high for low, high in intervals]) >= 0.85


def test_the_verdict_says_so(rng):
    made = evaluate(greedy_log(rng), lambda context: UNIFORM)
    assert made.estimates["fitted Q"].support is Support.LEARNED
    assert made.intervals["fitted Q"] == (0.0, 1.0)
    assert made.table().loc["fitted Q", "support"] == Support.LEARNED.value


def test_what_a_log_cannot_tell_is_assumed_aloud(rng):
    """Without propensities nobody knows whether the policy changed; nor if no context came twice."""
    log = greedy_log(rng)
    unknown = Log(SPACE, [changed(episode, propensities=None) for episode in log.episodes])
    made = evaluate(unknown, lambda context: UNIFORM)
    assert made.changed is None
    assert made.advice.startswith("Believe fitted Q")
    assert made.advice.endswith(UNCHANGING)
    once = Log(SPACE, [changed(episode, context=place) for place, episode in enumerate(log.episodes)])
    assert evaluate(once, lambda context: UNIFORM).changed is None


def test_a_policy_that_stayed_the_same_is_known_to(rng):
    """Other probabilities at another step, in another state or of another context are no change."""
    space = Space(states=2, actions=2, horizon=2, start=[0.5, 0.5])
    policy = {context: rng.dirichlet(np.ones(2), size=(2, 2)) for context in "ab"}
    log = Log(space)
    for _ in range(200):
        context, states, actions = "ab"[rng.integers(2)], rng.integers(2, size=3), rng.integers(2, size=2)
        chances = policy[context][[0, 1], states[:-1], actions]
        steps = {"states": states, "actions": actions, "rewards": rng.random(2)}
        log.add(Episode(context=context, **steps, propensities=chances))
    made = evaluate(log, lambda context: np.full((2, 2, 2), 0.5))
    assert made.changed is False
    assert made.estimates["fitted Q"].support is Support.GOOD
    assert "learn" not in made.advice


@pytest.mark.parametrize("cut", [True, False])
def test_the_end_of_an_episode_is_no_change(rng, cut):
    """Ended episodes have probability 1 where they stay, and those cut off have none."""
    space = Space(states=2, actions=2, horizon=2, admissible=[[True, True], [True, False]])
    steps = {"context": "c", "propensities": [0.5] if cut else [0.5, 1.0]}
    short = {"states": [0, 1], "actions": [0], "rewards": [1.0]}
    whole = {"states": [0, 1, 1], "actions": [0, 0], "rewards": [1.0, 0.0], "length": 1}
    log = Log(space, [Episode(**steps, **(short if cut else whole))] * 40)
    assert evaluate(log, lambda context: [[[1.0, 0.0]] * 2] * 2).changed is False


@pytest.mark.slow
def test_weights_do_not_mind(rng):
    """Unbiased whatever played, as long as the propensities are true."""
    values = [importance_sampling(greedy_log(rng), lambda context: UNIFORM).value for _ in range(60)]
    assert abs(np.mean(values) - 0.5) < 4.0 * np.std(values) / np.sqrt(60)
