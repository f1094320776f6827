"""Counts: Laplace and Krichevsky-Trofimov by hand, best losses by search, the Dirichlet by sampling, a tight bound."""

import contextlib
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from omg_cmdp.oracles import CountDynamics, CountRewards
from omg_cmdp.oracles.simplex import half_rise

STATES, ACTIONS, HORIZON = 3, 2, 4
SIZE = {"states": STATES, "actions": ACTIONS}
TEMPERS = {"realizable": 1, "proven": HORIZON}


def taught(oracle, rng, episodes=20, contexts=("a", "b")):
    """Return the examples, (context, s, a, outcome)."""
    examples = []
    for _ in range(episodes):
        context = rng.choice(contexts).item()
        states, actions = rng.integers(STATES, size=HORIZON), rng.integers(ACTIONS, size=HORIZON)
        rewards, reached = rng.beta(0.5, 1.0, HORIZON), rng.integers(2, size=HORIZON)
        outcomes = rewards if isinstance(oracle, CountRewards) else reached
        oracle.update(context, states, actions, outcomes)
        examples += [(context, *example) for example in zip(states, actions, outcomes, strict=True)]
    return examples


def of_pair(examples, s, a, context=None):
    return np.array([e[3] for e in examples if e[1:3] == (s, a) and context in (None, e[0])])


@pytest.mark.parametrize("rate", TEMPERS)
@pytest.mark.parametrize("contexts", [None, ("a", "b", "c")])
def test_mean_rewards_by_hand(rate, contexts, rng):
    """Temper 1 is Laplace's rule: (1 + Σr)/(2 + n)."""
    oracle, tau = CountRewards(**SIZE, horizon=HORIZON, rate=rate, contexts=contexts), TEMPERS[rate]
    examples = taught(oracle, rng)
    for context in contexts or ("any",):
        prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
        for s, a in np.ndindex(STATES, ACTIONS):
            rewards = of_pair(examples, s, a, contexts and context)
            assert prediction[s, a] == pytest.approx((tau + rewards.sum()) / (2 * tau + len(rewards)), rel=1e-12)
            pseudo = np.append(rewards, [0.0, 1.0])
            expected = pseudo.var() / (len(pseudo) + 1.0) + (pseudo.mean() - prediction[s, a]) ** 2
            assert uncertainty[s, a] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rate", TEMPERS)
@pytest.mark.parametrize("prior", [0.5, 1.0, 0.2])
@pytest.mark.parametrize("contexts", [None, ("a", "b", "c")])
def test_frequencies_by_hand(rate, prior, contexts, rng):
    """Temper 1 is Krichevsky and Trofimov's rule for the prior ½, and Laplace's for 1."""
    oracle = CountDynamics(**SIZE, horizon=HORIZON, rate=rate, prior=prior, contexts=contexts)
    examples, alpha = taught(oracle, rng), prior * TEMPERS[rate]
    for context in contexts or ("any",):
        prediction = oracle.predict(context)
        for s, a, successor in np.ndindex(STATES, ACTIONS, STATES):
            reached = of_pair(examples, s, a, contexts and context)
            expected = ((reached == successor).sum() + alpha) / (len(reached) + alpha * STATES)
            assert prediction[s, a, successor] == pytest.approx(expected, rel=1e-12)


def test_best_losses_against_search(rng):
    for contexts in (None, ("a", "b", "c")):
        rewards, dynamics = (kind(**SIZE, horizon=HORIZON, contexts=contexts) for kind in (CountRewards, CountDynamics))
        examples, square, log = taught(rewards, rng), 0.0, 0.0
        moves = taught(dynamics, rng)
        for s, a in np.ndindex(STATES, ACTIONS):
            for context in contexts or (None,):
                seen, reached = of_pair(examples, s, a, context), of_pair(moves, s, a, context)
                square += minimize_scalar(lambda f, seen=seen: ((f - seen) ** 2).sum(), bounds=(0, 1)).fun
                # Only two next states occur: a search over one probability.
                ones, zeros = (reached == 1).sum(), (reached == 0).sum()
                log += minimize_scalar(
                    lambda p, k=ones, m=zeros: -k * np.log(p) - m * np.log1p(-p),
                    bounds=(1e-12, 1 - 1e-12),
                    options={"xatol": 1e-13},
                ).fun
        assert rewards.best_loss() == pytest.approx(square, rel=1e-8)
        assert dynamics.best_loss() == pytest.approx(log, rel=1e-6)


