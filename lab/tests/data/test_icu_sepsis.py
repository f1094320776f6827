"""The contextual ICU-Sepsis: the published tables, tilted as its docstring says, and nothing else."""

import importlib.metadata

import numpy as np
import pytest

from omg_cmdp import OMG, occupancy_measure, simulate
from omg_cmdp.adversaries import Sequence
from omg_cmdp.oracles import FiniteDynamics, KnownRewards, SoftmaxDynamics
from omg_lab.data.icu_sepsis import DEATH, FEATURES, SURVIVAL, ICUSepsis, tables

try:
    importlib.metadata.distribution("icu-sepsis")
except importlib.metadata.PackageNotFoundError:
    pytest.skip("icu-sepsis is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def published():
    return tables()


@pytest.fixture(scope="module")
def world():
    return ICUSepsis(context_count=3, transition_class_size=2, horizon=6, seed=1)


def log_tilt(mdp, published, world):
    """Return log P_c - log P over admissible rows, where P is not zero, centred in each row; nan elsewhere."""
    before, after = published.transitions[world.space.admissible], mdp.transitions[world.space.admissible]
    with np.errstate(divide="ignore", invalid="ignore"):
        tilt = np.where(before > 0.0, np.log(after) - np.log(before), np.nan)
    return tilt - np.nanmean(tilt, axis=1, keepdims=True)


def test_the_tables_are_those_of_the_package(published):
    assert published.transitions.shape == (716, 25, 716)
    np.testing.assert_allclose(published.transitions.sum(axis=-1), 1.0, atol=1e-12)
    np.testing.assert_allclose(published.transitions[DEATH:, :, -1], 1.0)
    assert published.start[DEATH:].sum() == 0.0
    assert published.admissible.sum() == 2313
    assert published.admissible.any(axis=1).all()


def test_features_are_in_the_order_of_the_ai_clinician(published):
    """Of the 47 centres one is known by name: feature 31 is the SOFA score, by far the closest to the package's own."""
    clusters, sofa = published.centres[:DEATH], published.sofa[:DEATH]
    correlations = np.corrcoef(clusters.T, sofa)[-1, :-1]
    assert clusters.shape[1] == 4 + 32 + 11
    assert correlations.argmax() == 31
    assert correlations[31] > 0.99
    assert np.sort(correlations)[-2] < 0.7


def test_what_belongs_together_is_found_together(published):
    """Urea nitrogen and creatinine are closest to each other; who got much of a drug has actions that give much."""
    clusters = published.centres[:DEATH]
    closest = np.abs(np.corrcoef(clusters.T) - np.eye(47)).argmax(axis=1)
    assert (closest[37], closest[38]) == (38, 37)
    actions = published.admissible[:DEATH] / published.admissible[:DEATH].sum(axis=1, keepdims=True)
    fluids, vasopressors = actions @ (np.arange(25) // 5), actions @ (np.arange(25) % 5)
    assert np.corrcoef(fluids, clusters[:, 44])[0, 1] > 0.9
    assert np.corrcoef(vasopressors, clusters[:, 2])[0, 1] > 0.7
    assert max(np.corrcoef(fluids, clusters[:, 2])[0, 1], np.corrcoef(vasopressors, clusters[:, 44])[0, 1]) < 0.4


def test_only_what_was_seen_is_admissible_and_the_end_leaves_no_choice(world, published):
    admissible = world.space.admissible
    np.testing.assert_array_equal(admissible[:DEATH], published.admissible[:DEATH])
    assert admissible[DEATH:].sum(axis=1).tolist() == [1, 1, 1]


@pytest.mark.slow
def test_without_a_tilt_it_is_the_published_mdp(published):
    world = ICUSepsis(context_count=1, tilt=1e-13, outcome_tilt=1e-13, transition_class_size=1, horizon=3)
    mdp, admissible = world.mdp(world.contexts[0]), world.space.admissible
    np.testing.assert_allclose(mdp.transitions[admissible], published.transitions[admissible], atol=1e-12)


def test_the_tilt_is_the_one_that_is_stated(world, published):
    """Two next states in one row: the log of their odds moves by β·c·(φ - φ'), or by ±η·c·ψ(a) for an outcome."""
    patient = world.contexts[0]
    tilt = log_tilt(world.truth(patient).mdp, published, world)
    centres = published.centres[:DEATH, list(FEATURES.values())]
    features = np.clip((centres - centres.mean(axis=0)) / centres.std(axis=0), -3.0, 3.0)
    conditions = tilt[:, :DEATH] - 0.5 * (features @ patient)
    conditions = conditions[~np.isnan(conditions).all(axis=1)]
    assert len(conditions) > 2000
    assert np.nanmax(np.nanmax(conditions, axis=1) - np.nanmin(conditions, axis=1)) < 1e-8
    actions = np.nonzero(world.space.admissible)[1]
    age, urea, lactate = patient
    toll = age + urea * (actions // 5 - 2) / 2 - lactate * (actions % 5 - 2) / 2
    both = ~np.isnan(tilt[:, DEATH]) & ~np.isnan(tilt[:, SURVIVAL])
    assert both.sum() > 1000
    np.testing.assert_allclose((tilt[:, DEATH] - tilt[:, SURVIVAL])[both], 2.0 * toll[both], atol=1e-8)


def test_it_is_softmax_in_the_context_around_the_published_kernel(world, published):
    """Log-odds against P are linear in c: with P as its base a softmax class holds the truth."""
    one, two = world.contexts[0], world.contexts[1]
    tilts = [log_tilt(world.mdp(c), published, world) for c in (one, two, 0.3 * one - 0.7 * two)]
    np.testing.assert_allclose(tilts[2], 0.3 * tilts[0] - 0.7 * tilts[1], atol=1e-8)


def test_the_softmax_oracle_holds_the_truth(world, published):
    """With the first admissible action of every state, and the norms that are stated."""
    first = world.space.admissible.argmax(axis=1)
    base = published.transitions[np.arange(716), first][:, None]
    sizes = {"states": 716, "actions": 1, "dimension": 3, "horizon": 6, "intercept": False}
    oracle = SoftmaxDynamics(**sizes, support=base > 0.0, base=base, feature_norm=np.sqrt(3.0), rate="realizable")
    doses = np.stack([np.ones(716), first // 5 / 2 - 1, 1 - first % 5 / 2], axis=1)
    weights = np.tile(0.5 * world._features, (716, 1, 1))
    weights[:, DEATH], weights[:, SURVIVAL] = doses, -doses
    oracle.forecasters.weights[:] = weights[base[:, 0] > 0.0]
    for context in (*world.contexts, np.array([1.0, -1.0, 1.0])):
        truth = world.mdp(context).transitions[np.arange(716), first]
        np.testing.assert_allclose(oracle.predict(context)[:, 0], truth, atol=1e-14)


def test_weights_of_the_softmax_have_the_norm_that_is_stated(world, published):
    """One vector added to all weights of a row changes nothing: the smallest are centred on what can happen."""
    norms = []
    for state, action in np.argwhere(world.space.admissible):
        dose = np.array([1.0, action // 5 / 2 - 1, 1 - action % 5 / 2])
        weights = 0.5 * world._features
        weights[DEATH], weights[SURVIVAL] = dose, -dose
        possible = weights[published.transitions[state, action] > 0.0]
        norms.append(np.linalg.norm(possible - possible.mean(axis=0)))
    assert 10.1 < max(norms) < 10.2


@pytest.mark.slow
def test_the_truth_is_one_member_of_the_class(world):
    context, admissible = world.contexts[1], world.space.admissible
    kernels, truth = world.transition_functions(context), world.truth(context).mdp
    assert np.array_equal(kernels[world.transition_index][admissible], truth.transitions[admissible])
    assert np.abs(kernels[1 - world.transition_index] - kernels[world.transition_index]).max() > 0.05
    assert np.array_equal(world.reward_functions(context)[0][admissible], truth.rewards[admissible])


def test_a_value_is_the_probability_to_survive(world):
    truth = world.truth(world.contexts[0])
    policy, value = truth.best
    survived = occupancy_measure(truth.mdp, policy)[:, SURVIVAL].sum()
    assert 0.0 < value < 1.0
    assert value == pytest.approx(survived, abs=1e-9)
    draw = world.sample(world.contexts[0], policy, np.random.default_rng(0))
    np.testing.assert_array_equal(draw.rewards, draw.states[:-1] == 716 + SURVIVAL)


def test_patients_differ_in_what_is_best_for_them(world):
    best = [world.truth(context).best for context in world.contexts]
    lost = [
        world.truth(c).regret(policy) for c, (_, value) in zip(world.contexts, best, strict=True) for policy, _ in best
    ]
    assert max(lost) > 0.01
    assert min(lost) > -1e-12


def test_the_dial_moves_the_truth_by_no_more_than_it_says(world):
    moved = ICUSepsis(context_count=3, transition_class_size=2, horizon=6, seed=1, misspecification=0.3)
    for context in world.contexts[:1]:
        distance = np.abs(moved.mdp(context).transitions - world.truth(context).mdp.transitions).max()
        assert 0.01 < distance <= 0.3 + 1e-12


def test_the_truth_is_kept_for_a_few_contexts_only(world, monkeypatch):
    monkeypatch.setattr(world, "kept_bytes", 1)
    world.__dict__.pop("_truths", None)
    for context in world.contexts:
        world.truth(context)
    assert len(world._truths) == 1
    last = world.contexts[-1]
    assert world.truth(last) is world.truth(last)


@pytest.mark.parametrize("context", [0, [0.1, 0.2], [0.1, 0.2, np.nan], "nobody"])
def test_what_is_no_patient_is_refused(world, context):
    for ask in (world.reward_functions, world.transition_functions, world.mdp):
        with pytest.raises(ValueError, match="`context` must"):
            ask(context)


def test_without_the_package_one_is_told_what_to_install(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", absent)
    with pytest.raises(ImportError, match=r"pip install './lab\[icu-sepsis\]'"):
        ICUSepsis()


@pytest.mark.slow
def test_omg_plays_at_full_size_and_every_plan_is_certified(world):
    rewards = KnownRewards(world.reward_functions(world.contexts[0])[0], horizon=6)
    dynamics = FiniteDynamics(world.transition_functions, horizon=6)
    agent = OMG(world.space, rewards, dynamics, gamma=100.0, episodes=3)
    ledger = simulate(world, Sequence(world.contexts), agent, episodes=3)
    assert (ledger.column("certificate") <= 1.0 / (16 * 3)).all()
    assert (ledger.regret >= 0.0).all()
