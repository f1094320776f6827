"""GLM-ORL and GLM-RLSVI: confidence, optimism, closed forms of widths and of draws."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from lab.tests.rivals.glm_world import (
    ACTIONS,
    BALL,
    DIMENSION,
    HORIZON,
    LINKS,
    SPACE,
    STATES,
    GLMWorld,
    printed_radius,
    softmax,
)
from omg_cmdp import Space, Trajectory, adversaries, optimal_policy, policy_value, simulate
from omg_cmdp.mdp.bellman import best_response, value_bounds
from omg_cmdp.oracles import FeatureMap
from omg_lab.rivals import GLMORL, GLMRLSVI, glm
from omg_lab.rivals.optimism import optimistic_plan
from omg_lab.worlds import LinearWorld, SoftmaxWorld


def an_agent(link="logit", kind=GLMORL, **more):
    return kind(SPACE, dimension=DIMENSION, link=link, weight_norm=BALL, **more)


@pytest.mark.parametrize("link", LINKS)
def test_widths_and_rewards_by_the_formulas(link, rng):
    """From the data of a run, with matrices written out."""
    world, agent = GLMWorld(rng, link), an_agent(link, ridge=0.5, delta=0.1)
    rows, targets = {}, {}
    for _ in range(40):
        episode = world.sample(context := world.contexts[rng.integers(8)], agent.policy(context), rng)
        agent.update(episode)
        for s, a, r in zip(episode.states, episode.actions, episode.rewards, strict=False):
            rows.setdefault((s, a), []).append(context)
            targets.setdefault((s, a), []).append(r - 0.5)
    x, alpha, failure = world.contexts[0], agent.strong_convexity, 0.1 / (2 * STATES * ACTIONS)
    widths, model = agent.widths(x), agent.model(x)
    for s, a in np.ndindex(STATES, ACTIONS):
        seen = np.array(rows.get((s, a), [])).reshape(-1, DIMENSION)
        ridge = 0.5 * np.eye(DIMENSION)
        gram, count, free = seen.T @ seen, max(len(seen), 1), STATES - (link == "logit")
        theta = np.linalg.solve(ridge + gram, seen.T @ np.array(targets.get((s, a), [])))
        assert model.rewards[s, a] == pytest.approx(np.clip(0.5 + theta @ x, 0.0, 1.0))
        growth = np.linalg.slogdet(np.eye(DIMENSION) + gram / 0.5)[1]
        confidence = math.sqrt(0.5 * DIMENSION) + 0.5 * math.sqrt(growth + 2 * math.log(1 / failure))
        assert widths.rewards[s, a] == pytest.approx(confidence * math.sqrt(x @ np.linalg.solve(ridge + gram, x)))
        growth = np.linalg.slogdet(np.eye(DIMENSION) + 0.5 * alpha * gram / 0.5)[1]
        radius = printed_radius(0.5 * free * BALL**2, BALL, alpha, count, growth, failure)
        length = x @ np.linalg.solve(ridge + 0.5 * alpha * gram, x)
        expected = agent.smoothness * math.sqrt(STATES * radius * length)
        assert widths.transitions[s, a] == pytest.approx(expected)


@pytest.mark.parametrize("reach", [0.1, 1.0, 4.0])
def test_the_curvature_of_the_softmax_is_bounded(reach, rng):
    """The Hessian diag(p) - ppᵀ of the free scores, at random points and at the corners of the box."""
    agent = GLMORL(SPACE, dimension=1, weight_norm=reach)
    points = np.concatenate([rng.uniform(-reach, reach, (500, STATES - 1)), reach * rng.choice([-1, 1], (500, 3))])
    for point in points:
        p = softmax(np.append(point, 0.0))[:-1]
        spectrum = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))
        assert agent.strong_convexity <= spectrum[0]
        assert spectrum[-1] <= agent.smoothness == 0.5
    assert np.exp(-2.0 * reach) / STATES**2 <= agent.strong_convexity * math.exp(1.0)
    linear = GLMORL(SPACE, dimension=1, link="linear")
    assert linear.strong_convexity == linear.smoothness == 1.0


@pytest.mark.parametrize("link", LINKS)
def test_the_truth_lies_within_the_widths(link, rng):
    """In all pairs, contexts and episodes of a run, but for a share δ of the runs."""
    runs, delta, failed = 10, 0.1, 0
    for _ in range(runs):
        world, agent = GLMWorld(rng, link), an_agent(link, delta=delta)
        broken = False
        for _ in range(60):
            context = world.contexts[rng.integers(8)]
            agent.update(world.sample(context, agent.policy(context), rng))
            broken |= not covered(agent, world, context, 1.0)
        failed += broken
    assert failed <= delta * runs


def covered(agent, world, context, scale):
    """Return whether the true MDP of `context` is within `scale` times the widths."""
    model, truth, widths = agent.model(context), world.truth(context).mdp, agent.widths(context)
    rewards = abs(model.rewards - truth.rewards) <= scale * widths.rewards
    transitions = abs(model.transitions - truth.transitions).sum(axis=2) <= scale * widths.transitions
    return rewards.all() and transitions.all()


@pytest.mark.parametrize("link", LINKS)
def test_values_are_optimistic_with_widths_that_just_cover_the_truth(link, rng):
    """Widths equal to the errors: V >= V* at every (h, s), below the cap H - h; without widths not."""
    world, agent = GLMWorld(rng, link), an_agent(link, strong_convexity=None if link == "linear" else 0.1)
    below = pessimistic = 0
    for _ in range(100):
        context = world.contexts[rng.integers(8)]
        model, truth = agent.model(context), world.truth(context).mdp
        errors = abs(model.rewards - truth.rewards), abs(model.transitions - truth.transitions).sum(axis=2)
        values, best = optimistic(model, *errors)[1], best_values(truth)
        assert (values >= best - 1e-12).all()
        below += (values < np.arange(HORIZON, 0, -1)[:, None] - 1e-9).mean()
        pessimistic += (optimistic(model, *np.zeros((2, STATES, ACTIONS)))[1] < best - 1e-3).any()
        agent.update(world.sample(context, agent.policy(context), rng))
    assert below > 30
    assert pessimistic > 30


@pytest.mark.parametrize("link", LINKS)
def test_the_theorys_bonuses_are_optimistic(link, rng):
    """In every (h, s) and episode of a run, but for a share δ of the runs; what is played is the plan's policy."""
    runs, delta, failed = 10, 0.1, 0
    for _ in range(runs):
        world, agent = GLMWorld(rng, link), an_agent(link, delta=delta)
        broken = False
        for _ in range(40):
            context = world.contexts[rng.integers(8)]
            _, values = optimistic(agent.model(context), *agent.widths(context))
            broken |= (values < best_values(world.truth(context).mdp) - 1e-12).any()
            agent.update(world.sample(context, agent.policy(context), rng))
        failed += broken
    assert failed <= delta * runs


