"""Gymnasium's tables become exact contextual MDPs: the same values, policies and regrets, up to the stated map."""

import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

import omg_cmdp as omg
from library.tests.environments.gymnasium.tables import cliff, half_best, lake, random_maps, taxi
from omg_cmdp.environments import from_gymnasium
from omg_cmdp.environments.gymnasium.rollout import EnvironmentPlayer
from omg_cmdp.oracles import CountDynamics, CountRewards

WORLDS = {"lake": lake, "random maps": random_maps, "taxi": taxi, "cliff": cliff}


@pytest.fixture(scope="module", params=WORLDS)
def world(request):
    return WORLDS[request.param]()


def own_value(table, start, horizon, choose):
    """Return the value of a policy in Gymnasium's units, straight from `P`: nothing comes after a terminated step."""
    after = np.zeros(len(table))
    for h in reversed(range(horizon)):
        before = np.empty(len(table))
        for s, rows in table.items():
            gains = [sum(p * (r + (0.0 if end else after[t])) for p, t, r, end in rows[a]) for a in sorted(rows)]
            before[s] = choose(h, s, np.array(gains))
        after = before
    return float(start @ after)


def test_optimal_values_are_those_of_the_original_problem(world):
    for context in world.contexts[:2]:
        env = world.env.open(context).unwrapped
        own = own_value(env.P, env.initial_state_distrib, world.space.horizon, lambda h, s, gains: gains.max())
        assert world.original_value(world.optimal_value(context)) == pytest.approx(own, abs=1e-8)


def test_every_policy_keeps_its_place(world, rng):
    """A value here is affine in the value there, by one map for all policies: so are regrets, up to the scale."""
    context, space = world.contexts[0], world.space
    env = world.env.open(context).unwrapped
    low, high = world.reward_range
    truth, best = world.truth(context), world.original_value(world.optimal_value(context))
    for _ in range(2):
        policy = rng.dirichlet(np.ones(space.actions), size=(space.horizon, space.states))
        policy[:, -1] = np.eye(space.actions)[0]
        table = policy  # bound now, for the function below
        own = own_value(env.P, env.initial_state_distrib, space.horizon, lambda h, s, gains: table[h, s] @ gains)  # noqa: B023
        assert world.original_value(truth.value(policy)) == pytest.approx(own, abs=1e-8)
        assert (high - low) * truth.regret(policy) == pytest.approx(best - own, abs=1e-7)


def test_the_environment_itself_earns_what_the_tables_say(world):
    """Two policies played through Gymnasium: mean returns within five standard errors."""
    player = EnvironmentPlayer(world.env, world.space, world.reward_range)
    context = world.contexts[-1]
    for policy in (world.truth(context).best[0], half_best(world, context)):
        returns = [player.play(context, policy, (0, k)).rewards.sum() for k in range(150)]
        error = 5.0 * np.std(returns) / np.sqrt(len(returns)) + 1e-9
        assert np.mean(returns) == pytest.approx(world.original_value(world.truth(context).value(policy)), abs=error)


def test_samples_have_the_right_means(world, rng):
    """Drawn without Gymnasium: the mean of returns is the value."""
    context = world.contexts[-1]
    policy = half_best(world, context)
    returns = [world.sample(context, policy, rng).rewards.sum() for _ in range(300)]
    error = 5.0 * np.std(returns) / np.sqrt(len(returns)) + 1e-9
    assert np.mean(returns) == pytest.approx(world.truth(context).value(policy), abs=error)


def test_samples_are_episodes_that_gymnasium_could_play(world, rng):
    """Rewards have their distribution given the next state: a goal pays where it is reached, and nowhere else."""
    low, high = world.reward_range
    for context in world.contexts:
        policy = half_best(world, context)
        path = world.sample(context, policy, rng)
        original = omg.Trajectory(
            context=context, states=path.states, actions=path.actions, rewards=low + (high - low) * path.rewards
        )
        assert world.outcomes(context).first_impossible_step(original) is None
        np.testing.assert_array_equal(
            path.propensities, policy[np.arange(len(path.actions)), path.states[:-1], path.actions]
        )


def test_one_next_state_may_pay_differently():
    """Slipping off the cliff and staying at the start both lead to the start: -100 or -1."""
    outcomes, cells = cliff().outcomes(True), 20_000
    step = omg.Trajectory(context=True, states=[36] * (cells + 1), actions=[0] * cells, rewards=[0.0] * cells)
    drawn = outcomes.draw(step, np.random.default_rng(0).random(cells))
    assert set(drawn) == {-1.0, -100.0}  # up: left stays, right falls, each with probability ⅓
    assert np.mean(drawn == -100.0) == pytest.approx(0.5, abs=0.02)
    assert outcomes.transitions()[36, 0, 36] == pytest.approx(2 / 3)
    assert outcomes.mean_rewards()[36, 0] == pytest.approx(-34.0)


def test_frozen_lake_is_affine_in_its_success_rate():
    world = lake()
    ends = [world.mdp(rate) for rate in (0.2, 0.8)]
    middle = world.mdp(0.5)
    for name in ("transitions", "rewards"):
        mean = 0.5 * (getattr(ends[0], name) + getattr(ends[1], name))
        np.testing.assert_allclose(getattr(middle, name), mean, atol=1e-12)


