"""ACTG 175: a randomised trial, the tables fitted to it, and what the fit can and cannot claim."""

import importlib.metadata

import numpy as np
import pandas
import pytest

from lab.tests.data.held_out import held_out_losses
from omg_cmdp import OMG, policy_value, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.logs import importance_sampling, read_table
from omg_cmdp.oracles import FiniteDynamics, KnownRewards
from omg_lab.data.actg175 import ACTG175, ARMS, COVARIATES, QUALITY, WEEK_20, WEEK_96, patients, stages
from omg_lab.data.multinomial import fit
from omg_lab.worlds.base import softmax

try:
    patients()
except ImportError:
    pytest.skip("lifelines is not installed", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small matrices: threads of BLAS that fight for a core cost more than they bring."""
    import threadpoolctl

    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def world():
    return ACTG175(transition_class_size=3)


@pytest.fixture(scope="module", params=[0, 1], ids=["week 20", "week 96"])
def stage(request, world):
    return stages(world.patients)[request.param]


def always(arm, space):
    """Return the policy that gives one arm throughout."""
    chosen = np.where(space.admissible[:, arm], arm, 0)
    return np.tile(np.eye(len(ARMS))[chosen], (space.horizon, 1, 1))


def test_2139_patients_were_randomised(world):
    assert len(world.contexts) == 2139
    contexts, arms = np.array(world.contexts), world.patients["arms"].to_numpy()
    np.testing.assert_allclose(contexts.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(contexts.std(axis=0), 1.0)
    assert np.isfinite(contexts).all()
    # Balance: under randomisation n·(mean of an arm)² is about χ² of one degree; 60 of them, so one beyond 4.5² is odd.
    scores = np.array([contexts[arms == arm].mean(axis=0) * np.sqrt((arms == arm).sum()) for arm in range(4)])
    assert np.abs(scores).max() < 4.5
    assert (scores**2).mean() < 1.3
    counts = np.bincount(arms)
    assert ((counts - 2139 / 4) ** 2 / (2139 / 4)).sum() < 16.3  # χ² of three degrees, one in a thousand


def test_every_patient_has_a_proper_mdp(world):
    for context in world.contexts[::100]:
        kernels = world.transition_functions(context)
        np.testing.assert_allclose(kernels.sum(axis=-1), 1.0, atol=1e-12)
        assert (kernels >= 0.0).all()
        mdp = world.truth(context).mdp
        assert np.array_equal(
            mdp.transitions[world.space.admissible], kernels[world.transition_index][world.space.admissible]
        )
        assert 0.0 < world.optimal_value(context) < 2.0
    assert (kernels[:, 0, :, WEEK_20:WEEK_96] > 0.0).all()
    assert (kernels[:, WEEK_20:WEEK_96, :, WEEK_96:] > 0.0).all()
    assert np.abs(kernels[0] - kernels[1]).max() > 0.005


def test_the_fit_reproduces_the_trial_on_average(world):
    """The score equations: intercepts are not shrunk, so that fitted and observed frequencies agree."""
    first, last = stages(world.patients)
    for stage, fits in ((first, world._week_20), (last, world._week_96)):
        fitted = softmax(stage.design @ fits[world.transition_index]).mean(axis=0)
        np.testing.assert_allclose(fitted, np.bincount(stage.outcomes) / 2139, atol=1e-7)


def test_a_fit_is_a_minimum(rng):
    """Zero gradient by finite differences, at random data and weights."""
    design, outcomes = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    penalties, weights = np.array([0.5, 2.0, 1.0]), rng.integers(4, size=60).astype(float)

    def loss(w):
        p = softmax(design @ w)[np.arange(60), outcomes]
        return -(weights * np.log(p)).sum() + 0.5 * (penalties[:, None] * w**2).sum()

    best = fit(design, outcomes, penalties, start=np.zeros((3, 3)), weights=weights)
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-5
        assert abs(loss(best + step) - loss(best - step)) / 2e-5 < 1e-6
    repeated = np.repeat(np.arange(60), weights.astype(int))
    again = fit(design[repeated], outcomes[repeated], penalties, start=np.zeros((3, 3)))
    np.testing.assert_allclose(again, best, atol=1e-9)


def test_a_fit_does_not_depend_on_its_start(rng):
    """Undamped, Newton's method runs away from almost every one of these."""
    design, outcomes, penalties = rng.normal(size=(40, 3)), rng.integers(3, size=40), np.full(3, 0.01)
    best = fit(design, outcomes, penalties, start=np.zeros((3, 3)))
    for _ in range(10):
        start = 3.0 * rng.normal(size=(3, 3))
        again = fit(design, outcomes, penalties, start=start - start.mean(axis=1, keepdims=True))
        np.testing.assert_allclose(again, best, atol=1e-8)


def test_held_out_covariates_predict_better_than_the_margin(stage):
    """On patients whom the fit has not seen; by many standard errors."""
    fitted = held_out_losses(*stage, folds=5)
    margin = held_out_losses(stage.design[:, :1], stage.outcomes, stage.penalties[:1], folds=5)
    gain = margin - fitted
    assert gain.mean() > 5.0 * gain.std() / np.sqrt(len(gain))


def test_held_out_arms_matter_at_first_and_no_more_given_the_count(world):
    gains = []
    for stage in stages(world.patients):
        without = held_out_losses(stage.design[:, :-4], stage.outcomes, stage.penalties[:-4], folds=5)
        gain = without - held_out_losses(*stage, folds=5)
        gains.append(gain.mean() / (gain.std() / np.sqrt(len(gain))))
    assert gains[0] > 2.5
    assert abs(gains[1]) < 1.0


@pytest.mark.parametrize(
    ("penalty", "folds"),
    [(300.0, 5), *(pytest.param(p, 10, marks=pytest.mark.slow) for p in (30.0, 100.0, 1000.0, 10000.0))],
)
def test_held_out_products_of_arms_and_covariates_are_not_supported(stage, penalty, folds):
    """So the model has none, and nothing it says about who should get which arm is a finding."""
    covariates, arms = stage.design[:, 1 : 1 + len(COVARIATES)], stage.design[:, -4:]
    products = (covariates[:, :, None] * arms[:, None, :]).reshape(len(arms), -1)
    design = np.hstack([stage.design, products])
    penalties = np.append(stage.penalties, np.full(products.shape[1], penalty))
    gain = held_out_losses(*stage, folds=folds) - held_out_losses(design, stage.outcomes, penalties, folds=folds)
    assert gain.mean() < min(0.001, 2.0 * gain.std() / np.sqrt(len(gain)))


@pytest.mark.slow
def test_cross_validation_chooses_the_penalties(stage):
    """Ten folds: no other of the seven has a smaller loss, for the arms or for the rest."""
    chosen = held_out_losses(*stage).mean()
    arms = np.arange(stage.design.shape[1]) >= stage.design.shape[1] - 4
    rest = ~arms & (stage.design.std(axis=0) > 0.0)
    for group in (arms, rest):
        for other in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0):
            penalties = np.where(group, other, stage.penalties)
            assert held_out_losses(stage.design, stage.outcomes, penalties).mean() >= chosen - 1e-9


