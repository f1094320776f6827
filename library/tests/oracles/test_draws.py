"""Draws: valid tables, of the stated law, and as far from the prediction as `uncertainty` says."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from library.tests.oracles.catalogue import (
    DIMENSION,
    EVERY,
    REWARDS,
    SIZE,
    SUPPORT,
    VECTORS,
    build_oracle,
    shared_features,
)
from library.tests.oracles.linear.test_linear import dense_posterior
from library.tests.oracles.test_state import taught
from omg_cmdp import oracles
from omg_cmdp.oracles import draws
from omg_cmdp.oracles.draws import LIFE, Streams, empty_cache
from omg_cmdp.oracles.losses import loss_of
from omg_cmdp.oracles.simplex import dirichlet_divergence

HORIZON, DRAWS = 3, 4000


class Outsider(oracles.DynamicsOracle):
    """A foreign oracle: what must be written, and no more."""

    def __init__(self, transitions, uncertainty):
        self.transition_steps, self.claimed = transitions, uncertainty

    def predict(self, context):
        return self.transition_steps.copy()

    def uncertainty(self, context):
        return self.claimed.copy()

    def update(self, context, states, actions, next_states):
        """There is nothing to learn."""

    def regret_bound(self, episodes, horizon):
        return np.inf


class Stranger(Outsider, oracles.RewardOracle):
    """The same for rewards."""

    draws = oracles.RewardOracle.draws


def near(drawn, mean, variance):
    """Assert moments of `drawn` (n, ...), within five standard errors."""
    errors = np.sqrt(variance / len(drawn)) + 1e-12
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean), 5.0 * errors)
    fourth = ((drawn - mean) ** 4).mean(axis=0)
    np.testing.assert_array_less(
        np.abs(((drawn - mean) ** 2).mean(axis=0) - variance), 5.0 * np.sqrt(fourth / len(drawn)) + 1e-12
    )


# Systematic resampling


@pytest.mark.parametrize("count", [1, 2, 7, 16])
def test_an_index_comes_as_often_as_its_weight_says(count, rng):
    """⌊count·w⌋ or ⌈count·w⌉ times in one call, count·w on average, and at every place alike."""
    weights = rng.dirichlet(np.full(5, 0.5)) * 3.0
    weights[2] = 0.0
    shares = weights / weights.sum()
    drawn = np.array([draws.resample(weights, Streams.fresh(count, rng)) for _ in range(DRAWS)])
    times = (drawn[:, :, None] == np.arange(5)).sum(axis=1)
    assert (np.abs(times - count * shares) < 1.0 + 1e-9).all()
    hits = drawn[:, :, None] == np.arange(5)
    np.testing.assert_array_less(np.abs(hits.mean(axis=0) - shares), 5.0 * np.sqrt(0.25 / DRAWS))


def of_eight(weights, rng):
    return draws.resample(weights, Streams.fresh(8, rng))


def test_draws_of_two_oracles_are_not_paired(rng):
    """Two halves each: all four pairs are drawn, about equally often."""
    half = np.array([0.5, 0.5])
    pairs = np.concatenate([2 * of_eight(half, rng) + of_eight(half, rng) for _ in range(500)])
    np.testing.assert_allclose(np.bincount(pairs, minlength=4) / 4000, 0.25, atol=0.05)


def test_groups_are_resampled_on_their_own(rng):
    weights = np.array([[1.0, 1.0], [0.0, 2.0], [3.0, 1.0]])
    drawn = of_eight(weights, rng)
    np.testing.assert_array_equal(drawn.sum(axis=1), [4, 8, 2])


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2.0**-53])
def test_rounding_never_draws_what_has_no_weight(uniform):
    for weights in ([0.0, 0.1, 0.2, 0.7, 0.0], [0.0, 1e-300, 0.0], [1.0]):
        for count in (1, 3, 10):
            drawn = np.empty((1, count), dtype=np.int64)
            draws.compiled.systematic(np.array([weights]), np.full((1, count), uniform), drawn)
            assert (np.array(weights)[drawn] > 0.0).all()


def test_the_compiled_loop_against_plain_numpy(rng):
    weights, uniforms = rng.random((4, 9)) * rng.integers(0, 2, (4, 9)) + 0.01, rng.random((4, 6))
    drawn = np.empty((4, 6), dtype=np.int64)
    draws.compiled.systematic(weights, uniforms, drawn)
    for row, uniform, found in zip(weights, uniforms, drawn, strict=True):
        wanted = (np.arange(6) + uniform[0]) / 6.0 * row.sum()
        assert sorted(found) == np.searchsorted(row.cumsum(), wanted, side="right").tolist()


# Streams


def test_the_layers_of_the_ziggurat_have_the_same_area():
    """All of them, the lowest with the tail, and so the numbers have the normal law if the tail has."""
    edges = draws.random.EDGES
    heights = np.exp(-0.5 * edges**2)
    assert edges[0] * heights[1] == pytest.approx(draws.random.AREA, rel=1e-12)
    np.testing.assert_allclose(edges[1:-1] * np.diff(heights[1:]), draws.random.AREA, rtol=1e-8)
    beyond = np.sqrt(2.0 * np.pi) * special.ndtr(-edges[1])
    assert edges[1] * heights[1] + beyond == pytest.approx(draws.random.AREA, rel=1e-10)


def test_normal_numbers_have_the_normal_law():
    """In the middle, in the layers' corners and in the tail, where the three ways of making them meet."""
    normals = Streams.lasting(seed=3, episode=7, count=2).normals(500_000).ravel()
    assert stats.kstest(normals, stats.norm.cdf).pvalue > 1e-4
    tail = np.abs(normals[np.abs(normals) > draws.random.TAIL])
    assert stats.binomtest(len(tail), len(normals), 2.0 * stats.norm.sf(draws.random.TAIL)).pvalue > 1e-4
    assert stats.kstest(stats.norm.sf(tail) / stats.norm.sf(draws.random.TAIL), "uniform").pvalue > 1e-4
    edges = np.sort(draws.random.EDGES[1:])
    counts, _ = np.histogram(np.abs(normals), [*edges, np.inf])
    expected = len(normals) * np.diff([*(2.0 * stats.norm.cdf(edges)), 2.0])
    assert stats.chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.parametrize("shape", [1e-3, 0.03, 0.5, 1.0, 1.5, 40.0])