@pytest.mark.parametrize("wins", [0, 3, 20])
def test_the_uncertainty_of_coins_is_the_variance_of_their_beta_posterior(wins):
    oracle = CountRewards(states=1, actions=1, horizon=20, rate="realizable")
    oracle.update("any", [0] * 20, [0] * 20, [1.0] * wins + [0.0] * (20 - wins))
    assert oracle.uncertainty("any").item() == pytest.approx(stats.beta(1 + wins, 21 - wins).var(), rel=1e-12)


@pytest.mark.parametrize("reward", [0.0, 0.3, 0.5, 1.0])
def test_constant_rewards_are_learned_like_one_over_the_square_of_their_number(reward):
    """The error of the mean is (1 - 2r)/(n + 2); the uncertainty is between its square and twice 1/n²."""
    oracle = CountRewards(states=1, actions=1, horizon=1, rate="realizable")
    for n in range(1, 2001):
        oracle.update("any", [0], [0], [reward])
        if n in (20, 200, 2000):
            assert ((1.0 - 2.0 * reward) / (n + 2.0)) ** 2 * 0.9 <= oracle.uncertainty("any").item() <= 2.0 / n**2


def test_half_rise_against_log_gamma_and_its_limit():
    moderate, huge = (
        np.concatenate([np.geomspace(1e-6, 1.0, 50), np.linspace(1.0, 150.0, 300)]),
        np.geomspace(1e4, 1e300),
    )
    # log Γ itself is good to 16 digits of up to 600.
    np.testing.assert_allclose(half_rise(moderate), np.exp(gammaln(moderate + 0.5) - gammaln(moderate)), rtol=1e-12)
    np.testing.assert_allclose(half_rise(huge), np.sqrt(huge - 0.25), rtol=1e-9)
    np.testing.assert_allclose(half_rise(huge[huge > 1e8]), np.sqrt(huge[huge > 1e8]), rtol=1e-8)


def test_half_rise_against_many_digits():
    mpmath = pytest.importorskip("mpmath")
    a = np.concatenate([np.geomspace(1e-300, 1e-3, 50), np.linspace(0.01, 150.0, 200), np.geomspace(150.0, 1e15, 50)])
    with mpmath.workdps(60):
        exact = [float(mpmath.gammaprod([mpmath.mpf(x) + 0.5], [mpmath.mpf(x)])) for x in a]
    np.testing.assert_allclose(half_rise(a), exact, rtol=3e-13)


@pytest.mark.parametrize("rate", [*TEMPERS, "guarded"])
def test_expected_hellinger_distance_against_samples(rate, rng):
    support = np.ones((STATES, ACTIONS, STATES), dtype=bool)
    support[1, 0, 2] = support[2, 1, 0] = False
    for prior in (0.5, 1.0):
        oracle = CountDynamics(**SIZE, horizon=HORIZON, rate=rate, prior=prior, support=support)
        for _ in range(15):
            states, actions = rng.integers(STATES, size=HORIZON), rng.integers(ACTIONS, size=HORIZON)
            reached = [rng.choice(np.flatnonzero(row)) for row in support[states, actions]]
            oracle.update("any", states, actions, reached)
        prediction, uncertainty, counts = oracle.predict(0), oracle.uncertainty(0), oracle.state()["counts"][0]
        for s, a in np.ndindex(STATES, ACTIONS):
            possible = support[s, a]
            truths = rng.dirichlet(counts[s, a, possible] + prior, size=20000)
            distances = ((np.sqrt(truths) - np.sqrt(prediction[s, a, possible])) ** 2).sum(axis=1)
            assert abs(distances.mean() - uncertainty[s, a]) < 5.0 * distances.std() / math.sqrt(20000)


def vertex(visits, alpha, successors):
    """The regret of one pair whose next state is always the same, -log Π (k + α)/(k + αK), as a product."""
    return -sum(math.log((k + alpha) / (k + alpha * successors)) for k in range(visits))


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_the_bound_on_frequencies_is_attained(alpha):
    """By a constant sequence in each of the pairs, all visited equally often."""
    for visits in (1, 7, 100):
        oracle = CountDynamics(**SIZE, horizon=1, prior=alpha)
        for _ in range(visits):
            for s, a in np.ndindex(STATES, ACTIONS):
                oracle.update("any", [s], [a], [(s + a) % STATES])
        episodes, regret = visits * STATES * ACTIONS, oracle.loss - oracle.best_loss()
        assert oracle.best_loss() == 0.0
        assert regret == pytest.approx(STATES * ACTIONS * vertex(visits, alpha, STATES), rel=1e-9)
        assert oracle.regret_bound(episodes, 1) == pytest.approx(regret, rel=1e-9)


