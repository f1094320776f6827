"""An agent learns an episode with both oracles or with neither, whoever refuses and whenever Ctrl-C is pressed."""

import contextlib
import signal
import threading

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.agents.catalogue import LABELS, ORACLES, SIZE, SPACES
from library.tests.agents.models import an_episode
from omg_cmdp.agents import Greedy
from omg_cmdp.oracles import AggregateRewards, CountRewards


@pytest.fixture(autouse=True)
def interrupts_raise():
    """Tests in the background begin with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


SPACE = SPACES["plain"]


def no_harm():
    """Learn without an incident."""


class Outsider:
    """Counts its episodes; `incident` happens in the middle of an update."""

    def __init__(self, incident=no_harm):
        self.begun, self.ended, self.incident = 0, [], incident

    def update(self, context, states, actions, outcomes):
        self.begun += 1
        self.incident()
        self.ended.append(context)

    def uncertainty(self, context):
        return np.zeros((3, 3))

    def regret_bound(self, episodes, horizon):
        return np.inf


class Rewards(Outsider, omg.RewardOracle):
    def predict(self, context):
        return np.full((3, 3), 0.5)


class Dynamics(Outsider, omg.DynamicsOracle):
    def predict(self, context):
        return np.full((3, 3, 3), 1 / 3)


class Saved(Rewards):
    def state(self):
        return {"begun": np.array(float(self.begun)), "ended": np.array(self.ended, dtype=np.str_)}

    def load_state(self, state):
        self.begun, self.ended = int(state["begun"]), state["ended"].tolist()


def refuse():
    raise ValueError("`next_states` must be others")


def lengths(agent):
    """Return how many episodes each oracle has learned, in whole and in part, and the agent's own count."""
    found = [agent.episodes_seen]
    for oracle in (agent.reward_oracle, agent.dynamics_oracle):
        found += [oracle.begun, len(oracle.ended)] if isinstance(oracle, Outsider) else [oracle.episodes]
    return found


REWARDS = {
    "counts": lambda: CountRewards(**SIZE),
    "aggregate": lambda: AggregateRewards([CountRewards(**SIZE), CountRewards(**SIZE)], horizon=4),
    "aggregate of an outsider": lambda: AggregateRewards([CountRewards(**SIZE), Saved()], horizon=4),
    "outsider": Rewards,
    "outsider that saves": Saved,
    **{name: lambda make=make: make()[0] for name, (contexts, make) in ORACLES.items() if contexts is LABELS},
}


@pytest.mark.parametrize("name", REWARDS)
def test_what_one_oracle_refuses_the_other_does_not_learn(name, rng):
    agent = Greedy(SPACE, REWARDS[name](), Dynamics(refuse))
    for _ in range(50):
        with pytest.raises(ValueError, match="`next_states` must"):
            agent.update(an_episode(rng, SPACE, "a", agent.policy("a")))
    assert lengths(agent)[:-2] in ([0, 0], [0, 0, 0])
    agent.dynamics_oracle.incident = no_harm
    agent.update(an_episode(rng, SPACE, "a", agent.policy("a")))
    assert lengths(agent)[:-2] in ([1, 1], [1, 1, 1])


def test_what_the_reward_oracle_refuses_the_dynamics_oracle_does_not_learn(rng):
    for rewards in (Rewards(refuse), Saved(refuse)):
        agent = Greedy(SPACE, rewards, omg.oracles.CountDynamics(**SIZE))
        episode = an_episode(rng, SPACE, "a", agent.policy("a"))
        with pytest.raises(ValueError, match="`"):
            agent.update(episode)
        assert agent.dynamics_oracle.episodes == 0


def test_where_nothing_can_be_undone_the_error_says_so(rng):
    rewards = Rewards()
    rewards.lock = threading.Lock()  # which cannot be copied
    with pytest.raises(ValueError, match="`next_states` must") as caught:
        Greedy(SPACE, rewards, Dynamics(refuse)).update(an_episode(rng, SPACE, "a", np.full((4, 3, 3), 1 / 3)))
    assert caught.value.__notes__ == ["Rewards may have learned this episode, and cannot be saved or copied"]


def press():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("where", [0, 1])
def test_an_interrupt_waits_until_both_have_learned(where, rng):
    agent = Greedy(
        SPACE, *(kind(press if place == where else no_harm) for place, kind in enumerate((Rewards, Dynamics)))
    )
    before = signal.getsignal(signal.SIGINT)
    for count in range(1, 4):
        with pytest.raises(KeyboardInterrupt):
            agent.update(an_episode(rng, SPACE, "a", agent.policy("a")))
        assert set(lengths(agent)) == {count}
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_does_not_wait(rng):
    def hang():
        press()
        press()
        pytest.fail("it would hang for ever")

    with pytest.raises(KeyboardInterrupt):
        Greedy(SPACE, Rewards(hang), Dynamics()).update(an_episode(rng, SPACE, "a", np.full((4, 3, 3), 1 / 3)))


def test_interrupts_at_any_time_leave_both_at_one_length(rng):
    """A timer presses Ctrl-C again and again, somewhere in or between updates."""
    agent = Greedy(SPACE, CountRewards(**SIZE), omg.oracles.CountDynamics(**SIZE))
    episodes = [an_episode(rng, SPACE, "a", agent.policy("a")) for _ in range(20)]
    before, pressed = signal.signal(signal.SIGALRM, lambda *_: press()), 0
    try:
        for delay in rng.uniform(1e-5, 1e-3, 300):
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, delay)
                for episode in episodes:
                    agent.update(episode)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                pressed -= 1
            pressed += 1
            assert len(set(lengths(agent))) == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert pressed > 30


def test_interrupts_that_are_ignored_stay_ignored(rng):
    agent = Greedy(SPACE, Rewards(press), Dynamics())
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        agent.update(an_episode(rng, SPACE, "a", agent.policy("a")))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_learn_as_ever(rng):
    agent = Greedy(SPACE, CountRewards(**SIZE), omg.oracles.CountDynamics(**SIZE))
    episode = an_episode(rng, SPACE, "a", agent.policy("a"))
    thread = threading.Thread(target=agent.update, args=(episode,))
    thread.start()
    thread.join()
    assert lengths(agent) == [1, 1, 1]