def test_a_small_scale_plans_with_small_bonuses(rng):
    """The policy is that of the plan with `scale` times the widths; with next to none, the model's optimal one."""
    world, agent = GLMWorld(rng, "linear"), an_agent("linear")
    for _ in range(60):
        context = world.contexts[rng.integers(8)]
        agent.update(world.sample(context, agent.policy(context), rng))
    model, widths = agent.model(context), agent.widths(context)
    for agent.scale in (1.0, 0.01, 1e-12):
        policy, _ = optimistic(model, *(agent.scale * width for width in widths))
        np.testing.assert_array_equal(agent.policy(context), policy)
    np.testing.assert_array_equal(agent.policy(context), optimal_policy(model)[0])


def optimistic(model, reward_widths, kernel_widths):
    """Return the policy and V_h (H, S) of the plan with bonuses."""
    rewards, bounds = model.rewards + reward_widths, value_bounds(HORIZON)
    policy, values = optimistic_plan(model, rewards, lambda following: following.max() * kernel_widths, bounds)
    return policy, values[:-1]


def best_values(mdp):
    values = np.zeros((mdp.horizon + 1, mdp.states))
    for h in reversed(range(mdp.horizon)):
        values[h] = (mdp.rewards + mdp.transitions @ values[h + 1]).max(axis=1)
    return values[:-1]


