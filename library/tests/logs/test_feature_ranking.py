"""Suggested features: a cross that matters comes first, noise gains nothing, rewards and dynamics are told apart."""

import numpy as np
import pytest

import omg_cmdp as omg

SPACE = omg.Space(states=2, actions=1, horizon=2)


def logged(rng, chance, reward, episodes=400):
    """Return a log of records with three columns; `chance` of state 1 and mean `reward` depend on the record."""
    log = omg.Log(SPACE)
    for _ in range(episodes):
        record = {
            "age": float(rng.uniform(-1.0, 1.0)),
            "ward": str(rng.choice(["a", "b"])),
            "weight": None if rng.random() < 0.3 else float(rng.normal()),
        }
        states = [0, *(rng.random(2) < chance(record)).astype(int).tolist()]
        rewards = (rng.random(2) < reward(record)).astype(float)
        steps = {"states": states, "actions": [0, 0], "rewards": rewards, "propensities": [1.0, 1.0]}
        log.add(omg.Episode(context=record, **steps))
    return log


def sign(record):
    return 1.0 if record["ward"] == "a" else -1.0


def test_the_cross_comes_first_and_noise_gains_nothing(rng):
    log = logged(rng, lambda r: 0.5, lambda r: 0.5 + 0.45 * r["age"] * sign(r))
    found = omg.suggest_features(log)
    best = found.suggestions[0]
    assert best.columns == ("age", "ward")
    assert best.gain > 3.0 * best.error
    assert best.rewards > 0.05 > abs(best.dynamics)
    assert found.crosses[0] == ("age", "ward")
    assert "age × ward" in str(found)
    assert all(each.gain < 3.0 * each.error + 0.01 for each in found.suggestions[1:])


def test_what_moves_the_dynamics_is_told_apart(rng):
    found = omg.suggest_features(logged(rng, lambda r: 0.9 if r["weight"] is None else 0.4, lambda r: 0.5))
    best = found.suggestions[0]
    assert (best.feature, best.kind) == ("weight missing", "missing")
    assert best.dynamics > 0.05 > abs(best.rewards)
    assert list(found.table().columns[:3]) == ["feature", "kind", "gain"]


def test_too_few_episodes_are_refused(rng):
    log = logged(rng, lambda r: 0.5, lambda r: 0.5, episodes=30)
    with pytest.raises(ValueError, match="at least 10 episodes for each of 2 or more `folds`"):
        omg.suggest_features(log)
    assert np.isfinite([each.gain for each in omg.suggest_features(log, folds=2)]).all()
