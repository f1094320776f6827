"""Encoders: cells as plain arrays, whatever made them."""

import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.preprocessing import KBinsDiscretizer

import omg_cmdp as omg
from library.tests.environments.encoders.steps import noise, steps
from omg_cmdp.environments import Bins, Clusters, Encoder
from omg_cmdp.oracles import CountDynamics, CountRewards

SEEN = noise(400, actions=np.arange(400) % 2)
KINDS = {
    "bins": lambda: Bins(3),
    "uniform bins": lambda: Bins((4, 1), strategy="uniform"),
    "clusters": lambda: Clusters(7),
}
each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@each_kind
def test_every_observation_has_one_cell(make):
    encoder = make().fit(SEEN)
    cells = encoder.encode(SEEN.observations)
    assert cells.shape == (400,)
    assert set(cells) == set(range(encoder.cells))  # none is empty
    order = np.random.default_rng(1).permutation(400)
    np.testing.assert_array_equal(encoder.encode(SEEN.observations[order]), cells[order])
    np.testing.assert_array_equal(make().fit(SEEN).encode(SEEN.observations), cells)
    assert 0 <= encoder.encode([[1e9, -1e9]])[0] < encoder.cells


@each_kind
def test_cells_do_not_depend_on_units(make):
    scale = np.array([8.0, 0.125])
    scaled = steps(scale * SEEN.observations, scale * SEEN.next_observations, actions=SEEN.actions)
    cells = make().fit(scaled).encode(scaled.observations)
    np.testing.assert_array_equal(cells, make().fit(SEEN).encode(SEEN.observations))


@each_kind
@pytest.mark.parametrize("offset", [1e3, -1e12])
def test_cells_do_not_depend_on_where_zero_is(make, offset):
    """A clock in seconds since 1970, or a place in metres from somewhere else: numbers that a float holds exactly."""
    here, there = (np.round(16.0 * each) / 16.0 for each in (SEEN.observations, SEEN.next_observations))
    near = make().fit(steps(here, there, actions=SEEN.actions))
    far = make().fit(steps(here + offset, there + offset, actions=SEEN.actions))
    np.testing.assert_array_equal(far.encode(here + offset), near.encode(here))
    np.testing.assert_array_equal(far.encode(there + offset), near.encode(there))
    other = make()
    other.load_state(far.state())
    np.testing.assert_array_equal(other.encode(there + offset), near.encode(there))


def test_steps_are_episodes_in_the_cells():
    """One that terminated, one of which no more is known, and one that lasts longer than the horizon."""
    seen = noise(40, episodes=np.repeat([3, 4, 7], [10, 10, 20]), terminated=np.arange(40) == 9, rewards=np.ones(40))
    bins = Bins(2).fit(seen)
    space = omg.Space(states=5, actions=2, horizon=12, start=np.full(5, 0.2))
    ended, truncated, cut = bins.episodes(seen, space, ["a"])
    before, after = bins.encode(seen.observations), bins.encode(seen.next_observations)
    np.testing.assert_array_equal(ended.states, [*before[:10], 4, 4, 4])
    np.testing.assert_array_equal(ended.rewards, [1.0] * 10 + [0.0] * 2)
    np.testing.assert_array_equal(truncated.states, [*before[10:20], after[19]])
    np.testing.assert_array_equal(cut.states, [*before[20:32], after[31]])
    for episode in (ended, truncated, cut):
        episode.check(space)
        assert episode.context == "a"


@each_kind
def test_a_state_is_plain_arrays_and_gives_the_same_cells(make):
    encoder, other = make().fit(SEEN), make()
    state = encoder.state()
    assert all(array.dtype.kind in "ifU" for array in state.values())
    other.load_state(state)
    np.testing.assert_array_equal(other.encode(SEEN.observations), encoder.encode(SEEN.observations))
    assert other.cells == encoder.cells


@each_kind
def test_a_state_that_does_not_fit_changes_nothing(make):
    encoder = make().fit(SEEN)
    before, state = encoder.encode(SEEN.observations), encoder.state()
    refused = [state | {name: array[..., :-1]} for name, array in state.items() if array.ndim]
    refused += [state | {name: np.full_like(array, np.nan)} for name, array in state.items() if array.dtype.kind == "f"]
    refused += [{name: array for name, array in state.items() if name != gone} for gone in state]
    refused += [state | {"dimension": np.array(0)}, state | {"dimension": np.array(2.0)}]
    refused += [state | {"settings": np.array("Bins(9)")}]
    for bad in refused:
        with pytest.raises(ValueError, match="`state` must"):
            encoder.load_state(bad)
    np.testing.assert_array_equal(encoder.encode(SEEN.observations), before)


def test_bins_are_those_of_scikit_learn():
    rounded = SEEN.observations.round(1)  # so that some lie on edges
    for strategy, options in (("quantile", {"quantile_method": "linear"}), ("uniform", {})):
        theirs = KBinsDiscretizer(4, encode="ordinal", strategy=strategy, subsample=None, **options)
        codes = theirs.fit(rounded).transform(rounded)
        ours = Bins(4, strategy=strategy).fit(steps(rounded, rounded)).encode(rounded)
        np.testing.assert_array_equal(ours, codes @ [4, 1])


def test_clusters_are_those_of_scikit_learn():
    scaled = SEEN.observations / SEEN.observations.std(axis=0)
    theirs = KMeans(7, n_init=1, random_state=0).fit_predict(scaled)
    np.testing.assert_array_equal(Clusters(7).fit(SEEN).encode(SEEN.observations), theirs)


