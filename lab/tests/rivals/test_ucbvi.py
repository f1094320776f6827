"""UCBVI on cells of contexts: the formula, optimism, what covers have in common, and what a blind agent cannot do."""

import math

import numpy as np
import pytest

from library.tests.agents.models import an_episode
from omg_cmdp import ContextualMDP, Space, TabularMDP, Trajectory, adversaries, optimal_policy, simulate
from omg_lab.rivals import UCBVI, Blind, PerBall, PerContext
from omg_lab.worlds import SoftmaxWorld

STATES, ACTIONS, HORIZON = 3, 2, 4
SPACE = Space(states=STATES, actions=ACTIONS, horizon=HORIZON)
VECTORS = [np.array(v) for v in ([0.0, 0.0], [1.0, 0.0], [1.2, 0.1], [0.0, 3.0])]


def episodes(rng, contexts, count, space=SPACE):
    uniform = space.admissible / space.admissible.sum(axis=1, keepdims=True)
    policy = np.broadcast_to(uniform, (space.horizon, *uniform.shape))
    return [an_episode(rng, space, contexts[rng.integers(len(contexts))], policy) for _ in range(count)]


def taught(agent, played):
    for episode in played:
        agent.update(episode)
    return agent


def bits(agent):
    return {name: (array.shape, array.tobytes()) for name, array in agent.state().items() if name != "settings"}


class TwoMinds(ContextualMDP):
    """What earns .9 in one context earns .1 in the other, in every state."""

    space = Space(states=2, actions=2, horizon=2)

    def mdp(self, context):
        rewards = [[0.9, 0.1]] * 2 if context == "left" else [[0.1, 0.9]] * 2
        return TabularMDP(transitions=np.full((2, 2, 2), 0.5), rewards=rewards, horizon=2)


def plain_plan(agent, context, played):
    """UCBVI written down once more: counts by a loop over episodes, the recursion by a loop over (h, s, a)."""
    states, actions, horizon = agent.space.states, agent.space.actions, agent.space.horizon
    visits, sums, counts = np.zeros((states, actions)), np.zeros((states, actions)), np.zeros((states, actions, states))
    for episode in played:
        if episode.context == context:
            for s, a, r, j in zip(episode.states, episode.actions, episode.rewards, episode.next_states, strict=False):
                visits[s, a] += 1
                sums[s, a] += r
                counts[s, a, j] += 1
    logarithm = math.log(5 * states * actions * horizon * (len(played) + 1) / agent.delta)
    values, policy = np.zeros((horizon + 1, states)), np.zeros((horizon, states, actions))
    for h in reversed(range(horizon)):
        for s in range(states):
            gains = np.full(actions, -np.inf)
            for a in np.flatnonzero(agent.space.admissible[s]):
                if visits[s, a]:
                    bonus = agent.scale * horizon * math.sqrt(logarithm / visits[s, a])
                    mean = (sums[s, a] + counts[s, a] @ values[h + 1]) / visits[s, a]
                else:  # beyond every bonus
                    bonus, mean = horizon * (1 + agent.scale * math.sqrt(logarithm)), values[h + 1].mean()
                gains[a] = mean + bonus
            policy[h, s, gains.argmax()] = 1.0
            values[h, s] = min(horizon - h, gains.max())
    return policy


@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("admissible", [None, [[True, True], [False, True], [True, False]]])
def test_the_plan_is_that_of_the_formula(scale, admissible, rng):
    space = Space(states=STATES, actions=ACTIONS, horizon=HORIZON, admissible=admissible)
    agent = UCBVI(space, PerContext(), scale=scale)
    played = []
    for episode in episodes(rng, ["a", "b"], 60, space):
        for context in ("a", "b"):
            np.testing.assert_array_equal(agent.policy(context), plain_plan(agent, context, played))
        agent.update(episode)
        played.append(episode)