def test_one_pair_alone_attains_its_own_vertex():
    oracle = CountDynamics(states=4, actions=1, horizon=1, prior=0.5)
    for _ in range(50):
        oracle.update("any", [2], [0], [1])
    assert oracle.loss - oracle.best_loss() == pytest.approx(vertex(50, 0.5, 4), rel=1e-9)
    assert oracle.loss - oracle.best_loss() <= oracle.regret_bound(50, 1)


def evidence(counts, prior):
    """The logarithm of the probability of transitions, B(prior + n)/B(prior) for every row."""
    after = counts + prior
    rows = gammaln(after) - gammaln(prior)
    return float(rows.sum() - (gammaln(after.sum(axis=-1)) - gammaln(prior.sum(axis=-1))).sum())


@pytest.mark.parametrize("rate", [*TEMPERS, "guarded"])
def test_a_learned_prior_is_as_credible_as_its_evidence_says(rate, rng):
    """One credibility for all tables: that of a mixture of two Dirichlet distributions, and so are mean and draws."""
    oracle = CountDynamics(**SIZE, horizon=HORIZON, rate=rate, contexts="abc")
    taught(oracle, rng, episodes=6)
    counts = oracle.state()["counts"]
    priors = np.full((STATES, ACTIONS, STATES), 0.5), np.full((STATES, ACTIONS, STATES), 1.0 / STATES)
    logs = np.array([evidence(counts, prior) for prior in priors])
    np.testing.assert_allclose(oracle.state()["evidence"], logs, rtol=1e-10)
    credible = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    posteriors = [counts[1] + prior for prior in priors]
    means = [shapes / shapes.sum(axis=-1, keepdims=True) for shapes in posteriors]
    drawn = oracle.draws("b", 4000, np.random.default_rng(3))
    np.testing.assert_allclose(drawn.mean(axis=0), np.tensordot(credible, means, axes=1), atol=0.04)
    truths = [np.array([rng.dirichlet(shapes[0, 0]) for _ in range(8000)]) for shapes in posteriors]
    root = np.sqrt(oracle.predict("b")[0, 0])
    distances = [((np.sqrt(rows) - root) ** 2).sum(axis=1).mean() for rows in truths]
    assert oracle.uncertainty("b")[0, 0] == pytest.approx(credible @ distances, abs=0.02)


def test_a_learned_prior_finds_out_whether_rows_are_sparse(rng):
    """Rows with one next state of twenty, and rows drawn from Dirichlet(½): no prior fits both."""
    size, regrets = {"states": 20, "actions": 1, "horizon": 5}, {}
    rows = {"sparse": np.roll(np.eye(20), 7, axis=1), "full": rng.dirichlet(np.full(20, 0.5), size=20)}
    for kind, truth in rows.items():
        oracles = {prior: CountDynamics(**size, prior=prior) for prior in (None, 0.5, 0.05)}
        for _ in range(300):
            states = rng.integers(20, size=5)
            reached = [rng.choice(20, p=truth[s]) for s in states]
            for oracle in oracles.values():
                oracle.update("any", states, [0] * 5, reached)
        regrets[kind] = {prior: oracle.loss - oracle.best_loss() for prior, oracle in oracles.items()}
        sparse = oracles[None].state()["evidence"][1] > oracles[None].state()["evidence"][0]
        assert sparse == (kind == "sparse")
    for kind, better, worse in (("sparse", 0.05, 0.5), ("full", 0.5, 0.05)):
        own = regrets[kind]
        assert own[None] <= own[better] + 5 * math.log(3.0) < own[worse]


def test_a_learned_prior_has_the_bound_of_krichevsky_and_trofimov():
    learned, fixed = (CountDynamics(states=4, actions=1, horizon=3, prior=prior) for prior in (None, 0.5))
    assert learned.regret_bound(50, 3) - fixed.regret_bound(50, 3) == pytest.approx(3 * math.log(3.0 / 2.0))
    two = CountDynamics(states=2, actions=1, horizon=3)  # where both priors are the same
    assert two.regret_bound(50, 3) == CountDynamics(states=2, actions=1, horizon=3, prior=0.5).regret_bound(50, 3)