def test_ended_episodes_wait_in_one_more_state_and_earn_nothing(world):
    low, high = world.reward_range
    states = world.env.open(world.contexts[0]).observation_space.n
    assert world.space.states == states + 1
    np.testing.assert_array_equal(world.space.admissible.sum(axis=1), [world.space.actions] * states + [1])
    for context in world.contexts:
        mdp = world.mdp(context)
        assert mdp.transitions[-1, 0, -1] == 1.0
        assert low + (high - low) * mdp.rewards[-1, 0] == pytest.approx(0.0, abs=1e-12)
        table = world.env.open(context).unwrapped.P
        ending = [[sum(p for p, _, _, end in table[s][a] if end) for a in table[s]] for s in range(states)]
        np.testing.assert_allclose(mdp.transitions[:-1, :, -1], ending, atol=1e-12)


def test_a_wider_range_changes_the_units_and_nothing_else():
    narrow, wide = lake(), lake(reward_range=(-1.0, 3.0))
    for rate in narrow.contexts:
        best, policy = narrow.optimal_value(rate), narrow.truth(0.6).best[0]
        assert wide.original_value(wide.optimal_value(rate)) == pytest.approx(best)
        assert 4.0 * wide.truth(rate).regret(policy) == pytest.approx(narrow.truth(rate).regret(policy))


def test_the_least_and_the_most_that_an_episode_can_earn(world):
    """As by the best and the worst luck in Gymnasium's own tables, and no episode leaves the range."""
    for context in world.contexts[:2]:
        env, horizon = world.env.open(context).unwrapped, world.space.horizon
        ends = world.outcomes(context).returns(horizon, world.space.start)
        for extreme, end in zip((min, max), ends, strict=True):
            after = np.zeros(len(env.P))
            for _ in range(horizon):
                lucky = (
                    extreme(r + (0.0 if end else after[t]) for rows in env.P[s].values() for p, t, r, end in rows if p)
                    for s in range(len(env.P))
                )
                after = np.fromiter(lucky, float)
            assert end == pytest.approx(extreme(after[env.initial_state_distrib > 0.0]))
        player = EnvironmentPlayer(world.env, world.space, world.reward_range)
        earned = [player.play(context, half_best(world, context), (k,)).rewards.sum() for k in range(50)]
        assert ends[0] - 1e-9 <= min(earned) <= max(earned) <= ends[1] + 1e-9


def test_a_world_carries_what_an_episode_can_earn():
    """In the environment's units, and for rewards rescaled to [0, 1]: r → (r + 1)/4, here, in 30 steps."""
    assert (lake().return_range, lake().paid_returns) == (None, (0.0, 30.0))
    assert (lake(None, (0, 1)).return_range, lake(None, (0, 1)).paid_returns) == ((0.0, 1.0), (0.0, 1.0))
    assert (lake((-1.0, 3.0), (0, 1)).return_range, lake((-1.0, 3.0), (0, 1)).paid_returns) == ((0, 1), (7.5, 7.75))
    for world in (lake(None, (0, 1)), lake((-1.0, 3.0), (0, 1))):
        sizes = {"states": world.space.states, "actions": world.space.actions, "horizon": world.space.horizon}
        pairs = [(CountRewards(**sizes), CountDynamics(**sizes)) for _ in range(2)]
        simulated = omg.agents.PosteriorSampling(world.space, *pairs[0], return_range=world.paid_returns)
        omg.simulate(world, omg.adversaries.IID(world.contexts), simulated, episodes=20)
        ranges = {"reward_range": world.reward_range, "return_range": world.return_range}
        played = omg.agents.PosteriorSampling(world.space, *pairs[1], **ranges)
        assert played.returns == pytest.approx(simulated.returns)
        omg.play(world, played, world.contexts * 5)


@pytest.mark.parametrize("narrow", [(0.0, 0.5), (0.5, 1.0), (31.0, 32.0), (-2.0, -1.0), (1.0, 0.0), 1.0])
def test_a_range_that_an_episode_can_leave_is_refused(narrow):
    with pytest.raises(ValueError, match="`return_range` must"):
        lake(None, narrow)


def test_no_policy_suits_all_maps():
    maps = random_maps()
    policies = [maps.truth(context).best[0] for context in maps.contexts]
    single = max(np.mean([maps.truth(c).value(policy) for c in maps.contexts]) for policy in policies)
    assert np.mean([maps.optimal_value(c) for c in maps.contexts]) > single + 0.2


def test_any_context_of_the_kind_has_an_mdp_and_no_other():
    world = lake()
    assert world.optimal_value(0.75) > world.optimal_value(0.6)
    for wrong in ((0.4, 0.5), "slippery", [0.4], [[0.4], [0.5, 0.6]]):
        with pytest.raises(ValueError, match="`context` must all be numbers of shape"):
            world.mdp(wrong)


def test_agents_and_simulations_take_such_a_world(seed):
    world, sizes = lake(), {"states": 17, "actions": 4, "horizon": 30}
    agent = omg.OMG(world.space, CountRewards(**sizes), CountDynamics(**sizes))
    ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=3, seed=seed)
    assert (ledger.regret > -1e-12).all()


def test_a_world_travels_to_another_process():
    world = lake()
    again = pickle.loads(pickle.dumps(world))
    np.testing.assert_array_equal(again.mdp(0.7).transitions, world.mdp(0.7).transitions)


def test_the_time_limit_is_the_horizon():
    world = from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate")
    assert world.space.horizon == 100
    with pytest.raises(ValueError, match="`horizon` must be at most the environment's time limit 100, got 101"):
        from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=101)
    with pytest.raises(ValueError, match="`horizon` must be given"):
        from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery")
    limited = gymnasium.wrappers.TimeLimit
    short = from_gymnasium(lambda **kwargs: limited(FrozenLakeEnv(**kwargs), 7), [0.4, 0.9], arguments="success_rate")
    assert short.space.horizon == 7
