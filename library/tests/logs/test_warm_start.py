"""An agent that learned from a log is the agent that was shown its episodes, and its oracles keep their bounds."""

import numpy as np
import pytest

from library.tests.logs.tables import changed
from library.tests.worlds import SafeArm
from omg_cmdp import OMG, Agent, Episode, Space, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Greedy
from omg_cmdp.logs import Log, warm_start
from omg_cmdp.mdp.occupancy import uniform_policy
from omg_cmdp.oracles import CountDynamics, FiniteDynamics, FiniteRewards, LinearRewards


def agent(world, kind=Greedy, **options):
    oracles = FiniteRewards(world.reward_functions, horizon=4), FiniteDynamics(world.transition_functions, horizon=4)
    return kind(world.space, *oracles, **options)


def uniform_log(world, count, rng):
    policy = uniform_policy(world.space)
    return Log(world.space, [world.sample(context, policy, rng) for context in rng.integers(16, size=count).tolist()])


def equal(one, two):
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


def test_it_learns_each_episode_once_and_in_order(seed, rng):
    world = SafeArm(seed=seed)
    log = uniform_log(world, 40, rng)
    warm, shown = agent(world, OMG), agent(world, OMG)
    assert warm_start(warm, log) is warm
    for episode in log.episodes:
        shown.update(episode)
    assert equal(warm.state(), shown.state())
    assert warm.episodes_seen == 40


def test_episodes_of_another_policy_teach_what_greed_never_learns(seed, rng):
    """The decoy's safe arm keeps a greedy agent from trying the others; a log of a trial has tried them."""
    world = SafeArm(seed=seed)
    cold, warm = agent(world), warm_start(agent(world), uniform_log(world, 300, rng))
    lost = [simulate(world, IID(world.contexts), each, episodes=100, seed=seed).regret.mean() for each in (cold, warm)]
    assert lost[1] < 0.2 * lost[0]


def test_the_oracles_keep_their_bounds_over_logged_and_own_episodes(seed, rng):
    world = SafeArm(seed=seed)
    omg = warm_start(agent(world, OMG), uniform_log(world, 100, rng))
    simulate(world, IID(world.contexts), omg, episodes=100, seed=seed)
    for oracle in (omg.reward_oracle, omg.dynamics_oracle):
        assert oracle.loss - oracle.best_loss() <= oracle.regret_bound(episodes=200, horizon=4)


def test_a_refused_log_changes_nothing(seed, rng):
    world = SafeArm(seed=seed)
    log, learner = uniform_log(world, 10, rng), agent(world)
    warm_start(learner, log[:5])
    before = learner.state()
    mixed = Log(world.space, [*log.episodes, changed(log.episodes[0], context=99)])
    with pytest.raises(
        ValueError, match="`log` must hold episodes of the agent's kind, got episode 10: `context` must"
    ):
        warm_start(learner, mixed)
    assert equal(before, learner.state())
    other = Log(Space(states=1, actions=1, horizon=1), [Episode(context=0, states=[0, 0], actions=[0], rewards=[0.0])])
    with pytest.raises(
        ValueError, match=r"`log` must be of the agent's states, actions and horizon .* got \(1, 1, 1\)"
    ):
        warm_start(learner, other)


def test_a_context_that_the_users_function_does_not_know_changes_nothing():
    space, sizes = Space(states=1, actions=1, horizon=1), {"states": 1, "actions": 1, "horizon": 1}
    known = {"old": [1.0, 0.0], "young": [0.0, 1.0]}
    learner = Greedy(space, LinearRewards(**sizes, dimension=2, features=known.__getitem__), CountDynamics(**sizes))
    before = learner.state()
    log = Log(
        space, [Episode(context=c, states=[0, 0], actions=[0], rewards=[1.0]) for c in ("old", "young", "nobody")]
    )
    with pytest.raises(ValueError, match="got episode 2: 'nobody'"):
        warm_start(learner, log)
    assert equal(before, learner.state())


def test_an_agent_of_ones_own_needs_only_update(rng):
    class Counting(Agent):
        def __init__(self, space, most):
            self.space, self.seen, self.most = space, 0, most

        def policy(self, context):
            return uniform_policy(self.space)

        def update(self, trajectory):
            if self.seen == self.most:
                raise ValueError("enough")
            self.seen += 1

    world = SafeArm()
    assert warm_start(Counting(world.space, 7), uniform_log(world, 7, rng)).seen == 7
    eager = Counting(world.space, 3)  # it cannot be saved, and is copied instead
    with pytest.raises(ValueError, match="got episode 3: enough"):
        warm_start(eager, uniform_log(world, 7, rng))
    assert eager.seen == 0
