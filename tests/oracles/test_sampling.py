"""Posterior samples: valid tables, of the stated law, and as far from the prediction as `uncertainty` says."""

import numpy as np
import pytest
from scipy import stats

from omg_cmdp import oracles
from omg_cmdp.oracles.losses import loss_of
from tests.oracles.catalogue import DIMENSION, SIZE, SUPPORT, VECTORS, each_oracle, shared_features
from tests.oracles.test_state import fingerprint, taught

HORIZON, DRAWS = 3, 4000
SAMPLED = [
    name
    for name, (_, oracle) in each_oracle(HORIZON).items()
    if isinstance(
        oracle,
        oracles.FiniteRewards
        | oracles.FiniteDynamics
        | oracles.LogLossRewards
        | oracles.ProductRewards
        | oracles.KnownRewards
        | oracles.KnownDynamics
        | oracles.CountRewards
        | oracles.CountDynamics
        | oracles.LinearRewards
        | oracles.SoftmaxDynamics,
    )
]


def samples(oracle, context, rng, count=DRAWS):
    return np.array([oracle.sample(context, rng) for _ in range(count)])


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_are_valid_tables_and_asking_changes_nothing(name, rng):
    contexts, oracle = each_oracle(HORIZON)[name]
    for _ in range(2):  # before any data, and after
        before = fingerprint(oracle, contexts)
        for context in contexts:
            drawn = samples(oracle, context, rng, 5)
            loss_of(oracle).check_tables("sample", drawn)
            assert drawn.shape[1:] == oracle.predict(context).shape
            first, again = (oracle.sample(context, np.random.default_rng(7)) for _ in range(2))
            np.testing.assert_array_equal(first, again)
            again[...] = 0.123
        assert fingerprint(oracle, contexts) == before
        taught(oracle, contexts, rng)


EXACT = ("finite", "product", "counts", "step-dependent")


@pytest.mark.parametrize("name", [name for name in SAMPLED if any(kind in name for kind in EXACT)])
def test_uncertainty_is_the_mean_divergence_of_samples(name, rng):
    """u = E[(f - f̂)²], or E[D²(P, P̂)], over posterior draws, at any rate."""
    contexts, oracle = each_oracle(HORIZON)[name]
    taught(oracle, contexts, rng, 4)
    divergences = loss_of(oracle).divergence(samples(oracle, contexts[1], rng), oracle.predict(contexts[1]))
    error = divergences.std(axis=0) / np.sqrt(DRAWS)
    np.testing.assert_array_less(np.abs(divergences.mean(axis=0) - oracle.uncertainty(contexts[1])), 5.0 * error + 1e-9)


def test_counted_rewards_are_beta(rng):
    oracle = oracles.CountRewards(**SIZE, horizon=2)
    for _ in range(3):
        oracle.update("c", [1, 1], [0, 0], [1.0, 0.25])  # Σr = 3.75, Σ(1-r) = 2.25
    drawn = samples(oracle, "c", rng)
    assert stats.kstest(drawn[:, 1, 0], stats.beta(4.75, 3.25).cdf).pvalue > 1e-4
    assert stats.kstest(drawn[:, 0, 1], stats.uniform.cdf).pvalue > 1e-4
    assert abs(np.corrcoef(drawn[:, 1, 0], drawn[:, 0, 1])[0, 1]) < 5.0 / np.sqrt(DRAWS)


def test_counted_transitions_are_dirichlet(rng):
    """A coordinate of Dirichlet(a) is Beta(a_i, Σa - a_i); what the support excludes stays at zero."""
    oracle = oracles.CountDynamics(**SIZE, horizon=5, support=SUPPORT)
    oracle.update("c", [0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 0, 2, 1, 1])
    drawn = samples(oracle, "c", rng)
    assert (drawn[:, ~SUPPORT] == 0.0).all()
    assert (drawn[:, SUPPORT] > 0.0).all()
    for place, ours, others in (((0, 0, 0), 2.5, 1.5), ((1, 0, 1), 2.5, 1.0), ((2, 0, 2), 0.5, 1.0)):
        assert stats.kstest(drawn[:, *place], stats.beta(ours, others).cdf).pvalue > 1e-4


@pytest.mark.parametrize("prior", [1e-6, 1e-3, 1e3])
def test_extreme_priors_do_not_underflow(prior, rng):
    """For α → 0 a row is one of the corners, each equally often; for α → ∞ it is uniform."""
    oracle = oracles.CountDynamics(states=3, actions=1, horizon=1, prior=prior)
    drawn = samples(oracle, "c", rng, 900)[:, 0, 0]
    np.testing.assert_allclose(drawn.sum(axis=-1), 1.0)
    if prior < 1.0:
        assert stats.chisquare((drawn > 0.5).sum(axis=0)).pvalue > 1e-4
        assert (drawn.max(axis=-1) > 0.99).mean() > 0.95
    else:
        np.testing.assert_allclose(drawn, 1.0 / 3.0, atol=0.06)


RIDGE = 40.0