def test_rows_of_two_have_the_beta_law(shape):
    first = Streams.lasting(seed=5, episode=2, count=100_000).rows(np.array([shape, 0.7 * shape]))[:, 0]
    inside = (first > 0.0) & (first < 1.0)  # beyond them, doubles have no more numbers
    low, high = (special.betainc(shape, 0.7 * shape, at) for at in (first[inside].min(), first[inside].max()))
    seen = (special.betainc(shape, 0.7 * shape, first[inside]) - low) / (high - low)
    assert stats.kstest(seen, "uniform").pvalue > 1e-4
    assert stats.binomtest(int((first < 0.5).sum()), len(first), special.betainc(shape, 0.7 * shape, 0.5)).pvalue > 1e-4


def test_an_example_changes_one_number_of_a_row():
    """Where a count grows, the Gamma variates of the other entries stay: their ratios do not change."""
    streams, shapes = Streams.lasting(0, 0, count=64), np.array([[1.5, 2.5, 0.5, 0.1], [3.0, 1.0, 0.5, 0.5]])
    before = streams.rows(shapes)
    shapes[0, 0] += 1.0
    after = streams.rows(shapes)
    assert (before[:, 1] == after[:, 1]).all()
    assert (before[:, 0, 0] != after[:, 0, 0]).all()
    np.testing.assert_allclose(after[:, 0, 1:] * before[:, 0, 1:2], before[:, 0, 1:] * after[:, 0, 1:2], rtol=1e-12)


def test_keys_places_and_tags_have_streams_of_their_own(rng):
    """No two of 300 × 300 numbers are the same or go together, in either direction, nor with those of another tag."""
    streams = Streams.fresh(300, rng)
    one, other = streams.normals(300), streams.of(0).normals(300)
    assert len(np.unique(np.concatenate([one, other]))) == 180_000
    for pair in ((one, other), (one[1:], one[:-1]), (one[:, 1:], one[:, :-1]), (one, one.T[::-1])):
        assert abs(np.corrcoef(*(each.ravel() for each in pair))[0, 1]) < 5.0 / 300.0


