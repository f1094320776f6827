"""Finite classes: Bayes by hand, symmetries, smoothing, the cache of contexts, bounds."""

import math

import numpy as np
import pytest

from omg_cmdp.oracles import FiniteDynamics, FiniteRewards, LogLossRewards
from omg_cmdp.oracles.finite import function_class
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY

RATES = ("guarded", "proven", "realizable")
CLASSES = {FiniteRewards: 2.0, FiniteDynamics: 1.0}  # and their rates η
CONTEXTS = ("a", "b")
STATES, ACTIONS, HORIZON = 3, 2, 4
BOTH = pytest.mark.parametrize("kind", CLASSES)


def random_class(rng, kind, count, steps=()):
    """Return label -> (N, [H,] S, A[, S])."""
    shape = (count, *steps, STATES, ACTIONS)
    if kind is FiniteRewards:
        return {label: rng.random(shape) for label in CONTEXTS}
    return {label: rng.dirichlet(np.ones(STATES), size=shape) for label in CONTEXTS}


def random_episodes(rng, kind, count, horizon=HORIZON):
    episodes = []
    for _ in range(count):
        outcomes = rng.random(horizon) if kind is FiniteRewards else rng.integers(STATES, size=horizon)
        states, actions = rng.integers(STATES, size=horizon), rng.integers(ACTIONS, size=horizon)
        episodes.append((rng.choice(CONTEXTS).item(), states, actions, outcomes))
    return episodes


def taught(oracle, episodes):
    for episode in episodes:
        oracle.update(*episode)
    return oracle


def answers(oracle, contexts=CONTEXTS):
    return np.array([oracle.predict(c) for c in contexts]), np.array([oracle.uncertainty(c) for c in contexts])


def same_answers(oracle, other):
    for mine, yours in zip(answers(oracle), answers(other), strict=True):
        np.testing.assert_allclose(mine, yours, rtol=0.0, atol=1e-12)


def losses_by_hand(kind, tables, episodes):
    """Return each function's loss, by a plain loop."""
    losses = np.zeros(len(tables["a"]))
    for context, states, actions, outcomes in episodes:
        for h, (s, a, outcome) in enumerate(zip(states, actions, outcomes, strict=True)):
            for i, table in enumerate(tables[context]):
                here = table[h] if table.ndim == (3 if kind is FiniteRewards else 4) else table
                losses[i] += (here[s, a] - outcome) ** 2 if kind is FiniteRewards else -math.log(here[s, a, outcome])
    return losses


def mixed_by_hand(kind, weights, tables):
    if kind is FiniteDynamics:
        return np.tensordot(weights, tables, axes=1)
    zero, one = (-0.5 * np.log(np.tensordot(weights, np.exp(-2.0 * (tables - y) ** 2), axes=1)) for y in (0.0, 1.0))
    return np.clip(0.5 + 0.5 * (zero - one), 0.0, 1.0)


def posterior_by_hand(losses, rate):
    return np.exp(-rate * losses) / np.exp(-rate * losses).sum()


