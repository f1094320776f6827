"""Estimated propensities: what the classifier is asked, what becomes of its answers, and what is said of them."""

import numpy as np
import pytest

from omg_cmdp import Episode, Log, Space
from omg_cmdp.logs import estimate_propensities
from omg_cmdp.logs.off_policy.propensities import Overlap

SPACE = Space(states=3, actions=3, horizon=2, start=np.ones(3) / 3, admissible=np.arange(9).reshape(3, 3) < 8)
CHANCES = np.array([0.7, 0.299, 0.001])


class Recorded:
    """A classifier with one answer for everybody, which keeps what it was fitted to and what it was asked."""

    classes_ = np.arange(3)

    def __init__(self):
        self.record = []

    def __deepcopy__(self, memo):
        return self

    def fit(self, inputs, actions):
        self.record.append([inputs])
        return self

    def predict_proba(self, inputs):
        self.record[-1].append(inputs)
        return np.tile(CHANCES, (len(inputs), 1))


@pytest.fixture
def people(rng):
    """Return episodes of people with a number each, in states 0 and 2, some of one step; nobody takes action 2."""
    log = Log(SPACE)
    for number in rng.uniform(-1.0, 1.0, size=401):
        states, length = rng.choice([0, 2], size=3), int(rng.integers(1, 3))
        states[length:] = states[length]
        steps = {"states": states, "actions": rng.integers(2, size=2), "rewards": [0.0, 0.0], "length": length}
        log.add(Episode(context=np.array([number]), **steps))
    return log


def decisions(log):
    """Return the standardised number of each person, and (person, step, state, action) of every decision."""
    numbers = np.array(log.contexts)[:, 0]
    numbers = (numbers - numbers.mean()) / numbers.std()
    return numbers, [(i, h, e.states[h], e.actions[h]) for i, e in enumerate(log.episodes) for h in range(e.length)]


def test_choices_are_predicted_from_those_of_other_people(people):
    """Inputs are the number, the step, the state, and the number again for each state that was visited."""
    (x, made), model = decisions(people), Recorded()
    estimate_propensities(people, model)
    inputs = [[x[i], h == 0, h == 1, s == 0, s == 2, x[i] * (s == 0), x[i] * (s == 2)] for i, h, s, _ in made]
    assert len(model.record) == 5
    for known, asked in model.record:
        everything = np.vstack([known, asked])
        np.testing.assert_allclose(
            everything[np.lexsort(everything.T)], np.array(inputs)[np.lexsort(np.transpose(inputs))]
        )
        assert not set(known[:, 0]) & set(asked[:, 0])
        assert len(set(asked[:, 0])) in (80, 81)


def test_answers_keep_a_little_of_the_uniform_distribution(people):
    """With n examples of A actions, p becomes (1 - A/(n + A))·p + 1/(n + A), divided among what is allowed."""
    (x, made), model = decisions(people), Recorded()
    estimated = estimate_propensities(people, model, folds=2)
    examples = {row[0]: len(known) for known, asked in model.record for row in asked}
    rows = {i: (1.0 - 3 / (examples[x[i]] + 3)) * CHANCES + 1 / (examples[x[i]] + 3) for i, *_ in made}
    taken = np.array([rows[i][a] / (rows[i][:2].sum() if s == 2 else 1.0) for i, _, s, a in made])
    np.testing.assert_allclose([estimated.propensities[i, h] for i, h, *_ in made], taken)
    overlap = estimated.overlap
    assert (overlap.smallest, overlap.steps) == (estimated.propensities.min(), len(made))
    assert overlap.effective_sample_size == pytest.approx((1.0 / taken).sum() ** 2 / (1.0 / taken**2).sum())
    assert overlap.rare == pytest.approx(np.mean([s == 0 for _, _, s, _ in made]))
    assert overlap.never_taken == ((0, 2),)


def test_where_everybody_did_the_same_nothing_is_asked():
    steps = {"context": "c", "states": [0, 0], "rewards": [0.0]}
    log, model = Log(Space(states=1, actions=2, horizon=1), [Episode(**steps, actions=[1])] * 10), Recorded()
    np.testing.assert_allclose(estimate_propensities(log, model).propensities, 0.8 + 0.2 / 2)
    assert not model.record


@pytest.mark.parametrize(("count", "end"), [(8, "7 in 0. "), (9, "7 in 0 and 1 more. "), (11, "7 in 0 and 3 more. ")])
def test_eight_actions_that_were_never_taken_are_named(count, end):
    pairs = tuple((0, action) for action in range(count))
    text = str(Overlap(smallest=0.5, effective_sample_size=1.0, steps=1, rare=0.25, never_taken=pairs))
    assert f"6 in 0, {end}" in text
    assert "At 25 % of the steps" in text
    assert "Never taken" not in str(Overlap(smallest=0.5, effective_sample_size=1.0, steps=1, rare=0.0, never_taken=()))