@pytest.mark.parametrize("link", LINKS)
def test_widths_shrink_like_the_norm_of_the_features(link):
    """After n visits with the same x: ‖x‖²_{Z⁻¹} = 1/(λ + ½αn) and 1/(λ + n). Elsewhere nothing shrinks."""
    agent, x, across = an_agent(link, strong_convexity=0.4), np.eye(DIMENSION)[0], np.eye(DIMENSION)[1]
    before = agent.widths(across)
    for n in range(1, 30):
        same = Trajectory(context=x, states=[0] * (HORIZON + 1), actions=[0] * HORIZON, rewards=[0.5] * HORIZON)
        agent.update(same)
        widths, visits = agent.widths(x), n * HORIZON
        growth, failure = math.log(1 + 0.2 * visits), agent.delta / (2 * STATES * ACTIONS)
        radius = printed_radius((STATES - (link == "logit")) * BALL**2, BALL, 0.4, visits, growth, failure)
        length = agent.smoothness * math.sqrt(STATES * radius / (1 + 0.2 * visits))
        assert widths.transitions[0, 0] == pytest.approx(length)
        confidence = math.sqrt(DIMENSION) + 0.5 * math.sqrt(math.log(1 + visits) - 2 * math.log(failure))
        assert widths.rewards[0, 0] == pytest.approx(confidence / math.sqrt(1 + visits))
    after = agent.widths(across)
    assert (after.transitions >= before.transitions).all()  # the radius grows with the data, the norm stays
    np.testing.assert_array_equal(after.rewards.reshape(-1)[1:], before.rewards.reshape(-1)[1:])


@pytest.mark.parametrize(
    ("world", "settings"),
    [
        (LinearWorld(seed=0), {"link": "linear", "scale": 0.01}),
        (SoftmaxWorld(seed=0), {"link": "logit", "scale": 0.003, "strong_convexity": 0.2, "weight_norm": 4.25}),
    ],
    ids=["linear", "softmax"],
)
@pytest.mark.parametrize(("kind", "factor"), [(GLMORL, 1.0), (GLMRLSVI, 0.03)])
def test_regret_is_sublinear_once_tuned(world, settings, kind, factor):
    settings = {**settings, "scale": factor * settings["scale"]}
    agent = kind(world.space, dimension=world.dimension, **settings)
    regret = simulate(world, adversaries.IID(world.contexts), agent, episodes=800).regret
    assert regret[-200:].sum() < 0.4 * regret[:200].sum()


def test_draws_choose_with_the_probability_of_the_normal_distribution():
    """H = 1, two actions: P(first) = Φ((f̂_0 - f̂_1)/√(σ_0² + σ_1²)), σ = scale·√S·(ξp + ξr)."""
    space = Space(states=1, actions=2, horizon=1)
    agent = GLMRLSVI(space, dimension=1, link="linear", scale=0.02)
    for action, reward in ((0, 1.0), (0, 0.0), (1, 0.0), (1, 1.0), (0, 1.0), (0, 1.0)):
        agent.update(Trajectory(context=[1.0], states=[0, 0], actions=[action], rewards=[reward]))
    model, widths = agent.model([1.0]), agent.widths([1.0])
    deviations = 0.02 * (widths.transitions + widths.rewards)[0]
    gap = model.rewards[0, 0] - model.rewards[0, 1]
    expected = NormalDist().cdf(gap / np.linalg.norm(deviations))
    assert 0.55 < expected < 0.95
    chosen = 0
    for seed in range(2000):
        agent.seed = seed
        chosen += agent.policy([1.0])[0, 0, 0]
    assert abs(chosen / 2000 - expected) < 4 * math.sqrt(expected * (1 - expected) / 2000)


@pytest.mark.parametrize("link", LINKS)
def test_draws_are_spread_around_the_unperturbed_plan(link, rng):
    """The drawn policies' mean value in the model comes to V̂* as the noise goes to zero; from below, by optimality."""
    world, agent = GLMWorld(rng, link), an_agent(link, GLMRLSVI)
    for _ in range(50):
        context = world.contexts[rng.integers(8)]
        agent.update(world.sample(context, agent.policy(context), rng))
    model = agent.model(context := world.contexts[0])
    best, losses = optimal_policy(model)[1], []
    for scale in (1.0, 1e-3, 1e-5, 1e-9):
        agent.scale, total = scale, 0.0
        for seed in range(40):
            agent.seed = seed
            total += best - policy_value(model, agent.policy(context))
        losses.append(total / 40)
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 0.05
    assert abs(losses[-1]) < 1e-9