@BOTH
@pytest.mark.parametrize("steps", [(), (HORIZON,)])
@pytest.mark.parametrize("rate", RATES)
def test_predictions_are_the_aggregate_by_hand(kind, steps, rate, rng):
    tables, episodes = random_class(rng, kind, 5, steps), random_episodes(rng, kind, 6)
    oracle, eta = kind(tables, horizon=HORIZON, rate=rate), CLASSES[kind]
    own = np.zeros(2)  # the losses of the two forecasters
    for t, (context, states, actions, outcomes) in enumerate(episodes):
        losses = losses_by_hand(kind, tables, episodes[:t])
        tempers = {"realizable": [1], "proven": [HORIZON], "guarded": [1, HORIZON]}[rate]
        forecasts = [mixed_by_hand(kind, posterior_by_hand(losses, eta / tau), tables[context]) for tau in tempers]
        guards = posterior_by_hand(own[: len(tempers)], eta / HORIZON)
        expected = mixed_by_hand(kind, guards, np.array(forecasts))
        np.testing.assert_allclose(oracle.predict(context), expected, rtol=0.0, atol=1e-12)
        posterior, truths = posterior_by_hand(losses, eta), tables[context]
        divergence = (truths - expected) ** 2
        if kind is FiniteDynamics:
            divergence = ((np.sqrt(truths) - np.sqrt(expected)) ** 2).sum(axis=-1)
        np.testing.assert_allclose(oracle.uncertainty(context), np.tensordot(posterior, divergence, axes=1), atol=1e-12)
        for k, forecast in enumerate(forecasts):
            own[k] += losses_by_hand(kind, {"a": forecast[None], context: forecast[None]}, [episodes[t]])[0]
        oracle.update(context, states, actions, outcomes)
    assert oracle.best_loss() == pytest.approx(losses_by_hand(kind, tables, episodes).min(), rel=1e-12)


@BOTH
def test_all_rates_coincide_for_one_step(kind, rng):
    tables, episodes = random_class(rng, kind, 6), random_episodes(rng, kind, 20, horizon=1)
    oracles = [taught(kind(tables, horizon=1, rate=rate), episodes) for rate in RATES]
    for other in oracles[1:]:
        same_answers(oracles[0], other)
        assert other.loss == oracles[0].loss
        assert other.regret_bound(10, 1) == oracles[0].regret_bound(10, 1) == math.log(6) / CLASSES[kind]


