"""Runs whose feedback is late: what arrives when, the same bits without delay, and episodes under way in a file."""

import numpy as np
import pytest

import omg_cmdp as omg
import omg_lab
from library.tests.runs.worlds import AGENTS, Own, make_run
from omg_cmdp import adversaries, delays, oracles

DELAYS = (
    delays.Fixed(3),
    delays.UpTo(5),
    delays.Geometric(2.0),
    delays.HeavyTailed(1.0, 2.0),
    delays.Reversed(4),
    lambda t: 3 * (t % 2),
)
each_delay = pytest.mark.parametrize("delay", DELAYS, ids=lambda each: type(each).__name__)


def exact(ledger):
    """Return everything but the seconds."""
    return ledger.rows()[:, :-4]


class Recorder(omg.Agent):
    """Plays uniformly, and remembers how many episodes it had decided when each feedback arrived."""

    def __init__(self, space):
        self.space, self.decided, self.seen = space, 0, []

    def policy(self, context):
        self.decided += 1
        return np.full((self.space.horizon, self.space.states, self.space.actions), 1.0 / self.space.actions)

    def update(self, trajectory):
        self.seen.append((self.decided, trajectory.context))


def recorded(delay, episodes=40):
    """Return the agent and the ledger of a run in which every context comes once, so that it names its episode."""
    contexts = list(range(1, episodes + 1))
    world = Own(contexts)
    agent = Recorder(world.space)
    return agent, omg.simulate(world, adversaries.Sequence(contexts), agent, episodes, delay=delay)


@each_delay
def test_feedback_arrives_when_it_is_due_in_order(delay):
    agent, ledger = recorded(delay)
    late = ledger.column("delay").astype(int)
    due = sorted((t + d, t) for t, d in enumerate(late, start=1) if t + d <= 40)
    assert agent.seen == due
    assert late.max() > 0


def test_without_delay_nothing_changes_to_the_bit():
    """The protocol by hand: two streams of the seed, and an update after each episode."""
    by_default, asked = make_run("adaptive, linear", seed=3), make_run("adaptive, linear", seed=3, delay=lambda t: 0)
    hand = make_run("adaptive, linear", seed=3)
    world, adversary, agent = hand.environment, hand.adversary, hand.agent
    noise, choice = map(np.random.default_rng, np.random.SeedSequence(3).spawn(2))
    returns = []
    for t in range(20):
        context = adversary.context(t, hand, choice)
        episode = world.sample(context, agent.policy(context), noise)
        returns.append(sum(episode.rewards.tolist()))
        agent.update(episode)
    for run in (by_default, asked):
        run.advance(20)
        np.testing.assert_array_equal(run.ledger.column("return"), returns)
        assert not run.ledger.column("delay").any()
        for name, array in agent.state().items():
            np.testing.assert_array_equal(run.agent.state()[name], array)
    np.testing.assert_array_equal(exact(by_default.ledger), exact(asked.ledger))
    assert not any(name.startswith("pending") for name in by_default.state())


@each_delay
def test_delays_change_neither_contexts_nor_noise(delay):
    """The adversary and the world have streams of their own; an agent that learns nothing plays the same."""
    _, late = recorded(delay)
    _, ledger = recorded(0)
    assert late.contexts == ledger.contexts
    np.testing.assert_array_equal(late.column("return"), ledger.column("return"))


@pytest.mark.parametrize(
    ("kind", "delay"),
    [*(("adaptive, linear", delay) for delay in DELAYS), ("adaptive, finite", DELAYS[1]), ("fixed, counts", DELAYS[3])],
)
def test_a_run_with_episodes_under_way_continues_to_the_bit(kind, delay, tmp_path):
    whole, half, other = (make_run(kind, walk=True, delay=delay) for _ in range(3))
    whole.advance(24)
    half.advance(11)
    assert len(half.pending) > 0
    half.save(tmp_path / "run")
    other.restore(tmp_path / "run")
    assert len(other.pending) == len(half.pending)
    other.advance(13)
    np.testing.assert_array_equal(exact(other.ledger), exact(whole.ledger))
    for name, array in whole.state().items():
        if name != "ledger/rows":
            np.testing.assert_array_equal(other.state()[name], array, err_msg=name)


