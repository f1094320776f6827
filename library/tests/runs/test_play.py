"""The user's loop: what is played is learned and logged, and goes on where it was left."""

import numpy as np
import pandas
import pytest

import omg_cmdp as omg
from library.tests.runs.corridor import CONTEXTS, HORIZON, Anything, Corridor, make_agent, same
from omg_cmdp.environments import from_gymnasium, gymnasium_space
from omg_cmdp.oracles import CountDynamics, CountRewards


def test_every_episode_is_played_learned_and_logged(seed):
    agent = make_agent(kind=omg.OMG)
    log = omg.play(Corridor(), agent, CONTEXTS, seed=seed)
    assert len(log) == agent.episodes_seen == len(CONTEXTS)
    twin = make_agent(kind=omg.OMG)
    for played, context in zip(log.episodes, CONTEXTS, strict=True):
        path, policy = played, twin.policy(context)
        np.testing.assert_array_equal(path.context, context)
        steps = np.arange(played.length)
        decided = policy[steps, path.states[: played.length], path.actions[: played.length]]
        np.testing.assert_array_equal(played.propensities[: played.length], decided)
        twin.update(path)
    assert same(agent.state(), twin.state())


def test_a_terminated_episode_waits_in_the_last_state_and_earns_nothing():
    sure = [np.array([1.0, 0.0])] * 5
    agent = make_agent()
    log = omg.play(Corridor(), agent, sure * 4)
    played = next(played for played in log.episodes if played.length < HORIZON)
    path, rest = played, slice(played.length, None)
    assert path.rewards[played.length - 1] == 4.0
    assert (path.states[played.length :] == 3).all()
    assert (path.rewards[rest] == 0.0).all()
    assert (path.actions[rest] == 0).all()
    assert (played.propensities[rest] == 1.0).all()
    assert path.rewards.sum() == 4.0 - (played.length - 1)


def test_one_seed_one_log_in_one_go_or_in_two():
    whole, parts = make_agent(kind=omg.OMG), make_agent(kind=omg.OMG)
    log = omg.play(Corridor(), whole, CONTEXTS, seed=3)
    first = omg.play(Corridor(), parts, CONTEXTS[:5], seed=3)
    again = omg.play(Corridor(), parts, CONTEXTS[5:], seed=3, log=first)
    assert again is first
    pandas.testing.assert_frame_equal(first.table(), log.table())
    assert same(whole.state(), parts.state())
    assert not log.table().equals(omg.play(Corridor(), make_agent(kind=omg.OMG), CONTEXTS, seed=4).table())


def test_actions_are_drawn_with_their_propensities():
    """E[1(a)/p(a)] = 1 for every action: the mean of inverse propensities of the first action."""
    agent = Anything(gymnasium_space(Corridor(), horizon=HORIZON), reward_range=(-1.0, 4.0))
    log = omg.play(Corridor(), agent, [np.array([0.5, 0.5])] * 400)
    weights = [(p.actions[0] == 1) / p.propensities[0] for p in log.episodes]
    assert np.mean(weights) == pytest.approx(1.0, abs=5.0 / np.sqrt(400))


def test_what_was_learned_before_an_interruption_is_returned_and_written(tmp_path, capsys):
    def until_interrupted():
        yield from CONTEXTS[:5]
        raise KeyboardInterrupt

    agent, path = make_agent(), tmp_path / "log.jsonl"
    log = omg.play(Corridor(), agent, until_interrupted(), log=path)
    assert agent.episodes_seen == len(log) == 5
    assert log.interrupted
    assert "play: stopped by Ctrl-C after 5 episodes; the log has them" in capsys.readouterr().err
    assert len(path.read_text().splitlines()) == 5
    assert not omg.play(Corridor(), agent, CONTEXTS[5:], log=log).interrupted


def test_a_second_interrupt_while_the_agent_learns_is_raised(monkeypatch):
    agent = make_agent()

    def learn(*_):
        raise KeyboardInterrupt  # as the second one does

    monkeypatch.setattr(type(agent), "_learn", learn)
    with pytest.raises(KeyboardInterrupt):
        omg.play(Corridor(), agent, CONTEXTS)


def test_simulated_and_played_agents_learn_the_same_numbers():
    """Rewards as they are, with the world's range, are to an agent what rescaled rewards are."""
    cliff = from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery", horizon=HORIZON)
    sizes = {"states": 49, "actions": 4, "horizon": HORIZON}
    played = omg.agents.Greedy(
        cliff.space, CountRewards(**sizes), CountDynamics(**sizes), reward_range=cliff.reward_range
    )
    log = omg.play(cliff, played, [False, True])
    rescaled = omg.agents.Greedy(cliff.space, CountRewards(**sizes), CountDynamics(**sizes))
    low, high = cliff.reward_range
    for path in log.episodes:
        rewards = (path.rewards - low) / (high - low)
        rescaled.update(omg.Trajectory(context=path.context, states=path.states, actions=path.actions, rewards=rewards))
    np.testing.assert_allclose(played.model(True).rewards, rescaled.model(True).rewards, atol=1e-12)


def test_a_truncated_episode_is_learned_and_logged_as_far_as_it_was_seen(tmp_path):
    env, agent = Corridor(), make_agent(kind=omg.OMG)
    env.fault = "truncated"
    log = omg.play(env, agent, [np.array([0.1, 0.5])] * 5, log=tmp_path / "log.jsonl")
    assert agent.episodes_seen == 5
    assert set(log.steps.tolist()) == {3}
    again = omg.logs.read_log(tmp_path / "log.jsonl", agent.space, reward_range=agent.reward_range)
    assert len(again.table()) == 15
    assert len(log.whole()) == 0
