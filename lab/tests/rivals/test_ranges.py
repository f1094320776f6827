"""`return_range` and the rivals: what clips, bonuses and noise make of it."""

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.rivals.catalogue import BANDITS, ONE_STEP, OWN_STATISTICS, build
from library.tests.agents.catalogue import HORIZON, LABELS, REWARDS, SPACES, TRANSITIONS, VECTORS
from library.tests.agents.test_ranges import Lake, episode, plans_otherwise_if_told
from omg_cmdp import Space, oracles
from omg_cmdp.mdp.bellman import best_response, value_bounds
from omg_lab.rivals import GLMORL, GLMRLSVI, MVP, RMUCDD, UC3RL, UCBVI, VIDS, PerContext, RegularisedIDS

ONE_HOT = {"dimension": 2, "features": lambda context: np.eye(2)[context]}
MAKERS = {
    "UCBVI": lambda _, **more: UCBVI(Lake.space, PerContext(), scale=0.05, **more),
    "UC³RL": lambda pair, **more: UC3RL(Lake.space, *pair, contexts=(0, 1), scale=0.03, **more),
    "GLM-ORL": lambda _, **more: GLMORL(Lake.space, **ONE_HOT, scale=0.003, **more),
    "GLM-RLSVI": lambda _, **more: GLMRLSVI(Lake.space, **ONE_HOT, scale=0.01, **more),
    "regularised IDS": lambda pair, **more: RegularisedIDS(Lake.space, *pair, 0.01, draws=8, **more),
    "VIDS": lambda pair, **more: VIDS(Lake.space, *pair, draws=8, **more),
    "MVP": lambda _, **more: MVP(Lake.space, PerContext(), scale=0.001, **more),
    "RM-UCDD": lambda pair, **more: RMUCDD(Lake.space, *pair, contexts=(0, 1), scale=0.03, **more),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_rivals_that_bound_values_use_the_range(kind):
    plans_otherwise_if_told(MAKERS[kind])


def test_feel_good_sampling_values_and_plays_pairs_by_their_clipped_optima():
    agent = build("feel-good Thompson", return_range=(0.0, 1.0))[1]
    bounds, context, changed = value_bounds(HORIZON, (0.0, 1.0)), LABELS[0], 0
    agent.update(episode(context, [0.0, 1.0, 0.0, 0.0]))
    pairs = [[agent.space.mdp(rewards=f, transitions=p) for p in TRANSITIONS[context]] for f in REWARDS[context]]
    values = [[omg.optimal_policy(mdp, bounds=bounds)[1] for mdp in row] for row in pairs]
    np.testing.assert_allclose(agent.state()["value_sums"], values, rtol=1e-12)
    clipped = [omg.optimal_policy(mdp, bounds=bounds)[0] for row in pairs for mdp in row]
    plain = [omg.optimal_policy(mdp)[0] for row in pairs for mdp in row]
    for seed in range(20):
        agent.seed = seed
        played = agent.policy(context)
        assert any(np.array_equal(played, policy) for policy in clipped)
        changed += not any(np.array_equal(played, policy) for policy in plain)
    assert changed


@pytest.mark.parametrize("returns", [(0.0, 1.0), (1.5, 2.5), (1.0, 4.0)])
def test_bonuses_are_as_wide_as_values(returns):
    """What multiplies the error of the transitions is the range of values: H, if nothing is told."""
    span = value_bounds(HORIZON, returns).span
    assert span < HORIZON
    told, free = (build("UC³RL", return_range=given)[1] for given in (returns, None))
    share = min(2.0, told.scale[1] / 2.0)  # of the transitions, at W = 1
    np.testing.assert_allclose(free.bonus(LABELS[0]) - told.bonus(LABELS[0]), (HORIZON - span) * share)
    told, free = (
        OWN_STATISTICS["UCBVI, per context"][1](SPACES["plain"], return_range=given) for given in (returns, None)
    )
    np.testing.assert_allclose(told.bonus(np.ones((3, 3))) * HORIZON, free.bonus(np.ones((3, 3))) * span)


@pytest.mark.parametrize("returns", [(0.0, 1.0), (1.0, 2.0), (0.5, 4.0)])
def test_noise_is_as_wide_as_values_and_clipped_where_the_range_says_more_than_rewards(returns):
    """Values bounded by rewards in [0, 1] alone are not clipped, as in the paper."""
    span = value_bounds(HORIZON, returns).span
    for seed in range(10):
        agent = OWN_STATISTICS["GLM-RLSVI"][1](SPACES["plain"], return_range=returns, scale=0.02, seed=seed)
        for t in range(30):
            agent.update(episode(VECTORS[t % 3], np.eye(HORIZON)[t % HORIZON], seed=t))
        model, (rewards, transitions) = agent.model(VECTORS[0]), agent.widths(VECTORS[0])
        noise = np.random.default_rng((seed, 30)).standard_normal((HORIZON, 3, 3))
        noise *= 0.02 * np.sqrt(3 * HORIZON) * (span * transitions + rewards)
        values, policy = np.zeros(3), agent.policy(VECTORS[0])
        for h in reversed(range(HORIZON)):
            gains = model.rewards + noise[h] + model.transitions @ values
            np.testing.assert_array_equal(policy[h].argmax(axis=1), gains.argmax(axis=1))
            low, high = max(returns[0] - h, 0.0), min(HORIZON - h, returns[1])
            values = np.clip(gains.max(axis=1), low if low else -np.inf, high if high < HORIZON - h else np.inf)


def test_optimism_survives_clipping(rng):
    """Where every episode earns at most 1, UCBVI's clipped values are still at least the true ones, and smaller."""
    world = Lake()
    free, told = (UCBVI(world.space, PerContext(), **r) for r in ({}, {"return_range": (0.0, 1.0)}))
    for t in range(200):
        context = t % 2
        values = []
        for agent in (free, told):
            model, visits = agent.model(context), agent.tally(context).counts.sum(axis=2)
            optimistic = (model.rewards + agent.bonus(visits))[None]
            values.append(world.space.start @ best_response(model, optimistic, bounds=agent.value_bounds)[1][0])
        assert world.optimal_value(context) - 1e-12 <= values[1] <= min(1.0, values[0])
        played = world.sample(context, told.policy(context), rng)
        for agent in (free, told):
            agent.update(played)


def test_bandits_take_it_too():
    for rewards, make in BANDITS.values():
        pair = rewards({label: np.zeros((2, 3, 3)) for label in LABELS}, horizon=1), oracles.CountDynamics(**ONE_STEP)
        agent = make(Space(**ONE_STEP), *pair, return_range=(0.0, 0.5))
        with pytest.raises(ValueError, match="`return_range` must hold"):
            agent.update(episode("a", [1.0]))