def test_what_was_not_tried_is_tried_before_anything_else(rng):
    """Whatever was earned elsewhere: the policy leaves no untried action for a tried one."""
    for scale in (1e-6, 0.1, 10.0):
        agent = UCBVI(SPACE, Blind(), scale=scale)
        for _ in range(30):
            untried = agent.tally("any").counts.sum(axis=2) == 0.0
            chosen = agent.policy("any").astype(bool)
            assert all(
                untried[s][chosen[h, s]].all() for h in range(HORIZON) for s in range(STATES) if untried[s].any()
            )
            episode = episodes(rng, ["any"], 1)[0]
            agent.update(
                Trajectory(context="any", states=episode.states, actions=episode.actions, rewards=[1.0] * HORIZON)
            )


def test_counts_do_not_depend_on_the_order_of_contexts(rng):
    played = episodes(rng, VECTORS, 50)
    for cover in (Blind(), PerContext()):
        forward, shuffled = taught(UCBVI(SPACE, cover), played), taught(UCBVI(SPACE, cover), played[::-1])
        for context in VECTORS:
            one, other = forward.tally(context), shuffled.tally(context)
            np.testing.assert_array_equal(one.counts, other.counts)
            np.testing.assert_allclose(one.rewards, other.rewards, rtol=1e-12)


