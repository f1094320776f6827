"""FrozenLake and CliffWalking as worlds: Gymnasium's own tables, mixed by a number."""

import gymnasium
import numpy as np
import pytest

from lab.tests.worlds.catalogue import FROM_GYMNASIUM, model, truths, uniform_policy
from lab.tests.worlds.misspecification import distance_to_class
from omg_cmdp import optimal_policy
from omg_cmdp.environments import from_gymnasium
from omg_cmdp.environments.gymnasium.rollout import EnvironmentPlayer
from omg_lab.worlds import CliffWalking, FrozenLake
from omg_lab.worlds.gymnasium.cliff_walking import FALL

DIALS = (0.0, 0.1, 0.4, 0.9)
each_grid = pytest.mark.parametrize("kind", FROM_GYMNASIUM, ids=lambda kind: kind.__name__)


def half_best(world, context):
    return 0.5 * world.truth(context).best[0] + 0.5 * uniform_policy(world.space)


@pytest.mark.parametrize("map_name", ["4x4", "8x8"])
def test_the_lake_is_gymnasiums_at_every_rate(map_name):
    lake = FrozenLake(map_name=map_name, horizon=20)
    theirs = from_gymnasium(
        lambda success_rate: gymnasium.make("FrozenLake-v1", map_name=map_name, success_rate=success_rate),
        lake.contexts,
        arguments="success_rate",
        horizon=20,
    )
    for rate in (*lake.contexts, 1 / 3):
        for name in ("transitions", "rewards", "start", "admissible"):
            np.testing.assert_allclose(getattr(lake.mdp(rate), name), getattr(theirs.mdp(rate), name), atol=1e-12)


def test_the_cliff_is_gymnasiums_in_calm_and_in_wind():
    """Values agree in Gymnasium's units, for the best policy and for any other."""
    cliff = CliffWalking(horizon=25)
    theirs = from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery", horizon=25)
    for wind, slippery in ((0.0, False), (1.0, True)):
        np.testing.assert_allclose(cliff.mdp(wind).transitions, theirs.mdp(slippery).transitions, atol=1e-12)
        for policy in (cliff.truth(wind).best[0], uniform_policy(cliff.space)):
            own = theirs.original_value(theirs.truth(slippery).value(policy))
            assert FALL * (cliff.truth(wind).value(policy) - 25) == pytest.approx(own, abs=1e-8)


def test_calm_needs_thirteen_steps_and_wind_costs_more():
    cliff = CliffWalking()
    assert FALL * (cliff.optimal_value(0.0) - 30) == pytest.approx(-13.0, abs=1e-9)
    assert (np.diff([cliff.optimal_value(wind) for wind in cliff.contexts]) < 0.0).all()


def test_a_better_grip_is_better():
    lake = FrozenLake()
    assert (np.diff([lake.optimal_value(rate) for rate in lake.contexts]) > 0.0).all()
    assert lake.optimal_value(1.0) == pytest.approx(1.0, abs=1e-12)


@each_grid
@pytest.mark.parametrize("dial", [0.0, 0.5])
def test_nothing_happens_outside_the_support(kind, dial, seed):
    world = kind(seed=seed, misspecification=dial, horizon=10)
    possible = np.array([mdp.transitions > 0.0 for mdp in truths(world)])
    assert not (possible & ~world.support).any()
    assert world.support.mean() < 0.3


def test_an_episode_on_the_lake_earns_one_at_most(seed, rng):
    """Also with the dial; mean returns are the values, and only an episode that ends is paid."""
    for dial in (0.0, 0.5):
        lake = FrozenLake(seed=seed, misspecification=dial)
        policy = half_best(lake, 0.7)
        episodes = [lake.sample(0.7, policy, rng) for _ in range(400)]
        returns = np.array([episode.rewards.sum() for episode in episodes])
        assert set(returns) == {0.0, 1.0}
        value = lake.truth(0.7).value(policy)
        assert returns.mean() == pytest.approx(value, abs=5.0 * np.sqrt(value * (1.0 - value) / 400))
        for episode in episodes[:50]:
            paid = np.flatnonzero(episode.rewards)
            assert (episode.states[paid + 1] == 16).all()
            assert (episode.states[paid] != 16).all()