@BOTH
def test_a_class_of_one_is_its_function(kind, rng):
    tables = random_class(rng, kind, 1)
    oracle = taught(kind(tables, horizon=HORIZON), random_episodes(rng, kind, 10))
    for context in CONTEXTS:
        np.testing.assert_allclose(oracle.predict(context), tables[context][0], rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(oracle.uncertainty(context), 0.0, atol=1e-15)


@BOTH
@pytest.mark.parametrize("rate", RATES)
def test_order_and_copies_of_the_functions_do_not_matter(kind, rate, rng):
    tables, episodes = random_class(rng, kind, 7), random_episodes(rng, kind, 15)
    order = rng.permutation(7)
    oracle = taught(kind(tables, horizon=HORIZON, rate=rate), episodes)
    for change in (lambda table: table[order], lambda table: np.repeat(table, 2, axis=0)):
        other = taught(kind({c: change(t) for c, t in tables.items()}, horizon=HORIZON, rate=rate), episodes)
        same_answers(oracle, other)
        assert other.loss == pytest.approx(oracle.loss, rel=1e-12)
        assert other.best_loss() == pytest.approx(oracle.best_loss(), rel=1e-12)


@BOTH
def test_mappings_callables_labels_and_vectors_are_the_same(kind, rng):
    tables, episodes = random_class(rng, kind, 4), random_episodes(rng, kind, 10)
    by_label = taught(kind(tables, horizon=HORIZON), episodes)
    same_answers(by_label, taught(kind(tables.__getitem__, horizon=HORIZON), episodes))
    vectors = {"a": np.array([0.0, 1.0]), "b": np.array([1.0, 0.0])}
    for dress in (np.array, list, tuple):
        oracle = kind(lambda vector: tables["a" if vector[1] else "b"], horizon=HORIZON)
        taught(oracle, [(dress(vectors[context]), *rest) for context, *rest in episodes])
        for context in CONTEXTS:
            np.testing.assert_array_equal(oracle.predict(dress(vectors[context])), by_label.predict(context))


@BOTH
def test_a_class_that_changes_is_refused(kind, rng):
    tables = random_class(rng, kind, 4)
    tables["fewer"] = tables["a"][:3]
    tables["smaller"] = np.full((4, 2, ACTIONS) if kind is FiniteRewards else (4, 2, ACTIONS, 2), 0.5)
    tables["steps"] = np.stack([tables["a"]] * HORIZON, axis=1)
    tables["wild"] = 2.0 * tables["a"]
    oracle = taught(kind(tables, horizon=HORIZON), random_episodes(rng, kind, 3))
    before = answers(oracle)
    for context in ("fewer", "smaller", "steps", "wild", "unknown", ["a"], None):
        with pytest.raises(ValueError, match="`predictions`"):
            oracle.predict(context)
        with pytest.raises(ValueError, match="`predictions`"):
            oracle.update(context, *random_episodes(rng, kind, 1)[0][1:])
    assert all(map(np.array_equal, answers(oracle), before))
    with pytest.raises(ValueError, match="`horizon`"):
        kind({"a": tables["steps"]}, horizon=3).update("a", [0] * 3, [0] * 3, [0] * 3)


def crowded(rng, kind, monkeypatch):
    """Return an oracle that saw 40 contexts and has room for a few, one with room for all, and what is evaluated."""
    tables, asked = np.array([random_class(rng, kind, 8)["a"] for _ in range(40)]), []
    episodes = [(int(rng.integers(40)), *episode[1:]) for episode in random_episodes(rng, kind, 60)]
    roomy = taught(kind(lambda i: tables[i], horizon=HORIZON), episodes)
    monkeypatch.setattr(function_class, "KEPT_BYTES", 30 * tables[0].nbytes)
    oracle = kind(lambda i: (asked.append(i), tables[i])[1], horizon=HORIZON)
    for episode in episodes:
        oracle.uncertainty(episode[0])
        oracle.update(*episode)
    return oracle, roomy, asked


@BOTH
def test_forgotten_contexts_are_evaluated_again(kind, rng, monkeypatch):
    oracle, roomy, asked = crowded(rng, kind, monkeypatch)
    assert len(asked) > len(set(asked))
    assert all(map(np.array_equal, answers(oracle, range(40)), answers(roomy, range(40))))
    asked.clear()
    answers(oracle, [39, 38, 39])
    assert not asked  # the last ones are kept


@BOTH
def test_the_cache_of_contexts_is_bounded(kind, rng, monkeypatch):
    oracle = crowded(rng, kind, monkeypatch)[0]
    kept = oracle.forecasters.functions._kept._kept.values()
    held = sum(v.nbytes for f in kept for v in vars(f).values() if isinstance(v, np.ndarray) and v.base is None)
    assert 1 < len(kept) < 40
    assert held <= function_class.KEPT_BYTES


def test_smoothing_stays_in_the_support(rng):
    support = (rng.random((STATES, ACTIONS, STATES)) < 0.5) | (np.arange(STATES) == 0)
    tables = rng.dirichlet(np.ones(STATES), size=(5, STATES, ACTIONS)) * support
    tables[0, ..., 1:] = 0.0  # and some zeros inside of it
    tables /= tables.sum(axis=-1, keepdims=True)
    smooth = 0.99 * tables + 0.01 * support / support.sum(axis=-1, keepdims=True)
    oracle, losses = FiniteDynamics(lambda _: tables, horizon=HORIZON, smoothing=0.01, support=support), np.zeros(5)
    for episode in random_episodes(rng, FiniteDynamics, 5):
        prediction = oracle.predict("a")
        np.testing.assert_allclose(prediction.sum(axis=-1), 1.0, rtol=1e-12)
        np.testing.assert_array_equal(prediction > 0.0, support)
        oracle.update(*episode)  # outside the support too
        losses -= np.log(smooth[:, *episode[1:]] + SMALLEST_PROBABILITY).sum(axis=1)
        np.testing.assert_allclose(oracle.state()["class_losses"], losses, rtol=1e-12)
    everywhere = FiniteDynamics(lambda _: tables, horizon=1, smoothing=0.3).predict("a")
    np.testing.assert_allclose(everywhere, 0.7 * tables.mean(axis=0) + 0.3 / STATES, rtol=1e-12)
    with pytest.raises(ValueError, match="`support`"):
        FiniteDynamics(lambda _: tables, horizon=1, smoothing=0.1, support=support[:2, :, :2]).predict("a")


def test_a_transition_that_all_functions_exclude_costs_much(rng):
    tables = np.broadcast_to(np.eye(1, STATES), (3, STATES, ACTIONS, STATES))
    for rate in RATES:
        oracle = FiniteDynamics(lambda _: tables, horizon=HORIZON, rate=rate)
        for _ in range(50):
            oracle.update("a", [0] * HORIZON, [0] * HORIZON, [1] * HORIZON)
        assert oracle.loss == pytest.approx(-50 * HORIZON * math.log(SMALLEST_PROBABILITY), rel=1e-12)
        assert oracle.loss == pytest.approx(oracle.best_loss(), rel=1e-12)
        np.testing.assert_allclose(oracle.predict("a"), tables[0], rtol=0.0, atol=1e-12)


def test_losses_of_rare_transitions_keep_their_digits(rng):
    """Their product would underflow."""
    rare = 10.0 ** rng.uniform(-160, -1, (6, STATES, ACTIONS, STATES - 1))
    tables = np.concatenate([1.0 - rare.sum(axis=-1, keepdims=True), rare], axis=-1)
    oracle, [episode] = FiniteDynamics(lambda _: tables, horizon=60), random_episodes(rng, FiniteDynamics, 1, 60)
    oracle.update(*episode)
    expected = -np.log(tables[:, *episode[1:]] + SMALLEST_PROBABILITY).sum(axis=1)
    np.testing.assert_allclose(oracle.state()["class_losses"], expected, rtol=1e-12)


@BOTH
def test_bounds(kind, rng):
    price, tables = HORIZON / CLASSES[kind], random_class(rng, kind, 6)
    oracles = {rate: kind(tables, horizon=HORIZON, rate=rate) for rate in RATES}
    assert all(oracle.regret_bound(10, HORIZON) == math.inf for oracle in oracles.values())  # N is not known yet
    for oracle in oracles.values():
        oracle.predict("a")
        assert oracle.regret_bound(10, HORIZON + 1) == math.inf
    assert oracles["proven"].regret_bound(10, HORIZON) == pytest.approx(price * math.log(6))
    assert oracles["guarded"].regret_bound(10, HORIZON) == pytest.approx(price * math.log(12))
    assert oracles["realizable"].regret_bound(10, HORIZON) == math.inf
    if kind is FiniteDynamics:
        smooth = kind(tables, horizon=HORIZON, smoothing=0.1)
        smooth.predict("a")
        added = smooth.regret_bound(10, HORIZON) - oracles["guarded"].regret_bound(10, HORIZON)
        assert added == pytest.approx(10 * HORIZON * math.log(1.0 / 0.9))


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_coins_at_the_practical_rate_predict_the_mean_of_the_posterior(horizon, rng):
    """Bayes' rule by hand for rewards that are 0 or 1: the oracle that the corollary of docs/theory.md is about."""
    tables = {label: rng.uniform(0.05, 0.95, (6, 2, 2)) for label in "ab"}
    oracle = LogLossRewards(tables, horizon=horizon, rate="realizable")
    likelihoods = np.ones(6)
    for label in "abbab":
        states, actions = rng.integers(2, size=(2, horizon))
        rewards = rng.integers(2, size=horizon).astype(float)
        oracle.update(label, states, actions, rewards)
        said = tables[label][:, states, actions]
        likelihoods *= np.where(rewards == 1.0, said, 1.0 - said).prod(axis=1)
        posterior = likelihoods / likelihoods.sum()
        for context in "ab":
            mean = np.tensordot(posterior, tables[context], axes=1)
            np.testing.assert_allclose(oracle.predict(context), mean, rtol=1e-12)
            variance = np.tensordot(posterior, (tables[context] - mean) ** 2, axes=1)
            np.testing.assert_allclose(oracle.uncertainty(context), variance, rtol=1e-9)
    assert math.isinf(oracle.regret_bound(10, horizon))
