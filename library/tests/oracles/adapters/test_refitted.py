"""Models that are fitted again to all examples: when, to what, and that nothing is lost between two fits."""

import contextlib
import copy
import importlib
import itertools

import numpy as np
import pytest
import threadpoolctl

from library.tests.oracles.adapters.catalogue import (
    ACTIONS,
    DIMENSION,
    HORIZON,
    KINDS,
    STATES,
    assert_same_state,
    episode,
    refitted_oracle,
    train,
)
from omg_cmdp.checks import check_oracle
from omg_cmdp.oracles import RefittedDynamics, RefittedRewards, adapters
from omg_cmdp.oracles.adapters.ensemble import PATIENCE

pytest.importorskip("sklearn")
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import (
    LassoCV,
    LassoLarsIC,
    LinearRegression,
    LogisticRegression,
    RANSACRegressor,
    Ridge,
)
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils import all_estimators

SIZES = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON}


class Spy(BaseEstimator):
    """A regressor that says the mean of what it was fitted to, and tells how much that was."""

    fits: list[int] = []  # noqa: RUF012

    def fit(self, inputs, outcomes):
        if np.any(outcomes == 1.0):
            raise OverflowError("diverged")
        Spy.fits.append(len(outcomes))
        self.mean = outcomes.mean()

    def predict(self, inputs):
        return np.full(len(inputs), self.mean)


def part(steps, length):
    """Return the first steps of an episode."""
    return steps[0], *(array[:length] for array in steps[1:])


@pytest.mark.parametrize("every", [0.05, 0.5, "doubling"])
@pytest.mark.parametrize("lengths", [[HORIZON], [1], [1, 3, HORIZON, 2], [HORIZON] * 20 + [1] * 80])
def test_all_fits_cost_at_most_a_multiple_of_the_last(every, lengths, rng):
    """In examples, whatever the lengths of episodes: long ones first, counted in episodes, would break it."""
    Spy.fits, examples, growth = [], 0, 1.0 if every == "doubling" else every
    oracle = RefittedRewards(Spy(), every=every, members=1, **SIZES)
    for t in range(100):
        examples += len((steps := part(episode(rng, "Rewards"), lengths[t % len(lengths)]))[1])
        oracle.update(*steps[:3], 0.9 * steps[3])
        assert examples < (1.0 + growth) * Spy.fits[-1]  # what is known is never much older
    assert Spy.fits[0] == lengths[0]
    assert (np.cumsum(Spy.fits) <= (1.0 + 1.0 / growth) * np.array(Spy.fits)).all()


@pytest.mark.parametrize(
    ("every", "fits"), [(3, [12, 24, 36]), (0.5, [4, 8, 12, 20, 32]), ("doubling", [4, 8, 16, 32])]
)
def test_models_are_fitted_to_all_examples_when_they_are_due(every, fits, rng):
    Spy.fits = []
    oracle = RefittedRewards(Spy(), every=every, members=1, **SIZES)
    rewards = []
    for t in range(1, 11):
        context, states, actions, _ = episode(rng, "Rewards")
        rewards.append(0.05 * rng.integers(1, 19, size=HORIZON))
        before = oracle.predict(context)
        oracle.update(context, states, actions, rewards[-1])
        known = [n for n in fits if n <= t * HORIZON]
        expected = np.concatenate(rewards)[: known[-1]].mean() if known else 0.5
        np.testing.assert_allclose(oracle.predict(context), expected, rtol=1e-12)
        assert (t * HORIZON in fits) or (oracle.predict(context) == before).all()
    assert Spy.fits == fits


def test_a_fit_that_fails_changes_nothing(rng):
    oracle, undisturbed = (RefittedRewards(Spy(), every=2, **SIZES) for _ in range(2))
    for t in range(6):
        context, states, actions, rewards = episode(rng, "Rewards")
        rewards = 0.9 * rewards
        if t % 2:
            before = oracle.state()
            with pytest.raises(OverflowError, match="diverged"):
                oracle.update(context, states, actions, np.ones(HORIZON))
            assert_same_state(oracle.state(), before)
        for each in (oracle, undisturbed):
            each.update(context, states, actions, rewards)
    assert_same_state(oracle.state(), undisturbed.state())


@pytest.mark.parametrize("episodes", [3, 7, 11])
def test_a_state_from_between_two_fits_continues_to_the_bit(episodes, rng):
    """The copies know less than the log: it must not be fitted whole. Forests are seeded."""

    def fresh():
        return RefittedRewards(RandomForestRegressor(n_estimators=3), every=5, members=2, **SIZES)

    oracle, other = train(fresh(), rng, "Rewards", episodes), fresh()
    other.load_state(oracle.state())
    for _ in range(4):
        arrays = episode(rng, "Rewards")
        np.testing.assert_array_equal(oracle.predict(arrays[0]), other.predict(arrays[0]))
        oracle.update(*arrays)
        other.update(*arrays)
    assert_same_state(oracle.state(), other.state())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [1, 3, 0.3])