def test_one_seed_one_world(world):
    context = world.contexts[7]
    again, other = ACTG175(transition_class_size=3), ACTG175(transition_class_size=3, seed=1)
    assert np.array_equal(world.transition_functions(context), again.transition_functions(context))
    truth = world.truth(context).mdp.transitions
    np.testing.assert_allclose(truth, other.truth(context).mdp.transitions, atol=1e-9)  # the fit does not depend on it


def the_trial(world):
    """Return the log of the trial itself: the first arm was drawn with probability ¼ each, and then kept."""
    first, last = (stage.outcomes for stage in stages(world.patients))
    arms, count, steps = world.patients["arms"].to_numpy(), len(world.patients), world.space.horizon
    states = np.stack([np.zeros(count, dtype=int), WEEK_20 + first, WEEK_96 + last, WEEK_96 + last], axis=1)
    columns = {
        "episode": np.repeat(world.patients["pidnum"].to_numpy(), steps),
        "step": np.tile(np.arange(steps), count),
        **dict(zip(COVARIATES, np.repeat(world.contexts, steps, axis=0).T, strict=True)),
        "state": states[:, :-1].reshape(-1),
        "action": np.stack([arms, arms, np.zeros_like(arms)], axis=1).reshape(-1),
        "reward": QUALITY[states[:, :-1]].reshape(-1),
        "next_state": states[:, 1:].reshape(-1),
        "propensity": np.tile([1.0 / len(ARMS), 1.0, 1.0], count),
    }
    return read_table(pandas.DataFrame(columns), space=world.space, context=list(COVARIATES))


