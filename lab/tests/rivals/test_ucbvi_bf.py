"""Bonuses by variance: the formula of UCBVI-BF, its optimism, and how it compares with Hoeffding's bonus."""

import math

import numpy as np
import pytest

from library.tests.agents.models import an_episode, uniform
from omg_cmdp import Space, TabularMDP, Trajectory, optimal_policy
from omg_cmdp.mdp.bellman import best_response
from omg_lab.rivals import UCBVI, UCBVIBF, Blind

STATES, ACTIONS, HORIZON = 3, 2, 4
SPACE = Space(states=STATES, actions=ACTIONS, horizon=HORIZON)


def a_world(rng):
    kernel, means = rng.dirichlet(np.ones(STATES), (STATES, ACTIONS)), rng.random((STATES, ACTIONS))
    return TabularMDP(transitions=kernel, rewards=means, horizon=HORIZON)


def sampled(rng, mdp, policy):
    states, actions, rewards = [0], [], []
    for h in range(mdp.horizon):
        actions.append(int(rng.choice(mdp.actions, p=policy[h, states[-1]])))
        rewards.append(float(rng.random() < mdp.rewards[states[-1], actions[-1]]))
        states.append(int(rng.choice(mdp.states, p=mdp.transitions[states[-1], actions[-1]])))
    return Trajectory(context=0, states=states, actions=actions, rewards=rewards)


def seen(played):
    counts, sums = np.zeros((STATES, ACTIONS, STATES)), np.zeros((STATES, ACTIONS))
    for episode in played:
        for s, a, r, j in zip(episode.states, episode.actions, episode.rewards, episode.next_states, strict=False):
            counts[s, a, j] += 1.0
            sums[s, a] += r
    return counts, sums


def plain_values(bonus, counts, sums):
    """Optimistic values written down once more, by a loop over (h, s, a); untried pairs have all that can be earned."""
    values = np.zeros((HORIZON + 1, STATES))
    for h in reversed(range(HORIZON)):
        for s in range(STATES):
            worths = []
            for a in range(ACTIONS):
                n = counts[s, a].sum()
                if n == 0:
                    worths.append(np.inf)
                    continue
                p, mean = counts[s, a] / n, sums[s, a] / n
                variance = p @ values[h + 1] ** 2 - (p @ values[h + 1]) ** 2
                worths.append(mean + p @ values[h + 1] + bonus(n, mean, p, max(variance, 0.0)))
            values[h, s] = min(max(worths), HORIZON - h)
    return values


def bonus_of_bf(agent, visits):
    eight, fourteen_thirds, ten_thousand = agent.constants
    logarithm = math.log(5 * STATES * ACTIONS * HORIZON * (agent.episodes_seen + 1) / agent.delta)

    def bonus(n, mean, p, variance):
        worst = ten_thousand * HORIZON**3 * STATES**2 * ACTIONS * logarithm**2
        unsure = sum(p[j] * min(worst / max(visits[j], 1), HORIZON**2) for j in range(STATES))
        roots = math.sqrt(eight * logarithm / n) * (math.sqrt(variance) + math.sqrt(mean * (1 - mean)))
        return agent.scale * (roots + fourteen_thirds * HORIZON * logarithm / n + math.sqrt(eight / n * unsure))

    return bonus


def test_ucbvi_bf_is_the_formula(rng):
    for scale, constants in ((0.01, (8.0, 14 / 3, 1e4)), (0.1, (2.0, 1.0, 1e-3)), (1.0, (8.0, 14 / 3, 1e-6))):
        agent, played = UCBVIBF(SPACE, Blind(), scale=scale, constants=constants), []
        for _ in range(25):
            counts, sums = seen(played)
            expected = plain_values(bonus_of_bf(agent, counts.sum(axis=(1, 2))), counts, sums)
            np.testing.assert_allclose(agent.optimistic_values(0), expected, atol=1e-9)
            played.append(an_episode(rng, SPACE, 0, uniform(agent.model(0))))
            agent.update(played[-1])


def test_values_are_optimistic(rng):
    """V_0 >= V* in all episodes of a run, but for a share δ of the runs; with hardly any bonus it is not."""
    runs, delta = 12, 0.1
    failures = {1.0: 0, 0.0005: 0}
    for scale in failures:
        for _ in range(runs):
            mdp = a_world(rng)
            agent = UCBVIBF(SPACE, Blind(), delta=delta, scale=scale)
            best, failed = optimal_policy(mdp)[1], False
            for _ in range(40):
                failed |= agent.optimistic_values(0)[0, 0] < best - 1e-12
                agent.update(sampled(rng, mdp, agent.policy(0)))
            failures[scale] += failed
    assert failures[1.0] <= delta * runs
    assert failures[0.0005] > delta * runs


def test_without_variance_bonuses_fall_like_one_over_n():
    """No chance, four times the visits: Bernstein's bonus is a quarter, up to logarithms, Hoeffding's a half."""
    one = Space(states=1, actions=1, horizon=2)
    rewards = [0.0, 0.0]
    excess = {}
    for count in (200, 800):
        for agent in (
            UCBVIBF(one, Blind(), constants=(8.0, 14 / 3, 1e-9), scale=0.1),
            UCBVI(one, Blind(), scale=0.1),
        ):
            for _ in range(count):
                agent.update(Trajectory(context=0, states=[0, 0, 0], actions=[0, 0], rewards=rewards))
            if isinstance(agent, UCBVI):
                found = 2.0 * agent.bonus(agent.tally(0).counts.sum(axis=2))[0, 0]
            else:
                found = agent.optimistic_values(0)[0, 0]
            excess.setdefault(type(agent).__name__, []).append(found)
    ratios = {name: many / few for name, (few, many) in excess.items()}
    assert ratios["UCBVIBF"] < 0.32
    assert 0.5 < ratios["UCBVI"] < 0.6


def test_bernsteins_first_term_is_never_above_hoeffdings(rng):
    """The deviations of values in a range B and of rewards are at most B/2 and 1/2: together at most B if B >= 1."""
    bernstein, hoeffding = UCBVIBF(SPACE, Blind(), constants=(1.0, 1e-12, 1e-12)), UCBVI(SPACE, Blind())
    strictly = False
    for _ in range(60):
        episode = an_episode(rng, SPACE, 0, uniform(hoeffding.model(0)))
        bernstein.update(episode)
        hoeffding.update(episode)
        model = hoeffding.model(0)
        gains = model.rewards + hoeffding.bonus(hoeffding.tally(0).counts.sum(axis=2))
        most = best_response(model, gains[None], bounds=hoeffding.value_bounds)[1]
        found = bernstein.optimistic_values(0)
        assert (found <= most + 1e-9).all()
        strictly |= bool((found < most - 0.1).any())
    assert strictly


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"constants": (1.0, 2.0)}, "`constants` must be three positive numbers, got"),
        ({"constants": (1.0, 2.0, -1.0)}, "`constants` must be a positive"),
        ({"scale": 0.0}, "`scale` must be a positive"),
        ({"delta": 1.5}, "`delta` must lie in"),
    ],
)
def test_what_is_wrong_is_refused_by_name(more, message):
    with pytest.raises(ValueError, match=message):
        UCBVIBF(SPACE, Blind(), **more)