@pytest.mark.parametrize(("saved", "other"), [(3, 0), (0, 3), (3, 4), (delays.UpTo(3), 3)])
def test_a_run_with_another_delay_is_refused_and_nothing_changes(saved, other, tmp_path):
    run, wrong = make_run("fixed, counts", delay=saved), make_run("fixed, counts", delay=other)
    run.advance(5)
    run.save(tmp_path / "run")
    before = wrong.state()
    with pytest.raises(ValueError, match="same settings"):
        wrong.restore(tmp_path / "run")
    for name, array in wrong.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_torn_episode_under_way_is_refused():
    run = make_run("fixed, counts", delay=3)
    run.advance(5)
    state = run.state()
    state["pending/waiting"] = np.array([text[:-9] for text in state["pending/waiting"].tolist()])
    with pytest.raises(ValueError, match="`state` must come from a run with the same settings"):
        run.load_state(state)
    assert len(run.pending) == 3


@pytest.mark.parametrize("delay", [-1, 2.5, "late", None])
def test_a_bad_delay_is_refused(delay):
    with pytest.raises(ValueError, match="`delay` must be an integer"):
        make_run("fixed, counts", delay=delay)


def test_a_function_that_returns_no_delay_is_refused():
    with pytest.raises(ValueError, match="`delay` must be an integer of at least 0, got -1"):
        make_run("fixed, counts", delay=lambda t: -1).advance(1)


@pytest.mark.parametrize("kind", AGENTS)
def test_every_agent_plays_on_before_anything_arrives(kind):
    run = make_run(kind, delay=50)
    run.advance(5)
    assert run.agent.episodes_seen == 0
    assert run.ledger.column("dynamics_loss").sum() == 0.0


@pytest.mark.parametrize("delay", [10, 100])
@pytest.mark.parametrize("world", [omg_lab.worlds.SoftmaxWorld(seed=1), omg_lab.worlds.CombinationLock(seed=1)])
def test_a_delay_of_d_costs_at_most_2d_first_episodes(world, delay):
    """The first d + 1 episodes are all like the first, in which nothing is known; learning is as fast after that."""

    def played(late):
        horizon = world.space.horizon
        rewards = oracles.FiniteRewards(world.reward_functions, horizon=horizon)
        dynamics = oracles.FiniteDynamics(world.transition_functions, horizon=horizon)
        agent = omg.OMG(world.space, rewards, dynamics)
        return omg.simulate(world, adversaries.IID(world.contexts), agent, 200, delay=late).regret

    at_once, late = played(0), played(delay)
    first = late[: delay + 1].mean()  # over the contexts that came
    assert 0.0 < late.sum() - at_once.sum() <= 2.0 * delay * first


class Bits(omg.ContextualMDP):
    """In each of k contexts one of two arms pays 1 and the other 0, and no context tells of another."""

    def __init__(self, bits):
        self.space, self.bits = omg.Space(states=1, actions=2, horizon=1), bits

    def mdp(self, context):
        return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=np.eye(2)[self.bits[context]][None])


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_in_the_worst_order_any_agent_pays_for_every_bit(delay):
    """Each context comes d + 1 times before its bit is known: k·(d + 1)/2 on average over all truths, k = 3."""
    contexts = np.repeat(np.arange(3), delay + 1).tolist()

    def lost(bits):
        world = Bits(bits)
        rewards = oracles.CountRewards(states=1, actions=2, horizon=1, contexts=range(3))
        agent = omg.OMG(world.space, rewards, oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=1))
        return omg.simulate(world, adversaries.Sequence(contexts), agent, len(contexts), delay=delay).regret.sum()

    truths = [tuple((i >> k) & 1 for k in range(3)) for i in range(8)]
    assert np.mean([lost(bits) for bits in truths]) == pytest.approx(1.5 * (delay + 1), abs=1e-9)


def test_no_more_is_kept_than_is_under_way():
    run = make_run("fixed, counts", delay=6)
    run.advance(30)
    assert len(run.pending) == len(run.state()["pending/waiting"]) == 6
