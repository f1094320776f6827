"""Which copy learns what, what is drawn, how answers are cut, and that no foreign package is imported."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from library.tests.oracles.adapters.catalogue import ACTIONS, HORIZON, KINDS, STATES, episode
from omg_cmdp.oracles import adapters
from omg_cmdp.oracles.adapters.ensemble import Ensemble, lessons
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.losses import LOG


@pytest.mark.parametrize("members", [2, 4, 5, 8])
@pytest.mark.parametrize("period", [1, 4, 5, 8, 21, 64])
def test_every_copy_misses_its_share_of_every_step(members, period):
    """Of the examples at a step, or with one of several contexts in turn; i mod M would fail where M divides them."""
    missed = ~lessons(1000 * period, members).reshape(members, 1000, period)
    assert (missed.sum(axis=0) == 1).all()
    assert np.abs(missed.mean(axis=1) * members - 1.0).max() < 0.5


def test_lessons_do_not_change_when_there_are_more_examples():
    np.testing.assert_array_equal(lessons(56, 4), lessons(60, 4)[:, :56])
    # After one example all copies but one have learned something, after two all have.
    for members in range(2, 50):
        assert lessons(1, members).any(axis=1).sum() == members - 1
        assert lessons(2, members).any(axis=1).all()


def test_a_single_copy_learns_everything():
    assert lessons(3, 1).tolist() == [[True, True, True]]


def test_every_adapter_is_in_the_catalogue():
    assert sorted(adapters.__all__) == sorted(f"Refitted{kind}" for kind in KINDS)


def test_importing_the_oracles_imports_no_foreign_package():
    """A fresh interpreter: scikit-learn is the user's."""
    script = "import sys, omg_cmdp; print(omg_cmdp.oracles.RefittedRewards.__module__, *sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "omg_cmdp.oracles.adapters.refitted" in loaded
    assert "sklearn" not in loaded


def test_models_are_copied_and_seeded(rng):
    pytest.importorskip("sklearn")
    from sklearn.neural_network import MLPRegressor

    model, sizes = MLPRegressor(hidden_layer_sizes=(8,), max_iter=2), (STATES, ACTIONS, HORIZON)
    shape = dict(zip(("states", "actions", "horizon"), sizes, strict=True))
    first, second = (adapters.RefittedRewards(model, **shape) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two iterations are too few
        for _ in range(3):
            arrays = episode(rng, "Rewards")
            first.update(*arrays)
            second.update(*arrays)
    np.testing.assert_array_equal(first.predict([0.5, 0.5]), second.predict([0.5, 0.5]))
    assert model.random_state is None
    assert not hasattr(model, "coefs_")


@pytest.mark.parametrize(
    ("answer", "row"),
    [
        ([1e-6, 3e-6, 1.0], [0.25, 0.75, 0.0]),  # the third cannot happen: its answer, conditional on that
        ([0.0, 0.0, 1.0], [0.5, 0.5, 0.0]),  # no mass on what can happen
        ([0.0, 1.0, 0.0], [0.01 / 1.01, 1.0 / 1.01, 0.0]),  # below the floor
    ],
)
def test_answers_are_cut_to_the_support_and_the_floor(answer, row):
    tables = TransitionTables(np.ones((3, 1), bool), np.broadcast_to([True, True, False], (3, 1, 3)), floor=0.01)
    np.testing.assert_allclose(tables.rows(np.tile(answer, (3, 1))), np.tile(row, (3, 1)), rtol=1e-12)


class Model:
    """What can be fitted and asked, and never is."""

    fit = predict = predict_proba = None


class Said:
    """A copy that says what it is told to."""

    def __init__(self, table):
        self.ask = lambda inputs: table


def ensemble(tables, said, visits, rng, **options):
    """Return forecasters whose copies say `said` (M, ...), and what they say, as if pairs had been visited so often."""
    states, actions = visits.shape
    found = Ensemble(Model(), tables, states=states, actions=actions, horizon=2, members=len(said), **options)
    found.fitted, found.visits = np.array(2.0), visits
    found.copies = [Said(table[found.admissible]) for table in said]
    return found, found.prepare(rng.random(1))


@pytest.mark.parametrize("members", [1, 2, 4])
def test_drawn_rewards_have_the_variance_that_is_claimed(members, rng):
    """Also where the copies agree, on a pair that was never visited; only pairs that are not admissible stay put."""
    said = 0.5 + 0.05 * rng.standard_normal((members, 2, 3))
    said[:, 0, 0] = 0.5
    visits, admissible = (
        np.array([[60.0, 1e6, 1e6], [100.0, 1e6, 0.0]]),
        np.array([[True, True, True], [True, True, False]]),
    )
    copies, asked = ensemble(RewardTables, said, visits, rng, admissible=admissible)
    claimed = copies.expected_divergence(asked, asked.tables.mean(axis=0))
    drawn = copies.draws(asked, Streams.fresh(20_000, rng))
    assert (drawn[:, 1, 2] == 0.0).all()
    np.testing.assert_allclose(drawn.mean(axis=0), asked.tables.mean(axis=0), atol=0.005)
    np.testing.assert_allclose(drawn.var(axis=0), claimed, rtol=0.1, atol=1e-9)
    assert drawn[:, 0, 0].var() == pytest.approx(0.25 / 61.0, rel=0.1)


@pytest.mark.parametrize("members", [1, 2, 4])
def test_drawn_transitions_are_as_far_from_the_mean_as_is_claimed(members, rng):
    said = rng.dirichlet(np.full(3, 300.0), (members, 3, 2))
    said[:, 0, 0] = said[0, 0, 0]
    visits = np.full((3, 2), 400.0)
    copies, asked = ensemble(TransitionTables, said, visits, rng)
    prediction = asked.tables.mean(axis=0)
    drawn = copies.draws(asked, Streams.fresh(5000, rng))
    LOG.check_tables("draws", drawn)
    divergences = LOG.divergence(drawn, prediction).mean(axis=0)
    np.testing.assert_allclose(divergences, copies.expected_divergence(asked, prediction), rtol=0.2)


def test_what_was_never_visited_varies_most(rng):
    said = np.repeat(rng.dirichlet(np.ones(3), (1, 3, 2)), 4, axis=0)
    visits = np.array([[0.0, 10.0], [100.0, 1000.0], [1e4, 1e5]])
    copies, asked = ensemble(TransitionTables, said, visits, rng)
    spread = LOG.divergence(copies.draws(asked, Streams.fresh(500, rng)), said[0]).mean(axis=0).ravel()
    assert (np.diff(spread) < 0.0).all()
    assert spread[0] > 0.3
