"""The package's worlds as Gymnasium environments: valid, seeded, vectorised, and the same worlds."""

import importlib.metadata
import warnings

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TransformObservation

from lab.tests.worlds.catalogue import WORLDS, uniform_policy
from omg_cmdp.environments import SampledWorld, from_gymnasium
from omg_lab import worlds
from omg_lab.worlds import WorldEnv

DATA = {
    "ACTG175": "lifelines",
    "Classification": "scikit-learn",
    "ICUSepsis": "icu-sepsis",
    "ReducedSepsis": "icu-sepsis",
}
each_world = pytest.mark.parametrize("kind", WORLDS, ids=lambda kind: kind.__name__)


def skip_without(package):
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")


@each_world
def test_gymnasium_accepts_it(kind):
    check_env(WorldEnv(kind()), skip_render_check=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DATA)
def test_gymnasium_accepts_the_worlds_of_data(kind):
    skip_without(DATA[kind])
    env = WorldEnv(getattr(worlds, kind)())
    check_env(env, skip_render_check=True)
    context = env.world.contexts[1]
    np.testing.assert_array_equal(env.reset(options={"context": context})[1]["context"], context)


@each_world
def test_the_context_comes_in_and_is_reported(kind):
    env = WorldEnv(kind())
    world = env.world
    for context in world.contexts[:3]:
        observation, info = env.reset(options={"context": context})
        np.testing.assert_array_equal(observation["context"], context)
        np.testing.assert_array_equal(info["context"], context)
        assert info["optimal_value"] == world.optimal_value(context)
    seen = [np.asarray(env.reset(seed=seed)[1]["context"]).tolist() for seed in range(20)]
    assert len({str(each) for each in seen}) > min(3, len(world.contexts) - 1)  # drawn, if nobody says which
    with pytest.raises(ValueError, match="`context` must"):
        env.reset(options={"context": "nobody"})
    env.reset(seed=0)  # and it goes on


@each_world
def test_what_is_no_action_is_refused_and_changes_nothing(kind):
    env = WorldEnv(kind())
    observation, _ = env.reset(seed=0)
    for wrong in (-1, env.action_space.n, 0.5):
        with pytest.raises(ValueError, match=r"`action` must be in Discrete"):
            env.step(wrong)
    assert env.step(0)[0]["step"] == observation["step"] + 1


@each_world
def test_an_episode_terminates_at_the_horizon_and_not_before(kind):
    env = WorldEnv(kind())
    env.reset(seed=0)
    endings = []
    for _ in range(env.world.space.horizon):
        observation, reward, terminated, truncated, info = env.step(0)
        assert 0.0 <= reward <= 1.0
        assert not truncated
        endings.append(terminated)
        assert info["action_mask"].tolist() == env.world.space.admissible[observation["state"]].tolist()
    assert endings == [False] * (len(endings) - 1) + [True]
    assert observation["step"] == len(endings)


@each_world
def test_vectorised_versions_play_alike(kind):
    envs = SyncVectorEnv([lambda: WorldEnv(kind())] * 3)
    observations, infos = envs.reset(seed=5)
    assert len(observations["state"]) == len(infos["context"]) == 3
    alone = WorldEnv(kind())
    alone.reset(seed=5)  # sub-environment k gets seed 5 + k
    for action in (0, 1, 0):
        step = envs.step(np.array([action, 0, 1]))
        single = alone.step(action)
        np.testing.assert_array_equal(step[0]["context"][0], single[0]["context"])
        assert step[0]["state"][0] == single[0]["state"]
        assert step[1][0] == single[1]
        if single[2]:
            break
    envs.close()


@each_world
def test_it_is_the_world_that_it_says(kind):
    """What goes out as an environment comes in as a world: a policy earns its value, within five standard errors.

    Half of it is the best one, half is chance, so that what is rare has been seen.
    """

    def states_only():
        env = WorldEnv(kind())
        return TransformObservation(env, lambda seen: seen["state"], Discrete(env.world.space.states))

    world = states_only().unwrapped.world
    context, other = world.contexts[0], world.contexts[1]
    horizon, states = world.space.horizon, world.space.states
    again = from_gymnasium(
        states_only, [context, other], horizon=horizon, reward_range=(0, 1), start=[*world.space.start, 0.0]
    )
    assert isinstance(again, SampledWorld)
    assert (again.space.states, again.space.actions) == (states + 1, world.space.actions)
    policy = np.zeros((horizon, states + 1, world.space.actions))
    half_best = 0.5 * world.truth(context).best[0] + 0.5 * uniform_policy(world.space)
    policy[:, :-1], policy[:, -1, 0] = half_best, 1.0
    returns = again.returns(context, policy, 120)
    error = 5.0 * returns.std() / np.sqrt(len(returns)) + 1e-9
    assert returns.mean() == pytest.approx(world.truth(context).value(half_best), abs=error)


def test_what_is_not_admissible_is_played_as_what_is():
    env = WorldEnv(worlds.TreatmentTrial())
    for seed in range(40):
        env.reset(seed=seed)
        for _ in range(6):
            before = env._state
            observation, _, _, _, _ = env.step(2)
            if before in (0, 4):
                assert observation["state"] == before  # recovered and dead stay so, as after waiting


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*(kind.__name__ for kind in WORLDS), *DATA])
def test_an_agent_of_another_library_plays_it(kind):
    """Stable-Baselines3's PPO reads state, step and context, learns a little, and never beats V* beyond noise."""
    for package in ("stable-baselines3", *([DATA[kind]] if kind in DATA else [])):
        skip_without(package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library and those that it imports
        import torch
        from stable_baselines3 import PPO
        from stable_baselines3.common.env_checker import check_env as check_baselines

        torch.set_num_threads(1)
        env = WorldEnv(getattr(worlds, kind)())
        check_baselines(env)
        agent = PPO("MultiInputPolicy", env, n_steps=128, batch_size=64, seed=0, device="cpu").learn(512)
        shortfalls = []
        for seed in range(60):
            (observation, info), earned, over = env.reset(seed=seed), 0.0, False
            while not over:
                action, _ = agent.predict(observation, deterministic=True)
                observation, reward, over, _, _ = env.step(action)
                earned += reward
            shortfalls.append(info["optimal_value"] - earned)
    assert np.mean(shortfalls) > -5.0 * np.std(shortfalls) / np.sqrt(len(shortfalls))
    assert np.mean(shortfalls) <= env.world.space.horizon