@pytest.mark.parametrize("link", LINKS)
def test_draws_are_optimistic_as_often_as_noise_that_covers_the_errors_must_be(link, rng, monkeypatch):
    """P(Ṽ >= V*) >= Φ(-1) if the noise is √(SH) times errors of at most H·‖P̂ - P*‖₁ + |f̂ - f*|; hardly, if far less."""
    values = []

    def seen(*arguments, **more):
        answer = best_response(*arguments, **more)
        values.append(answer[1])
        return answer

    monkeypatch.setattr(glm, "best_response", seen)
    world, agent = GLMWorld(rng, link), an_agent(link, GLMRLSVI)
    for _ in range(30):
        context = world.contexts[rng.integers(8)]
        agent.update(world.sample(context, agent.policy(context), rng))
    model, truth, widths = agent.model(context), world.truth(context).mdp, agent.widths(context)
    errors = abs(model.rewards - truth.rewards) + HORIZON * abs(model.transitions - truth.transitions).sum(axis=2)
    covering = (errors / (HORIZON * widths.transitions + widths.rewards)).max()
    best, hopeful = optimal_policy(truth)[1], {}
    for share in (1.0, 1e-3):
        agent.scale, values[:] = share * covering, []
        for agent.seed in range(200):
            agent.policy(context)
        hopeful[share] = np.mean(np.array(values) >= best)
    assert hopeful[1.0] >= NormalDist().cdf(-1.0) - 3 * math.sqrt(0.16 * 0.84 / 200)
    assert hopeful[1e-3] < 0.5 * hopeful[1.0]


def test_draws_differ_between_seeds_and_episodes_and_not_between_askings(rng):
    world, agent = GLMWorld(rng, "logit"), an_agent("logit", GLMRLSVI, seed=1)
    context = world.contexts[0]
    first = agent.policy(context)
    np.testing.assert_array_equal(first, agent.policy(context))
    assert not np.array_equal(first, an_agent("logit", GLMRLSVI, seed=2).policy(context))
    agent.episodes_seen += 1
    assert not np.array_equal(first, agent.policy(context))


def test_labels_need_features():
    with pytest.raises(ValueError, match="`context` must be a vector of numbers"):
        an_agent().policy("a label")
    numbers = {"a label": np.eye(DIMENSION)[0]}
    agent, same = an_agent(features=numbers.__getitem__), an_agent()
    np.testing.assert_array_equal(agent.policy("a label"), same.policy(numbers["a label"]))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"link": "probit"}, "`link` must be one of logit, linear, got 'probit'"),
        ({"dimension": 0}, "`dimension` must be an integer of at least 1"),
        ({"scale": 0.0}, "`scale` must be a positive"),
        ({"delta": 1.0}, "`delta` must lie in"),
        ({"strong_convexity": 0.0}, "`strong_convexity` must be a positive"),
        ({"smoothness": -1.0}, "`smoothness` must be a positive"),
        ({"constants": (1.0, 2.0)}, "`constants` must be 4 positive numbers"),
        ({"weight_norm": 300.0}, "`weight_norm` times `feature_norm` must be at most 200"),
        ({"features": 3}, "`features` must be a callable or None"),
        ({"seed": -1}, "`seed` must be an integer of at least 0"),
    ],
)
def test_what_is_wrong_is_refused_by_name(more, message):
    with pytest.raises(ValueError, match=message):
        GLMRLSVI(SPACE, **{"dimension": DIMENSION, **more})


def test_a_state_of_other_features_is_refused():
    """The scaling of a feature map is part of what was learned."""
    table = {"age": [*range(20, 80)]}
    maps = [FeatureMap.fit(table), FeatureMap.fit({"age": [*range(20, 79), 300]})]
    agents = [GLMORL(SPACE, dimension=each.dimension, features=each) for each in maps]
    with pytest.raises(ValueError, match=f"`state` must come from .*{maps[0].fingerprint}"):
        agents[1].load_state(agents[0].state())