def test_episodes_of_any_length_are_learned_as_far_as_they_were_seen(kind, every, rng):
    """The whole log, however it was cut: a single copy knows just the examples, and a saved one continues."""
    options = {"every": every, "members": 1}
    oracle, whole = refitted_oracle(kind, **options, **SIZES), refitted_oracle(kind, **options, **SIZES)
    context, *arrays = episode(rng, kind)
    arrays = [np.tile(array, 3) for array in arrays]  # 12 examples: 3 episodes of 4, or 6 of 1, 2, 3, 4, 1, 1
    for first in range(0, 12, HORIZON):
        whole.update(context, *(array[first : first + HORIZON] for array in arrays))
    for first, end in itertools.pairwise([0, 1, 3, 6, 10, 11, 12]):
        oracle.update(context, *(array[first:end] for array in arrays))
        other = refitted_oracle(kind, **options, **SIZES)
        other.load_state(oracle.state())
        np.testing.assert_array_equal(other.predict(context), oracle.predict(context))
        assert_same_state(other.state(), oracle.state())
    assert oracle.state()["log"][:, 0].tolist() == [1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 1]
    np.testing.assert_array_equal(oracle.state()["log"][:, 1:], whole.state()["log"][:, 1:])
    np.testing.assert_array_equal(oracle.state()["visits"], whole.state()["visits"])
    if isinstance(every, int):  # both were fitted after their last episode
        np.testing.assert_array_equal(oracle.predict(context), whole.predict(context))


@pytest.mark.parametrize("fitted", [-1.0, 1e300, np.nan])
def test_a_state_that_cannot_be_is_refused(fitted, rng):
    oracle = train(RefittedRewards(LinearRegression(), **SIZES), rng, "Rewards", 3)
    before = oracle.state()
    with pytest.raises(ValueError, match="`state` must hold"):
        oracle.load_state({**before, "fitted": np.array(fitted)})
    assert_same_state(oracle.state(), before)
    with pytest.raises(ValueError, match="every 2"):
        RefittedRewards(LinearRegression(), every=2, **SIZES).load_state(before)


def test_next_states_never_seen_have_the_floor():
    oracle = RefittedDynamics(LogisticRegression(), states=4, actions=1, horizon=2, floor=0.01, members=1)
    oracle.update([0.0], [0, 1], [0, 0], [3, 3])  # one class: a model would refuse to be fitted
    np.testing.assert_allclose(oracle.predict([0.0])[2, 0], np.array([0.01, 0.01, 0.01, 1.0]) / 1.03)
    oracle.update([0.0], [0, 1], [0, 0], [1, 3])  # classes 1 and 3 of four
    rows = oracle.predict([0.0])[:, 0]
    np.testing.assert_allclose(rows[:, [0, 2]], 0.01, rtol=0.05)
    assert rows[0, 1] > rows[1, 1]


def test_a_pipeline_with_preprocessing_learns_what_its_last_step_alone_cannot(rng):
    losses = []
    for model in (Ridge(), make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge())):
        oracle = RefittedRewards(model, members=2, **SIZES)
        for t in range(150):
            context = np.array([1e3, 1e-3]) * np.random.default_rng(t).random(2)
            states, actions = np.arange(4) % STATES, np.arange(4) // 2
            rewards = np.abs(context[0] / 1e3 - actions)  # the action helps some and harms others
            oracle.update(context, states, actions, rewards)
        losses.append(oracle.loss)
    assert losses[1] < 0.2 * losses[0]


def test_models_have_one_thread_and_may_be_copied(rng):
    """The number of threads changes the last bits of sums, and a restored model must be the same on any machine."""

    class Threads(Spy):
        def predict(self, inputs):
            used = {each["num_threads"] for each in threadpoolctl.threadpool_info()}
            return np.full(len(inputs), 0.25 if used == {1} else 0.75)

    with threadpoolctl.threadpool_limits(2):
        oracle = RefittedRewards(Threads(), **SIZES)
        context, states, actions, rewards = episode(rng, "Rewards")
        oracle.update(context, states, actions, 0.5 * rewards)
        for each in (oracle, copy.deepcopy(oracle)):
            assert (each.predict(context) == 0.25).all()
        assert max(each["num_threads"] for each in threadpoolctl.threadpool_info()) > 1


@pytest.mark.parametrize("every", [0, -1, True, 0.0, 1.0, 2.5, np.nan, "often", None])
def test_a_bad_schedule_is_refused(every):
    with pytest.raises(ValueError, match="`every` must be a number of episodes, or a fraction"):
        RefittedRewards(LinearRegression(), every=every, **SIZES)


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(ValueError, match="`model` must have fit and predict_proba"):
        RefittedDynamics(LinearRegression(), **SIZES)