def test_the_trial_is_a_log_of_the_world(world):
    """Its weighted estimate for one arm throughout is the mean over those who were assigned to it."""
    log = the_trial(world)
    assert len(log) == 2139
    returns, arms = log.rewards.sum(axis=1), world.patients["arms"].to_numpy()
    assert np.array_equal(np.array(log.contexts), np.array(world.contexts))
    for arm in range(4):
        policy = always(arm, world.space)
        weighted = importance_sampling(log, lambda context, policy=policy: policy, weighted=True)
        assert weighted.value == pytest.approx(returns[arms == arm].mean(), abs=1e-12)
        assert weighted.effective_sample_size == pytest.approx((arms == arm).sum())
        # What the world says of the arm is what was seen, up to shrinkage and noise.
        believed = np.mean([policy_value(world.truth(c).mdp, policy) for c in world.contexts[::20]])
        assert believed == pytest.approx(weighted.value, abs=4.0 * weighted.standard_error + 0.05)


def test_a_change_at_week_20_cannot_be_valued_by_the_trial(world):
    """Nobody changed: the log had no chance to do it, and the estimate is refused."""
    log = the_trial(world)
    change = always(1, world.space)
    change[1] = always(2, world.space)[1]
    with pytest.raises(ValueError, match=r"`policy` must do only what had a chance in the log, .* at step 1"):
        importance_sampling(log, lambda context: change)


def test_at_each_decision_one_arm_is_best_for_nearly_everyone(world):
    """And the two are not the same, so that the optimum does what nobody in the trial did."""
    arms = np.array([world.truth(c).best[0].argmax(axis=-1)[[0, 1, 1, 1, 1], [0, 1, 2, 3, 4]] for c in world.contexts])
    assert (arms[:, 0] == 1).sum() == 2136
    first = np.array([world.truth(c).mdp.transitions[0, 1, WEEK_20:WEEK_96] for c in world.contexts])
    assert ((arms[:, 1:] == 2) * first).sum(axis=1).mean() == pytest.approx(0.86, abs=0.005)
    best, kept = (
        np.mean([value(world.truth(c)) for c in world.contexts])
        for value in (lambda truth: truth.best[1], lambda truth: truth.value(always(1, world.space)))
    )
    assert (best, kept) == pytest.approx((0.907, 0.895), abs=0.0005)


def test_rewards_are_the_strata_without_noise(world):
    trajectory = world.sample(world.contexts[3], always(1, world.space), np.random.default_rng(0))
    np.testing.assert_array_equal(trajectory.rewards, QUALITY[trajectory.states[:-1]])


def test_omg_plays_it(world):
    rewards = KnownRewards(world.reward_functions(world.contexts[0])[0], horizon=3)
    dynamics = FiniteDynamics(world.transition_functions, horizon=3)
    agent = OMG(world.space, rewards, dynamics, gamma="uncertainty", episodes=20)
    ledger = simulate(world, IID(world.contexts), agent, episodes=20)
    assert (ledger.column("certificate") <= 1.0 / (16 * 20)).all()


@pytest.mark.parametrize("context", [0, [0.1, 0.2], np.full(15, np.nan), "nobody"])
def test_what_is_no_patient_is_refused(world, context):
    for ask in (world.reward_functions, world.transition_functions, world.mdp):
        with pytest.raises(ValueError, match="`context` must"):
            ask(context)


@pytest.mark.parametrize("files", [None, []])
def test_without_the_table_one_is_told_what_to_install(monkeypatch, files):
    def found(name):
        if files is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return files

    monkeypatch.setattr(importlib.metadata, "files", found)
    with pytest.raises(ImportError, match=r"pip install './lab\[actg175\]'"):
        ACTG175()
