"""Misfit: e-values are fair where the class holds the truth, and large where it does not; learning is forgiven."""

import numpy as np

import omg_cmdp as omg
from omg_cmdp.misfit import MisfitStatus, evidence, recent
from omg_cmdp.misfit.directions import columns, products, repeated

SIZES = {"states": 1, "actions": 2, "horizon": 1}
SPACE = omg.Space(**SIZES)


def made(features=None, dimension=2, rewards=None):
    """Return an agent whose rewards are linear in features of two numbers."""
    chosen = rewards or omg.oracles.LinearRewards(**SIZES, dimension=dimension, features=features, feature_norm=3.0)
    return omg.agents.Greedy(SPACE, chosen, omg.oracles.CountDynamics(**SIZES))


def taught(agent, mean, rng, episodes=400, contexts=None):
    """Teach episodes with rewards of a mean that depends on context and action."""
    for number in range(episodes):
        context = rng.uniform(-1.0, 1.0, size=2) if contexts is None else contexts[number % len(contexts)]
        action = int(rng.integers(2))
        reward = float(rng.random() < mean(context, action))
        agent.update(omg.Trajectory(context=context, states=[0, 0], actions=[action], rewards=[reward]))
    return agent


def crossed(context):
    return np.array([*context, context[0] * context[1]])


def interacting(context, action):
    return 0.5 + 0.4 * context[0] * context[1]


def test_e_values_have_mean_at_most_one_and_hold_at_every_time(rng):
    """Under a normal linear model, whatever its slope: E of a direction beyond the tangents is a martingale."""
    runs, length, noise, slope = 400, 60, 0.25, 3.0
    final, largest = [], []
    for _ in range(runs):
        z, w = rng.normal(size=(2, length, 1))
        errors = slope * z[:, 0] + noise * rng.normal(size=length)
        logs = []
        for n in range(10, length + 1, 10):
            moved = evidence.without_tangents(np.column_stack([errors, w])[:n], z[:n], np.ones(n))
            score, information = moved[:, 1] @ moved[:, 0] / noise**2, (moved[:, 1] ** 2).sum() / noise**2
            logs.append(float(evidence.log_e(np.array(score), np.array(information), evidence.REWARD_PRECISION)))
        final.append(np.exp(logs[-1]))
        largest.append(max(logs))
    assert np.mean(final) < 1.5
    assert np.mean(np.array(largest) > np.log(10.0)) <= 0.1 + 3.0 * np.sqrt(0.09 / runs)  # Ville


def test_a_cross_that_the_class_lacks_is_named_and_one_that_it_has_is_not(rng):
    lacking = taught(made(), interacting, rng).misfit()
    (found,) = lacking.findings
    assert lacking.status is MisfitStatus.FOUND
    assert (found.oracle, found.direction) == ("rewards", "column 0 × column 1")
    assert "crosses" in found.advice or "cross" in found.advice
    assert taught(made(crossed, 3), interacting, rng).misfit().status is MisfitStatus.NONE_FOUND


def test_a_constant_that_the_class_lacks_is_named(rng):
    agent = taught(
        made(rewards=omg.oracles.LinearRewards(**SIZES, dimension=2, feature_norm=2.0, intercept=False)),
        lambda c, a: 0.9,
        rng,
    )
    assert agent.misfit().findings[0].direction == "a constant"
    assert "intercept=True" in str(agent.misfit())


def test_counts_for_all_contexts_where_contexts_matter(rng):
    contexts = ["a", "b", "c"]
    means = dict(zip(contexts, (0.2, 0.5, 0.8), strict=True))
    pooled = made(rewards=omg.oracles.CountRewards(**SIZES))
    taught(pooled, lambda c, a: means[c], rng, contexts=contexts)
    assert "contexts=" in str(pooled.misfit())
    own = made(rewards=omg.oracles.CountRewards(**SIZES, contexts=contexts))
    taught(own, lambda c, a: means[c], rng, contexts=contexts)
    assert not own.misfit().findings


def test_an_oracle_that_learns_slowly_is_forgiven(rng):
    """With such a ridge it is far behind after 400 episodes, along its tangents; the class is right all the same."""
    slow = omg.oracles.LinearRewards(**SIZES, dimension=2, feature_norm=2.0, ridge=300.0)
    agent = taught(made(rewards=slow), lambda c, a: 0.5 + 0.4 * c[0], rng)
    assert abs(agent.model(np.array([1.0, 0.0])).rewards - 0.9).max() > 0.2
    assert agent.misfit().status is MisfitStatus.NONE_FOUND


def test_what_a_support_excludes_is_said_at_once():
    space = omg.Space(states=2, actions=1, horizon=1)
    sizes = {"states": 2, "actions": 1, "horizon": 1}
    dynamics = omg.oracles.KnownDynamics(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), horizon=1)
    agent = omg.agents.Greedy(space, omg.oracles.CountRewards(**sizes), dynamics)
    for number in range(60):
        agent.update(omg.Trajectory(context=0, states=[0, int(number == 7)], actions=[0], rewards=[0.5]))
    assert "from state 0 with action 0 to state 1" in str(agent.misfit())


def test_the_verdict_changes_nothing_and_follows_the_episodes(rng):
    agent, episodes = made(), []
    for _ in range(200):
        context = rng.uniform(-1.0, 1.0, size=2)
        reward = float(rng.random() < interacting(context, 0))
        episodes.append(omg.Trajectory(context=context, states=[0, 0], actions=[0], rewards=[reward]))
        agent.update(episodes[-1])
        if len(episodes) == 20:
            assert agent.misfit().status is MisfitStatus.TOO_EARLY
    before = {name: array.tobytes() for name, array in agent.state().items()}
    assert agent.misfit() == agent.misfit(episodes)
    assert {name: array.tobytes() for name, array in agent.state().items()} == before
    assert omg.Agent.misfit(agent) is None


def test_late_rewards_count_and_old_blocks_are_dropped(monkeypatch, rng):
    monkeypatch.setattr(recent, "BLOCK", 100)
    agent = made()
    for number in range(250):
        context, reward = rng.uniform(-1.0, 1.0, size=2), float(rng.random() < 0.5)
        told = {"context": context, "states": [0, None if number % 2 else 0], "actions": [0]}
        agent.update(omg.Trajectory(**told, rewards=None))
        agent.update_rewards(omg.Trajectory(**told, rewards=[reward]))
    verdict = agent.misfit()
    assert verdict.status is MisfitStatus.NONE_FOUND
    assert verdict.episodes < 200
    copied = recent.Recent()
    copied.load_state(agent.recent.state())
    assert copied.judge(agent.reward_oracle, agent.dynamics_oracle) == verdict


def test_directions_of_records_vectors_and_labels():
    records = [{"age": number % 7, "ward": "ab"[number % 2]} for number in range(40)]
    found = columns(records)
    assert [each.name for each in found] == ["age", "ward=a"]
    assert [each.name for each in products(found)] == ["age²", "age × ward=a"]
    assert all(abs(each.values.mean()) < 1e-12 and abs((each.values**2).mean() - 1.0) < 1e-12 for each in found)
    assert columns(["a", "b"]) == repeated(["a"] * 9) == []
    assert len(repeated(["a", "b"] * 20)) == 2
