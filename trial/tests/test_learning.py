"""Learning again after outcomes that came late: the same model, and little work."""

import json

import numpy as np
import pytest

from omg_trial import learning
from omg_trial.learning import Trainer, model_digest
from trial.tests.trials import Trialist, desk


@pytest.fixture(scope="module")
def dataset():
    at = desk("[learning]\nafter_episodes = 0\n")
    Trialist(at, seed=0).play(60)
    return at.trial, at.state.dataset()[0]


@pytest.fixture
def updates(monkeypatch, dataset):
    monkeypatch.setattr(learning, "REMEMBERED", 10)
    kind, counted = type(dataset[0].agent()), []
    update = kind.update
    monkeypatch.setattr(kind, "update", lambda agent, *given: (counted.append(1), update(agent, *given))[1])
    return counted


def changed(examples, place):
    """Return the examples after a reward of one of them was corrected."""
    old = examples[place]
    new = old._replace(rewards=tuple(0.25 for _ in old.rewards))
    return (*examples[:place], new, *examples[place + 1 :])


def test_a_model_is_the_same_whatever_was_learned_before(dataset, updates, rng):
    trial, examples = dataset
    trainer = Trainer(trial)
    for _ in range(12):
        length, place = int(rng.integers(1, len(examples) + 1)), int(rng.integers(len(examples)))
        now = changed(examples, place)[:length]
        settled = int(rng.integers(length + 1))
        assert model_digest(trainer.train(now, settled)) == model_digest(Trainer(trial).train(now))


def test_what_changes_late_is_learned_again_from_shortly_before_it(dataset, updates):
    trial, examples = dataset
    trainer = Trainer(trial)
    trainer.train(examples, len(examples))
    for place in (len(examples) - 3, 25, 0):
        updates.clear()
        trainer.train(changed(examples, place), len(examples))
        assert len(updates) == len(examples) - place // 10 * 10
        trainer.train(examples, len(examples))


def test_one_more_example_is_one_update(dataset, updates):
    trial, examples = dataset
    trainer = Trainer(trial)
    for length in range(1, len(examples)):
        updates.clear()
        trainer.train(examples[:length], length)
        assert np.sum(updates) == 1
    assert len(trainer._known[1]) <= learning.MOST_REMEMBERED


@pytest.mark.parametrize("where", ["train", "decide"])
def test_what_an_error_says_is_in_no_incident(monkeypatch, where):
    """It may repeat a person's context; its kind is enough to find the cause."""
    at = desk("[learning]\nafter_episodes = 0\n")
    Trialist(at, seed=0).play(4)

    def fail(*_):
        raise ValueError("a person of 83 who lives alone")

    at.call("learn", {})
    monkeypatch.setattr(*((learning.Trainer, "train", fail) if where == "train" else (type(at.agent), "decide", fail)))
    at.learn_here()
    assert at.state.incidents[-1].check == "model refused"
    assert "ValueError" in at.state.incidents[-1].message
    assert not any("83 who" in event.text for event in at.store.read())


def test_a_model_that_does_not_fit_is_said(dataset):
    """Rewards depend on age and on who lives with whom together; the features of the trial have no such cross."""
    trial, examples = dataset
    rng, taught = np.random.default_rng(0), []
    for number in range(300):
        age, lives = float(rng.uniform(20, 90)), str(rng.choice(["alone", "with others"]))
        chance = 0.5 + 0.4 * (age - 55.0) / 35.0 * (1.0 if lives == "alone" else -1.0)
        context = json.dumps({"record": [["age", age], ["lives", lives]]})
        rewards = tuple((rng.random(4) < chance).astype(float).tolist())
        actions = tuple(rng.integers(3, size=4).tolist())
        steps = {"states": (0,) * 5, "actions": actions, "rewards": rewards}
        taught.append(examples[0]._replace(episode=number, context=context, **steps))
    told = learning.misfit(trial, Trainer(trial).train(tuple(taught)), tuple(taught))
    assert "age × lives=alone" in told
    assert learning.misfit(trial, Trainer(trial).train(examples), examples) is None