def boosting(package, kind):
    """Return a small model of a package for gradient boosting, with one thread."""
    if package == "sklearn":
        name = f"HistGradientBoosting{'Regressor' if kind == 'Rewards' else 'Classifier'}"
        return getattr(importlib.import_module("sklearn.ensemble"), name)(max_iter=5, min_samples_leaf=5)
    module, (rewards, dynamics), options = {
        "lightgbm": ("lightgbm", ("LGBMRegressor", "LGBMClassifier"), {"verbose": -1, "min_child_samples": 5}),
        "xgboost": ("xgboost", ("XGBRegressor", "XGBClassifier"), {}),
    }[package]
    found = pytest.importorskip(module)
    return getattr(found, rewards if kind == "Rewards" else dynamics)(n_estimators=5, n_jobs=1, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Rewards", "Dynamics"])
@pytest.mark.parametrize("package", ["sklearn", "lightgbm", "xgboost"])
def test_boosting_keeps_the_contract(package, kind, rng):
    oracle = {"Rewards": RefittedRewards, "Dynamics": RefittedDynamics}[kind]
    made = oracle(boosting(package, kind), every=4, members=2, **SIZES)
    check_oracle(made, contexts=list(rng.random((2, DIMENSION))))


NEED_MORE = {
    "five neighbours": ("Rewards", KNeighborsRegressor()),
    "more examples than features": ("Rewards", LassoLarsIC()),
    "five folds": ("Rewards", LassoCV(cv=5)),
    "a consensus of many": ("Rewards", RANSACRegressor()),
    "thirty neighbours": ("Dynamics", KNeighborsClassifier(30)),
    "five of each class": ("Dynamics", CalibratedClassifierCV(LogisticRegression(), ensemble=False)),
    "two of each class": ("Dynamics", QuadraticDiscriminantAnalysis(reg_param=0.5)),
}


@pytest.mark.parametrize("name", NEED_MORE)
def test_a_model_that_needs_more_examples_waits_and_says_so(name, rng, recwarn):
    kind, model = NEED_MORE[name]
    oracle, other = (getattr(adapters, f"Refitted{kind}")(model, members=2, **SIZES) for _ in range(2))
    contexts = [rng.random(DIMENSION) for _ in range(3)]
    before = [oracle.predict(context) for context in contexts]
    for _ in range(30):
        oracle.update(*episode(rng, kind))
        assert np.isfinite(oracle.uncertainty(contexts[0])).all()
    assert any("waits for more than" in str(each.message) for each in recwarn)
    assert oracle.forecasters.fitted > 0
    assert not any(np.array_equal(oracle.predict(c), old) for c, old in zip(contexts, before, strict=True))
    other.load_state(oracle.state())
    assert_same_state(other.state(), oracle.state())


def test_a_model_that_can_never_be_fitted_is_refused_in_the_end(rng):
    oracle = RefittedRewards(IsotonicRegression(), **SIZES)  # for one feature only
    with pytest.warns(UserWarning, match="IsotonicRegression waits for more than"):
        oracle.update(*episode(rng, "Rewards"))
    with pytest.raises(ValueError, match="1 feature"):  # noqa: PT012
        for _ in range(100):
            oracle.update(*episode(rng, "Rewards"))
    assert oracle.episodes * HORIZON < PATIENCE <= (oracle.episodes + 1) * HORIZON


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_model_of_scikit_learn_learns_or_says_why_not(rng):
    """All regressors and classifiers with their defaults: 77, of which nine are not for tables like these."""
    others = {}
    for kind, family, needs in (("Rewards", "regressor", "predict"), ("Dynamics", "classifier", "predict_proba")):
        for name, make in all_estimators(family):
            with contextlib.suppress(TypeError):  # ensembles that must be given their models
                model = make()
                if not hasattr(model, needs):
                    continue
                oracle = getattr(adapters, f"Refitted{kind}")(model, members=2, every=6, **SIZES)
                try:
                    for _ in range(PATIENCE // HORIZON + 2):
                        context, *arrays = episode(rng, kind)
                        oracle.update(context, *arrays)
                        oracle.predict(context)
                except (ValueError, IndexError) as error:
                    others[name] = str(error)
    multi = {
        "CCA",
        "PLSCanonical",
        "MultiTaskElasticNet",
        "MultiTaskElasticNetCV",
        "MultiTaskLasso",
        "MultiTaskLassoCV",
    }
    sparse = {"RadiusNeighborsRegressor", "RadiusNeighborsClassifier"}  # which know nothing far from their examples
    assert set(others) <= multi | sparse | {"IsotonicRegression", "CategoricalNB"}