def linear(rng, *, shared, rate="guarded"):
    """Return an oracle whose posterior stays away from 0 and 1, and its examples (z, s, a, r)."""
    features = {"features": shared_features, "shared": True} if shared else {}
    oracle = oracles.LinearRewards(**SIZE, dimension=DIMENSION, horizon=2, ridge=RIDGE, rate=rate, **features)
    examples = []
    for t in range(20):
        states, actions, rewards = rng.integers(3, size=2), rng.integers(2, size=2), rng.uniform(0.3, 0.8, 2)
        oracle.update(VECTORS[t % 3], states, actions, rewards)
        examples += zip([VECTORS[t % 3]] * 2, states, actions, rewards, strict=True)
    return oracle, examples


@pytest.mark.parametrize("shared", [True, False], ids=["one θ", "a θ for each pair"])
def test_linear_samples_have_the_law_of_bayesian_ridge_regression(shared, rng):
    """N(½ + ZA⁻¹b, noise·ZA⁻¹Zᵀ) over the rows Z of all pairs, computed here from the normal equations."""
    oracle, examples = linear(rng, shared=shared)
    pairs = SIZE["states"] * SIZE["actions"]
    size = DIMENSION if shared else DIMENSION * pairs

    def rows(context):
        """One row of length `size` for every pair: shared features, or blocks."""
        return shared_features(context).reshape(pairs, size) if shared else np.kron(np.eye(pairs), context)

    data = np.array([rows(z)[s * SIZE["actions"] + a] for z, s, a, _ in examples])
    targets = np.array([r for *_, r in examples]) - 0.5
    gram = RIDGE * np.eye(size) + data.T @ data
    theta = np.linalg.solve(gram, data.T @ targets)
    residuals = targets @ targets - theta @ gram @ theta
    noise = (0.25 + residuals) / (1.0 + len(examples))

    z = rows(VECTORS[1])
    mean, covariance = 0.5 + z @ theta, noise * z @ np.linalg.solve(gram, z.T)
    drawn = samples(oracle, VECTORS[1], rng).reshape(DRAWS, pairs)
    deviations = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean), 5.0 * deviations / np.sqrt(DRAWS))
    scale = np.outer(deviations, deviations)
    np.testing.assert_allclose(np.cov(drawn.T) / scale, covariance / scale, atol=5.0 * np.sqrt(2.0 / DRAWS))
    assert stats.kstest((drawn[:, 2] - mean[2]) / deviations[2], stats.norm.cdf).pvalue > 1e-4


def test_shared_linear_samples_are_functions_of_the_class(rng):
    """Six pairs, three features: what is drawn lies in the span of the features."""
    oracle, _ = linear(rng, shared=True)
    design = shared_features(VECTORS[1]).reshape(-1, DIMENSION)
    drawn = samples(oracle, VECTORS[1], rng, 50).reshape(50, -1) - 0.5
    fitted = design @ np.linalg.lstsq(design, drawn.T)[0]
    np.testing.assert_allclose(fitted, drawn.T, atol=1e-12)


def test_a_wide_linear_posterior_is_clipped(rng):
    oracle = oracles.LinearRewards(**SIZE, dimension=DIMENSION, horizon=2, ridge=1e-3)
    drawn = samples(oracle, VECTORS[0], rng, 500)
    assert drawn.min() == 0.0
    assert drawn.max() == 1.0


@pytest.mark.parametrize("name", ["softmax", "tilted softmax"])
def test_softmax_samples_are_as_far_from_the_fit_as_uncertainty_says(name, rng):
    """To first order in the variance of the logits, hence the 10 %."""
    base = SUPPORT / SUPPORT.sum(axis=-1, keepdims=True) if name == "tilted softmax" else None
    size = {**SIZE, "dimension": DIMENSION, "horizon": 5, "rate": "realizable"}
    oracle = oracles.SoftmaxDynamics(**size, ridge=30.0, base=base)
    taught(oracle, VECTORS, rng, 20)
    drawn = samples(oracle, VECTORS[1], rng)
    if base is not None:
        assert (drawn[:, ~SUPPORT] == 0.0).all()
    divergences = loss_of(oracle).divergence(drawn, oracle.predict(VECTORS[1]))
    np.testing.assert_allclose(divergences.mean(axis=0), oracle.uncertainty(VECTORS[1]), rtol=0.1)


def test_softmax_samples_are_normal_in_the_logits(rng):
    """Differences of two logits: mean (w - w')·z, variance zᵀ(Σ + Σ')z·(K-1)/K."""
    oracle = oracles.SoftmaxDynamics(**SIZE, dimension=DIMENSION, horizon=5, rate="realizable")
    taught(oracle, VECTORS, rng, 20)
    z, state = VECTORS[1], oracle.state()
    weights, covariances = state["weights"][2], state["covariances"][2]
    logits = np.log(samples(oracle, z, rng))[:, 1, 0]  # the third pair
    mean = (weights[0] - weights[1]) @ z
    variance = z @ (covariances[0] + covariances[1]) @ z * 2.0 / 3.0
    standardised = (logits[:, 0] - logits[:, 1] - mean) / np.sqrt(variance)
    assert stats.kstest(standardised, stats.norm.cdf).pvalue > 1e-4


def test_an_oracle_without_a_posterior_says_so(rng):
    contexts, oracle = each_oracle(HORIZON)["mixture, guarded"]
    with pytest.raises(NotImplementedError, match="MixtureDynamics has no posterior"):
        oracle.sample(contexts[0], rng)
