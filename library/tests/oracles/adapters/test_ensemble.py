"""Which copy learns what, what is drawn, and packages that are imported with the first use of their adapters."""

import subprocess
import sys

import numpy as np
import pytest

from library.tests.oracles.adapters.catalogue import KINDS, MAKERS
from omg_cmdp.oracles import adapters
from omg_cmdp.oracles.adapters.ensemble import Ensemble, lessons
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.adapters.models import ModelKind
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.losses import LOG


@pytest.mark.parametrize("members", [2, 4, 5, 8])
@pytest.mark.parametrize("period", [1, 4, 5, 8, 21, 64])
def test_every_copy_misses_its_share_of_every_step(members, period):
    """Of the examples at a step, or with one of several contexts in turn; i mod M would fail where M divides them."""
    missed = ~lessons(0, 1000 * period, members).reshape(members, 1000, period)
    assert (missed.sum(axis=0) == 1).all()
    assert np.abs(missed.mean(axis=1) * members - 1.0).max() < 0.5


def test_lessons_do_not_depend_on_how_episodes_cut_them():
    whole = lessons(0, 60, 4)
    np.testing.assert_array_equal(np.concatenate([lessons(7 * t, 7, 4) for t in range(8)], axis=1), whole[:, :56])
    # After one example all copies but one have learned something, after two all have.
    for members in range(2, 50):
        assert lessons(0, 1, members).any(axis=1).sum() == members - 1
        assert lessons(0, 2, members).any(axis=1).all()


def test_a_single_copy_learns_everything():
    assert lessons(5, 3, 1).tolist() == [[True, True, True]]


def test_every_adapter_is_in_the_catalogue():
    assert sorted(adapters.__all__) == sorted(f"{package.title()}{kind}" for package in MAKERS for kind in KINDS)


def test_importing_the_oracles_imports_no_foreign_package():
    """A fresh interpreter: scikit-learn waits until one of its models is wrapped."""
    script = "import sys, omg_cmdp; print(omg_cmdp.oracles.SklearnRewards.__module__, *sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "omg_cmdp.oracles.adapters.sklearn" in loaded
    assert "sklearn" not in loaded


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    class Model:
        def partial_fit(self, inputs, outcomes): ...
        def predict(self, inputs): ...

    for module in ("sklearn", "sklearn.base"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        adapters.SklearnRewards(Model(), states=1, actions=1, horizon=1)


class Said(ModelKind):
    """A model that says what it is told to."""

    def fit(self, pupil, inputs, outcomes):
        pass

    def ask(self, pupil, inputs):
        return pupil.pop()


def ensemble(tables, said, visits, rng, **options):
    """Return forecasters whose copies say `said` (M, ...), and what they say, as if pairs had been visited so often."""
    states, actions = visits.shape
    found = Ensemble(None, Said, tables, states=states, actions=actions, horizon=2, members=len(said), **options)
    found.account.episodes, found.account.examples, found.visits = 1, 2, visits
    found.copies = [[table[found.admissible]] for table in said]
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