def test_a_draw_lives_for_eight_episodes():
    """In every episode an eighth of the draws is new, and after eight all are."""
    numbers = [Streams.lasting(0, episode, count=32).normals(3) for episode in range(17)]
    for before, after in itertools.pairwise(numbers):
        assert (before != after).all(axis=1).sum() == (before != after).any(axis=1).sum() == 32 // LIFE
    assert (numbers[0] != numbers[LIFE]).all()


def test_a_cache_changes_no_bit(rng):
    """Whatever was drawn before, in another order or for other shapes, parts, seeds and tags."""
    cache = empty_cache()
    for episode in rng.integers(0, 12, size=40).tolist():
        seed, tag, count = (int(rng.integers(n)) for n in (2, 2, 2))
        shapes, parts = rng.integers(0, 2, (2, 4, 3)) * 0.5 + [0.1, 1.0, 0.0], rng.integers(0, 2, 5 + count)
        cached, plain = (Streams.lasting(seed, episode, 5 + count, held).of(tag) for held in (cache, None))
        assert cached.rows(shapes, parts).tobytes() == plain.rows(shapes, parts).tobytes()
        assert cached.normals(4).tobytes() == plain.normals(4).tobytes()


# Around a prediction


@pytest.mark.parametrize("steps", [(), (4,)], ids=["no steps", "steps"])
def test_rewards_around_a_prediction_are_normal(steps, rng):
    prediction, uncertainty = rng.uniform(0.4, 0.6, (*steps, 3, 2)), np.array([[1e-3, 0.0]] * 3)
    drawn = Stranger(prediction, uncertainty).draws("c", DRAWS, rng)
    assert drawn.shape == (DRAWS, *prediction.shape)
    near(drawn, prediction, np.broadcast_to(uncertainty, prediction.shape))
    assert (drawn[..., 1] == prediction[..., 1]).all()
    wide = Stranger(prediction, 100.0 + uncertainty).draws("c", 50, rng)
    assert (wide.min(), wide.max()) == (0.0, 1.0)


@pytest.mark.parametrize("steps", [(), (4,)], ids=["no steps", "steps"])
def test_rows_around_a_prediction_are_as_far_as_the_uncertainty(steps, rng):
    """E D² ≈ u, the mean is P̂, and what P̂ excludes stays excluded."""
    transitions = rng.dirichlet(np.full(6, 2.0), (*steps, 6, 2))
    transitions[..., 3:] = 0.0
    transitions /= transitions.sum(axis=-1, keepdims=True)
    for size in (1e-4, 1e-2):
        uncertainty = np.full((6, 2), size)
        drawn = Outsider(transitions, uncertainty).draws("c", DRAWS, rng)
        loss_of(Outsider(transitions, uncertainty)).check_tables("draws", drawn)
        assert (drawn[..., 3:] == 0.0).all()
        divergence = ((np.sqrt(drawn) - np.sqrt(transitions)) ** 2).sum(axis=-1).mean(axis=0)
        np.testing.assert_allclose(divergence, size, rtol=0.2)
        totals = 2.0 / (4.0 * size) - 1.0
        near(drawn, transitions, transitions * (1.0 - transitions) / (totals + 1.0))