def test_one_episode_changes_its_own_cell_only(rng):
    agent = taught(UCBVI(SPACE, PerContext()), episodes(rng, VECTORS, 30))
    before = [agent.tally(context).counts.copy() for context in VECTORS]
    taught(agent, episodes(rng, VECTORS[:1], 1))
    changed = [(agent.tally(c).counts - b).sum() for c, b in zip(VECTORS, before, strict=True)]
    assert changed == [HORIZON, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(("radius", "other"), [(0.0, PerContext()), (math.inf, Blind())])
def test_balls_at_the_extremes(radius, other):
    """To the bit: nothing shared, or everything."""
    world = SoftmaxWorld(seed=1, context_count=5)
    ball, plain = (UCBVI(world.space, cover, scale=0.1) for cover in (PerBall(radius), other))
    ledgers = [simulate(world, adversaries.IID(world.contexts), agent, episodes=80) for agent in (ball, plain)]
    assert ledgers[0].regret.tobytes() == ledgers[1].regret.tobytes()
    assert all(bits(ball)[name] == bits(plain)[name] for name in ("counts", "rewards"))
    assert all(ball.policy(c).tobytes() == plain.policy(c).tobytes() for c in world.contexts)


def test_a_blind_agent_fails_where_contexts_disagree():
    """In every step any policy loses .8 in one of two contexts: .4 each on average, forever."""
    world, contexts, count = TwoMinds(), ["left", "right"], 800
    regrets = {}
    for cover in (Blind(), PerContext()):
        agent = UCBVI(world.space, cover, scale=0.1)
        regrets[str(cover)] = simulate(world, adversaries.Sequence(contexts), agent, episodes=count).regret
    blind, seeing = regrets.values()
    step = 0.4 * world.space.horizon
    assert abs(blind[-200:].mean() - step) < 0.2 * step
    assert seeing[-200:].mean() < 0.05 * step
    assert seeing[: count // 2].sum() > 4.0 * seeing[count // 2 :].sum()


def test_the_theorys_bonus_is_optimistic(rng):
    """V_0 >= V* in all episodes of a run, but for a share δ of the runs; with hardly any bonus it is not."""
    failures = dict.fromkeys((1.0, 0.02), 0)
    runs, delta = 20, 0.1
    for scale in failures:
        for _ in range(runs):
            kernel, means = rng.dirichlet(np.ones(STATES), (STATES, ACTIONS)), rng.random((STATES, ACTIONS))
            mdp = TabularMDP(transitions=kernel, rewards=means, horizon=HORIZON)
            best = optimal_policy(mdp)[1]
            agent = UCBVI(SPACE, Blind(), scale=scale, delta=delta)
            failed = False
            for _ in range(50):
                policy, model = agent.policy(0), agent.model(0)
                gains = model.rewards + agent.bonus(agent.tally(0).counts.sum(axis=2))
                value = np.zeros(STATES)
                for h in reversed(range(HORIZON)):
                    value = np.minimum((gains + model.transitions @ value).max(axis=1), HORIZON - h)
                failed |= value[0] < best - 1e-12
                agent.update(sampled(rng, mdp, policy))
            failures[scale] += failed
    assert failures[1.0] <= delta * runs
    assert failures[0.02] > delta * runs


def sampled(rng, mdp, policy):
    states, actions, rewards = [0], [], []
    for h in range(mdp.horizon):
        actions.append(int(rng.choice(mdp.actions, p=policy[h, states[-1]])))
        rewards.append(float(rng.random() < mdp.rewards[states[-1], actions[-1]]))
        states.append(int(rng.choice(mdp.states, p=mdp.transitions[states[-1], actions[-1]])))
    return Trajectory(context=0, states=states, actions=actions, rewards=rewards)


def test_balls_cover_and_do_not_crowd(rng):
    """When it opens, a centre is farther than the radius from all others; every context is within it of its own."""
    contexts = rng.standard_normal((200, 3))
    cover = PerBall(1.0)
    cells = [cover.open(context) for context in contexts]
    centres = cover.centres
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)
    assert apart[~np.eye(len(centres), dtype=bool)].min() > 1.0
    distances = np.linalg.norm(contexts[:, None] - centres, axis=2)
    assert (distances[np.arange(200), cells] <= 1.0).all()
    assert 1 < len(cover) < 200
    assert [cover.cell(c) for c in contexts] == distances.argmin(axis=1).tolist()


def test_an_agent_keeps_a_cover_of_its_own(rng):
    cover = PerContext()
    taught(UCBVI(SPACE, cover), episodes(rng, VECTORS, 20))
    assert len(cover) == 0


def test_asking_opens_no_cell():
    agent = UCBVI(SPACE, PerContext())
    agent.policy("new")
    assert len(agent.cover) == 0


@pytest.mark.parametrize("label", [np.int64(3), np.float64(0.1), np.str_("a"), (np.int64(1), "b"), [1, 2.5]])
def test_every_kind_of_label_finds_its_cell_after_a_restart(label, tmp_path, rng):
    agent = taught(UCBVI(SPACE, PerContext()), episodes(rng, ["other"], 3) + [relabelled(rng, label)] * 4)
    agent.save(tmp_path / "agent")
    restored = UCBVI(SPACE, PerContext())
    restored.restore(tmp_path / "agent")
    for each in (agent, restored):
        assert each.cover.cell(label) == 1
        assert each.tally(label).counts.sum() == 4 * HORIZON
    assert bits(agent) == bits(restored)


def relabelled(rng, context):
    episode = episodes(rng, ["any"], 1)[0]
    return Trajectory(context=context, states=episode.states, actions=episode.actions, rewards=episode.rewards)


def test_a_file_with_another_number_of_cells_is_refused(rng):
    agent = taught(UCBVI(SPACE, PerContext()), episodes(rng, VECTORS, 20))
    before, state = bits(agent), agent.state()
    for change in ({"centres": state["centres"][:-1]}, {"counts": state["counts"][:-1]}, {"centres": np.array([0.5])}):
        with pytest.raises(ValueError, match="`state` must hold"):
            agent.load_state({**state, **change})
        assert bits(agent) == before


def vectors_of_two_lengths():
    cover = PerBall(1.0)
    cover.open(VECTORS[0])
    cover.cell([1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UCBVI(SPACE, "blind"), "`cover` must be a Cover, got str"),
        (lambda: UCBVI(None, Blind()), "`space` must be a Space"),
        (lambda: UCBVI(SPACE, Blind(), scale=0.0), "`scale` must be a positive"),
        (lambda: UCBVI(SPACE, Blind(), delta=1.5), "`delta` must lie in"),
        (lambda: PerBall(-1.0), "`radius` must be a number of at least 0, got -1.0"),
        (lambda: PerBall(math.nan), "`radius` must be a number of at least 0"),
        (lambda: PerBall(1.0).open("a"), "`context` must be an array of real numbers"),
        (vectors_of_two_lengths, "`context` must be a vector of 2 numbers"),
        (lambda: PerContext().cell(object()), "`context` must be a vector, a number, a text"),
    ],
)
def test_what_is_wrong_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