def test_a_step_along_the_cliff_pays_what_gymnasium_does(seed, rng):
    cliff = CliffWalking(seed=seed)
    policy = half_best(cliff, 0.5)
    paths = [cliff.sample(0.5, policy, rng) for _ in range(300)]
    assert {float(reward) for path in paths for reward in path.rewards} <= {0.0, 0.99, 1.0}
    for path in paths[:50]:
        np.testing.assert_array_equal(path.rewards == 1.0, path.states[:-1] == 48)
    returns = np.array([path.rewards.sum() for path in paths])
    error = 5.0 * returns.std() / np.sqrt(len(returns))
    assert returns.mean() == pytest.approx(cliff.truth(0.5).value(policy), abs=error)


@pytest.mark.parametrize("mean", [0.0, 0.3, 0.66, 0.99, 1.0])
def test_a_reward_along_the_cliff_has_its_mean(mean):
    cliff, uniforms = CliffWalking(horizon=5), (np.arange(1000) + 0.5) / 1000
    drawn = [cliff.draw_reward(mean, uniform) for uniform in uniforms]
    assert np.mean(drawn) == pytest.approx(mean, abs=1e-3)


def test_gymnasium_plays_the_lake_as_the_world_does():
    """The same policy in Gymnasium itself: mean returns within five standard errors."""
    lake = FrozenLake()
    theirs = from_gymnasium("FrozenLake-v1", lake.contexts, arguments="success_rate")
    player = EnvironmentPlayer(theirs.env, theirs.space, theirs.reward_range)
    policy = half_best(lake, 0.9)
    returns = [player.play(0.9, policy, (0, k)).rewards.sum() for k in range(200)]
    error = 5.0 * np.std(returns) / np.sqrt(len(returns))
    assert np.mean(returns) == pytest.approx(lake.truth(0.9).value(policy), abs=error)


@each_grid
def test_tables_are_affine_in_the_features(kind, seed):
    world = kind(seed=seed, horizon=10)
    one, none = world.mdp(1.0), world.mdp(0.0)
    for context in world.contexts:
        shares = world.features(context)
        assert shares.sum() == pytest.approx(1.0)
        for name in ("transitions", "rewards"):
            mixed = np.tensordot(shares, [getattr(mdp, name) for mdp in (one, none)], 1)
            np.testing.assert_allclose(getattr(world.mdp(context), name), mixed, atol=1e-12)


@each_grid
def test_the_truth_is_one_member_of_the_class(kind, seed):
    world = kind(seed=seed, horizon=10)
    admissible = world.space.admissible
    assert world.reward_index == world.transition_index
    for context, mdp in zip(world.contexts, truths(world), strict=True):
        rewards, kernels = world.reward_functions(context), world.transition_functions(context)
        assert rewards.shape == (8, world.space.states, 4)
        np.testing.assert_array_equal(rewards[world.reward_index][admissible], mdp.rewards[admissible])
        np.testing.assert_array_equal(kernels[world.transition_index][admissible], mdp.transitions[admissible])
        values = [optimal_policy(model(world, r, k))[1] for r, k in zip(rewards, kernels, strict=True)]
        np.testing.assert_allclose(values, world.optimal_value(context), rtol=1e-9)  # other names, the same problem


@each_grid
def test_the_distance_to_the_class_grows_with_the_dial(kind, seed):
    distances = np.array([distance_to_class(kind(seed=seed, horizon=5, misspecification=dial)) for dial in DIALS])
    np.testing.assert_array_equal(distances[0], 0.0)
    assert (np.diff(distances, axis=0) > 0.0).all()
    assert np.isfinite(distances).all()


@each_grid
@pytest.mark.parametrize("context", ["calm", -0.1, 1.5, True, [0.5], np.nan, None])
def test_what_is_no_share_is_refused(kind, context):
    world = kind(horizon=5)
    for ask in (world.features, world.reward_functions, world.transition_functions, world.mdp):
        with pytest.raises(ValueError, match="`context` must be a number"):
            ask(context)