def test_where_nothing_is_uncertain_the_row_itself_is_drawn(rng):
    transitions = rng.dirichlet(np.ones(3), (3, 2))
    transitions[0, 0], transitions[1, 1] = [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    uncertainty = np.full((3, 2), 0.1)
    uncertainty[2] = 0.0
    drawn = Outsider(transitions, uncertainty).draws("c", 20, rng)
    for pair in ((0, 0), (1, 1), (2, 0), (2, 1)):
        np.testing.assert_array_equal(drawn[:, *pair], np.broadcast_to(transitions[pair], (20, 3)))
    assert drawn[:, 0, 1].std(axis=0).min() > 0.0


@pytest.mark.parametrize("uncertainty", [1e-300, 1e-30, 2.0, 1e30])
def test_any_uncertainty_gives_valid_rows(uncertainty, rng):
    """For u → 0 the row of P̂, for large u a corner; entries of P̂ may be tiny."""
    transitions = np.array([[[0.7, 0.3 - 1e-150, 1e-150]], [[1.0, 0.0, 0.0]], [[0.2, 0.3, 0.5]]])
    drawn = Outsider(transitions, np.full((3, 1), uncertainty)).draws("c", 900, rng)
    loss_of(Outsider(transitions, None)).check_tables("draws", drawn)
    if uncertainty < 1.0:
        np.testing.assert_allclose(drawn, np.broadcast_to(transitions, drawn.shape), atol=1e-4)
    elif uncertainty > 3.0:
        assert (drawn.max(axis=-1) > 0.99).mean() > 0.9
        np.testing.assert_allclose((drawn[:, 2, 0] > 0.5).mean(axis=0), [0.2, 0.3, 0.5], atol=0.1)


# Dirichlet distributions


@pytest.mark.parametrize("total", [0.3, 3.0, 300.0])
def test_dirichlet_rows_have_their_moments(total, rng):
    shapes = total * rng.dirichlet(np.ones(5), 4)
    shapes[:, 1] = 0.0
    drawn = Streams.fresh(DRAWS, rng).rows(shapes)
    totals = shapes.sum(axis=-1, keepdims=True)
    mean = shapes / totals
    near(drawn, mean, mean * (1.0 - mean) / (totals + 1.0))
    divergence = ((np.sqrt(drawn) - np.sqrt(mean)) ** 2).sum(axis=-1)
    errors = divergence.std(axis=0) / np.sqrt(DRAWS)
    np.testing.assert_array_less(np.abs(divergence.mean(axis=0) - dirichlet_divergence(shapes, mean)), 5.0 * errors)


# The oracles


EXACT = ("finite", "product", "counts", "stepwise", "basis", "known")


@pytest.mark.parametrize("name", [name for name in EVERY if any(kind in name for kind in EXACT)])
def test_uncertainty_is_the_mean_divergence_of_draws(name, rng):
    """u = E[(f - f̂)²], or E[D²(P, P̂)], over posterior draws, at any rate."""
    contexts, oracle = build_oracle(name, HORIZON)
    taught(oracle, contexts, rng, 4)
    drawn = oracle.draws(contexts[1], DRAWS, rng)
    divergences = loss_of(oracle).divergence(drawn, oracle.predict(contexts[1]))
    error = divergences.std(axis=0) / np.sqrt(DRAWS)
    np.testing.assert_array_less(np.abs(divergences.mean(axis=0) - oracle.uncertainty(contexts[1])), 5.0 * error + 1e-9)


@pytest.mark.parametrize("name", ["aggregate rewards", "aggregate dynamics"])
def test_uncertainty_is_about_the_mean_divergence_of_draws(name, rng):
    """Draws of an aggregate take whole experts, while E D² is about their mean: within a factor of three."""
    contexts, oracle = build_oracle(name, HORIZON)
    taught(oracle, contexts, rng, 40)
    drawn = oracle.draws(contexts[1], DRAWS, rng)
    divergences = loss_of(oracle).divergence(drawn, oracle.predict(contexts[1])).mean(axis=0)
    ratio = divergences.mean() / oracle.uncertainty(contexts[1]).mean()
    assert 1.0 / 3.0 < ratio < 3.0


def test_a_finite_class_is_drawn_by_its_posterior(rng):
    oracle = oracles.FiniteRewards(REWARDS, horizon=HORIZON)
    taught(oracle, (0, 1), rng, 1)
    drawn = oracle.draws(1, DRAWS, rng)
    places = (drawn[:, None] == REWARDS[1]).all(axis=(2, 3))
    assert (places.sum(axis=1) == 1).all()
    np.testing.assert_allclose(places.mean(axis=0), oracle.posterior(1), atol=1.0 / DRAWS + 1e-12)


def test_product_draws_take_a_function_for_every_state_alone(rng):
    oracle = build_oracle("product rewards, guarded", HORIZON)[1]
    drawn = oracle.draws(1, 500, rng)
    places = (drawn[:, None] == REWARDS[1]).all(axis=3)  # (draws, functions, states)
    assert (places.sum(axis=1) == 1).all()
    chosen = places.argmax(axis=1)
    assert abs(np.corrcoef(chosen[:, 0], chosen[:, 1])[0, 1]) < 5.0 / np.sqrt(500)


def test_an_aggregate_draws_its_experts_by_their_weight(rng):
    experts = [oracles.KnownRewards([[level]], horizon=1) for level in (0.2, 0.6)]
    oracle = oracles.AggregateRewards(experts, horizon=1)
    oracle.update("c", [0], [0], [0.0])
    share = 1.0 / (1.0 + np.exp(-2.0 * (0.36 - 0.04)))
    drawn = oracle.draws("c", 1000, rng)
    assert set(drawn.ravel()) == {0.2, 0.6}
    assert (drawn == 0.2).mean() == pytest.approx(share, abs=1e-3)


def test_counted_rewards_are_beta(rng):
    oracle = oracles.CountRewards(**SIZE, horizon=2)
    for reward in (1.0, 0.0, 1.0):
        oracle.update("c", [1, 1], [0, 0], [1.0, reward])  # five successes, one failure
    oracle.update("c", [2, 2], [1, 1], [0.25, 0.5])
    drawn = oracle.draws("c", DRAWS, rng)
    assert stats.kstest(drawn[:, 1, 0], stats.beta(6.0, 2.0).cdf).pvalue > 1e-4
    assert stats.kstest(drawn[:, 0, 1], stats.uniform.cdf).pvalue > 1e-4
    assert abs(np.corrcoef(drawn[:, 1, 0], drawn[:, 0, 1])[0, 1]) < 5.0 / np.sqrt(DRAWS)
    pseudo = np.array([0.0, 1.0, 0.25, 0.5])
    near(drawn[:, 2, 1], pseudo.mean(), pseudo.var() / 5.0)


def test_counted_transitions_are_dirichlet(rng):
    """A coordinate of Dirichlet(a) is Beta(a_i, Σa - a_i); what the support excludes stays at zero."""
    oracle = oracles.CountDynamics(**SIZE, horizon=5, support=SUPPORT, prior=0.5)
    oracle.update("c", [0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 0, 2, 1, 1])
    drawn = oracle.draws("c", DRAWS, rng)
    assert (drawn[:, ~SUPPORT] == 0.0).all()
    assert (drawn[:, SUPPORT] > 0.0).all()
    for place, ours, others in (((0, 0, 0), 2.5, 1.5), ((1, 0, 1), 2.5, 1.0), ((2, 0, 2), 0.5, 1.0)):
        assert stats.kstest(drawn[:, *place], stats.beta(ours, others).cdf).pvalue > 1e-4


@pytest.mark.parametrize("prior", [1e-6, 1e-3, 1e3])
def test_extreme_priors_do_not_underflow(prior, rng):
    """For α → 0 a row is one of the corners, each equally often; for α → ∞ it is uniform."""
    oracle = oracles.CountDynamics(states=3, actions=1, horizon=1, prior=prior)
    drawn = oracle.draws("c", 900, rng)[:, 0, 0]
    np.testing.assert_allclose(drawn.sum(axis=-1), 1.0)
    if prior < 1.0:
        assert stats.chisquare((drawn > 0.5).sum(axis=0)).pvalue > 1e-4
        assert (drawn.max(axis=-1) > 0.99).mean() > 0.95
    else:
        np.testing.assert_allclose(drawn, 1.0 / 3.0, atol=0.06)


def test_steps_and_states_without_doubt_need_no_variates():
    """The sparse support is what is drawn: rows with one next state are exact."""
    support = np.zeros((40, 2, 40), dtype=bool)
    support[np.arange(40), :, (np.arange(40) + 1) % 40] = True
    support[0, 0] = True
    oracle = oracles.CountDynamics(states=40, actions=2, horizon=1, support=support)
    drawn = oracle.draws("c", 3, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn[:, 1:], np.broadcast_to(1.0 * support[1:], (3, 39, 2, 40)))


RIDGE = 40.0


def linear(rng, *, shared, rate="guarded"):
    """Return an oracle whose posterior stays away from 0 and 1, and its examples (z, s, a, r)."""
    features = {"features": shared_features, "shared": True, "intercept": False} if shared else {"intercept": False}
    oracle = oracles.LinearRewards(**SIZE, dimension=DIMENSION, horizon=2, ridge=RIDGE, rate=rate, **features)
    examples = []
    for t in range(20):
        states, actions, rewards = rng.integers(3, size=2), rng.integers(2, size=2), rng.uniform(0.3, 0.8, 2)
        oracle.update(VECTORS[t % 3], states, actions, rewards)
        examples += zip([VECTORS[t % 3]] * 2, states, actions, rewards, strict=True)
    return oracle, examples


@pytest.mark.parametrize("shared", [True, False], ids=["one θ", "a θ for each pair"])
def test_linear_samples_have_the_law_of_bayesian_ridge_regression(shared, rng):
    """N(½ + Zm, ZCZᵀ) over the rows Z of all pairs, computed here from the normal equations of each weight vector."""
    oracle, examples = linear(rng, shared=shared)
    pairs = SIZE["states"] * SIZE["actions"]
    mean, covariance = np.full(pairs, 0.5), np.zeros((pairs, pairs))
    for group in range(1 if shared else pairs):
        here = [(z, s, a, r) for z, s, a, r in examples if shared or s * SIZE["actions"] + a == group]
        data = np.array([shared_features(z)[s, a] if shared else z for z, s, a, _ in here]).reshape(-1, DIMENSION)
        weights, spread = dense_posterior(data, np.array([r for *_, r in here]) - 0.5, RIDGE)
        design = np.zeros((pairs, DIMENSION))
        design[slice(None) if shared else group] = (
            shared_features(VECTORS[1]).reshape(pairs, -1) if shared else VECTORS[1]
        )
        mean, covariance = mean + design @ weights, covariance + design @ spread @ design.T
    drawn = oracle.draws(VECTORS[1], DRAWS, rng).reshape(DRAWS, pairs)
    deviations = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean), 5.0 * deviations / np.sqrt(DRAWS))
    scale = np.outer(deviations, deviations)
    np.testing.assert_allclose(np.cov(drawn.T) / scale, covariance / scale, atol=5.0 * np.sqrt(2.0 / DRAWS))
    assert stats.kstest((drawn[:, 2] - mean[2]) / deviations[2], stats.norm.cdf).pvalue > 1e-4