def test_a_feature_that_never_changes_makes_no_cells():
    flat = steps(np.ones((50, 2)), np.ones((50, 2)))
    assert [kind(5).fit(flat).cells for kind in (Bins, Clusters)] == [1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Bins(0), "`bins` must be an integer of at least 1, got 0"),
        (lambda: Bins(()), "`bins` must name at least one"),
        (lambda: Bins("4"), "`bins` must be an integer"),
        (
            lambda: Bins((2, 2, 2)).fit(SEEN),
            r"`bins` must be one number, or one for each of 2 features, got \(2, 2, 2\)",
        ),
        (lambda: Bins(3, strategy="kmeans"), "`strategy` must be one of quantile, uniform, got 'kmeans'"),
        (lambda: Clusters(2.5), "`most` must be an integer of at least 1, got 2.5"),
        (lambda: Clusters(3, seed=-1), "`seed` must"),
        (lambda: Bins(3).fit(SEEN.observations), "`steps` must be a Steps, got ndarray"),
        (lambda: Clusters(3).encode([[0.0, 1.0]]), r"`encoder` must be fitted, got Clusters\(3, seed=0\)"),
        (lambda: Clusters(3).state(), "`encoder` must be fitted"),
        (lambda: Bins(3).fit(SEEN).encode([0.0, 1.0]), r"`observations` must have shape \(n, d\), got \(2,\)"),
        (lambda: Bins(3).fit(SEEN).encode_steps([[0.0, 1.0]]), "`steps` must be a Steps, got list"),
        (lambda: Bins(3).fit(SEEN).encode([[0.0]]), r"`observations` must have shape \(n, 2\), got \(1, 1\)"),
        (lambda: Bins(3).fit(SEEN).encode([[0.0, np.nan]]), "`observations` must .* got nan at index"),
        (
            lambda: omg.Space(states=3, actions=2, horizon=2, encoder=Bins(2)),
            "`encoder` must be the state of .* got Bins",
        ),
        (lambda: noise(0), "`observations` must have at least one row"),
        (lambda: noise(9, actions=np.zeros(8, dtype=int)), r"`actions` must have shape \(9,\), got \(8,\)"),
        (lambda: noise(9, contexts=-np.ones(9, dtype=int)), "`contexts` must be integers of at least 0"),
        (lambda: noise(9, terminated=np.zeros(9)), "`terminated` must be boolean, got dtype float64"),
        (lambda: noise(9).where(np.arange(8) > 3), "`chosen` must have shape .9,., got .8,."),
        (lambda: noise(9, episodes=np.arange(9)[::-1]), "`episodes` must not decrease, got 7 at index 1"),
        (
            lambda: Bins(2).fit(SEEN).episodes(SEEN, omg.Space(states=4, actions=2, horizon=9), ["a"]),
            "`space` must have 4 . 1 states and 2 actions, got 4 and 2",
        ),
        (
            lambda: Bins(2).fit(SEEN).episodes(SEEN, omg.Space(states=5, actions=2, horizon=9), []),
            "`contexts` must hold the 1 of the steps, got 0",
        ),
        (lambda: noise(9, rewards=np.full(9, np.inf)), "`rewards` must .* got inf"),
    ],
)
def test_wrong_calls_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_bad_fit_keeps_the_cells():
    bins = Bins((2, 3)).fit(SEEN)
    with pytest.raises(ValueError, match="`bins` must"):
        bins.fit(noise(50, dimension=3))
    assert (bins.cells, bins.dimension) == (6, 2)


def test_without_scikit_learn_one_is_told_what_to_install(monkeypatch):
    fitted = Clusters(3).fit(SEEN)
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(ImportError, match=r"pip install scikit-learn"):
        Clusters(3).fit(SEEN)
    assert len(fitted.encode(SEEN.observations)) == 400  # only fitting needs it


class Sign(Encoder):
    """An encoder of a user."""

    def _fit(self, steps):
        return {}

    def _load(self, arrays, dimension):
        self.cells = 2

    def _encode(self, observations):
        return observations[:, 0] > 0.0

    def __repr__(self):
        return "Sign()"


def agent(encoder):
    sizes = {"states": 3, "actions": 2, "horizon": 2}
    space = omg.Space(**sizes, encoder=encoder.state())
    return omg.agents.Greedy(space, CountRewards(**sizes), CountDynamics(**sizes))


def test_cells_are_saved_with_the_agent_and_no_others_are_accepted(tmp_path):
    bins, path = Bins((2, 1)).fit(SEEN), tmp_path / "agent.npz"
    saved = agent(bins)
    saved.update(omg.Trajectory(context=0, states=[0, 1, 2], actions=[0, 1], rewards=[1.0, 0.0]))
    saved.save(path)
    restored = Bins((2, 1)).restore(path)
    np.testing.assert_array_equal(restored.encode(SEEN.observations), bins.encode(SEEN.observations))
    same = agent(restored)
    same.restore(path)
    np.testing.assert_array_equal(same.policy(0), saved.policy(0))
    for other in (Bins((2, 1)).fit(noise(400, seed=1)), Bins((1, 2)).fit(SEEN), Sign().fit(SEEN)):
        stranger = agent(other)
        with pytest.raises(ValueError, match=r"`state` must come from.*encoder's"):
            stranger.restore(path)
        assert stranger.episodes_seen == 0
    with pytest.raises(ValueError, match="`state` must come from 'Clusters"):
        Clusters(2).restore(path)


def test_an_encoder_of_your_own_needs_no_more():
    own = Sign().fit(SEEN)
    np.testing.assert_array_equal(own.encode([[-1.0, 0.0], [1.0, 0.0]]), [0, 1])