def test_no_other_sequence_is_worse_than_the_vertex(rng):
    """With a smaller prior one is: for α < ½ nothing is proven."""
    for alpha in (0.5, 1.0):
        for _ in range(50):
            oracle = CountDynamics(states=3, actions=1, horizon=1, prior=alpha)
            for successor in rng.choice(3, p=rng.dirichlet(np.full(3, 0.5)), size=30):
                oracle.update("any", [0], [0], [successor])
            assert oracle.loss - oracle.best_loss() <= vertex(30, alpha, 3) + 1e-9
    timid = CountDynamics(states=2, actions=1, horizon=1, prior=0.1)
    for step in range(30):
        timid.update("any", [0], [0], [step % 2])
    assert timid.loss - timid.best_loss() > vertex(30, 0.1, 2)
    assert timid.regret_bound(30, 1) == math.inf


def test_bounds_in_closed_form():
    for tables, contexts in ((1, None), (2, "ab")):
        pairs = tables * STATES * ACTIONS
        proven = CountRewards(**SIZE, horizon=HORIZON, contexts=contexts, rate="proven")
        expected = HORIZON / 4 * pairs * (1.0 + math.log(1.0 + 60 / pairs))
        assert proven.regret_bound(60, HORIZON) == pytest.approx(expected)
        guarded = CountRewards(**SIZE, horizon=HORIZON, contexts=contexts)
        assert guarded.regret_bound(60, HORIZON) == pytest.approx(expected + HORIZON / 2 * math.log(2.0))
        dynamics = CountDynamics(**SIZE, horizon=HORIZON, contexts=contexts, rate="proven")
        expected = HORIZON * pairs * vertex(60 // pairs, 0.5, STATES)
        assert dynamics.regret_bound(60 // pairs * pairs, HORIZON) == pytest.approx(expected)
        assert dynamics.regret_bound(60, HORIZON + 1) == math.inf


def test_a_support_excludes_and_an_empty_one_is_refused():
    support = np.ones((STATES, ACTIONS, STATES), dtype=bool)
    support[0, 1, :2] = False
    oracle = CountDynamics(**SIZE, horizon=1, support=support)
    np.testing.assert_array_equal(oracle.predict(0) > 0.0, support)
    np.testing.assert_array_equal(oracle.predict(0)[0, 1], [0.0, 0.0, 1.0])
    assert oracle.uncertainty(0)[0, 1] == pytest.approx(0.0, abs=1e-15)
    support[0, 1, 2] = False
    for bad in (support, support[:2], support.astype(float), "all"):
        with pytest.raises(ValueError, match="`support`"):
            CountDynamics(**SIZE, horizon=1, support=bad)


@pytest.mark.parametrize("kind", [CountRewards, CountDynamics])
def test_contexts_have_their_own_tables_and_others_are_refused(kind, rng):
    oracle = kind(**SIZE, horizon=HORIZON, contexts=["a", "b", 3])
    taught(oracle, rng, contexts=("a",))
    before = {context: oracle.predict(context) for context in ("a", "b", 3)}
    np.testing.assert_allclose(before["b"], kind(**SIZE, horizon=HORIZON).predict("any"), rtol=1e-14)
    assert not np.array_equal(before["a"], before["b"])
    for stranger in ("c", 0, None, ["a"], np.zeros(2)):
        for ask in (oracle.predict, oracle.uncertainty, lambda c: oracle.update(c, [0] * 4, [0] * 4, [0] * 4)):
            with pytest.raises(ValueError, match="`context`"):
                ask(stranger)
    for context, table in before.items():
        np.testing.assert_array_equal(oracle.predict(context), table)
    with pytest.raises(ValueError, match="`contexts`"):
        kind(**SIZE, horizon=HORIZON, contexts=[])


@pytest.mark.parametrize("kind", [CountRewards, CountDynamics])
def test_labels_listed_twice_are_refused_or_count_once(kind):
    with contextlib.suppress(ValueError):
        oracle = kind(**SIZE, horizon=1, contexts=["a", "a", "b"])
        for context in ("a", "b"):
            oracle.update(context, [0], [0], [1])