def test_shared_linear_samples_are_functions_of_the_class(rng):
    """Six pairs, three features: what is drawn lies in the span of the features."""
    oracle, _ = linear(rng, shared=True)
    design = shared_features(VECTORS[1]).reshape(-1, DIMENSION)
    drawn = oracle.draws(VECTORS[1], 50, rng).reshape(50, -1) - 0.5
    fitted = design @ np.linalg.lstsq(design, drawn.T)[0]
    np.testing.assert_allclose(fitted, drawn.T, atol=1e-12)


def test_a_wide_linear_posterior_is_clipped(rng):
    oracle = oracles.LinearRewards(**SIZE, dimension=DIMENSION, horizon=2, ridge=1e-3)
    drawn = oracle.draws(VECTORS[0], 500, rng)
    assert drawn.min() == 0.0
    assert drawn.max() == 1.0


@pytest.mark.parametrize("name", ["softmax", "sparse softmax"])
def test_softmax_samples_are_as_far_from_the_fit_as_uncertainty_says(name, rng):
    """To first order in the variance of the logits, hence the 10 %."""
    support = SUPPORT if name == "sparse softmax" else None
    size = {**SIZE, "dimension": DIMENSION, "horizon": 5, "rate": "realizable"}
    oracle = oracles.SoftmaxDynamics(**size, ridge=30.0, support=support)
    taught(oracle, VECTORS, rng, 20)
    drawn = oracle.draws(VECTORS[1], DRAWS, rng)
    if support is not None:
        assert (drawn[:, ~SUPPORT] == 0.0).all()
    divergences = loss_of(oracle).divergence(drawn, oracle.predict(VECTORS[1]))
    np.testing.assert_allclose(divergences.mean(axis=0), oracle.uncertainty(VECTORS[1]), rtol=0.1)


def test_softmax_samples_are_normal_in_the_logits(rng):
    """Differences of two logits: mean (w - w')·z, variance zᵀ(Σ + Σ')z·(K-1)/K."""
    oracle = oracles.SoftmaxDynamics(**SIZE, dimension=DIMENSION, horizon=5, rate="realizable", intercept=False)
    taught(oracle, VECTORS, rng, 20)
    z, state = VECTORS[1], oracle.state()
    weights, covariances = state["weights"][6:9], state["covariances"][6:9]
    logits = np.log(oracle.draws(z, DRAWS, rng))[:, 1, 0]  # the third pair
    mean = (weights[0] - weights[1]) @ z
    variance = z @ (covariances[0] + covariances[1]) @ z * 2.0 / 3.0
    standardised = (logits[:, 0] - logits[:, 1] - mean) / np.sqrt(variance)
    assert stats.kstest(standardised, stats.norm.cdf).pvalue > 1e-4
