"""Bonuses by variance: MVP and UCBVI-BF. Formulas, monotone values, optimism, and few plans."""

import math

import numpy as np
import pytest

from library.tests.agents.models import an_episode, uniform
from omg_cmdp import Space, TabularMDP, Trajectory, optimal_policy
from omg_cmdp.mdp.bellman import best_response
from omg_lab.rivals import MVP, UCBVI, UCBVIBF, Blind, PerContext
from omg_lab.rivals.mvp import PUBLISHED

STATES, ACTIONS, HORIZON = 3, 2, 4
SPACE = Space(states=STATES, actions=ACTIONS, horizon=HORIZON)
PROVEN = (3.4, 2.0, 17.0)
"""The constants of the proof in `mvp.py`."""


def a_world(rng):
    transitions, means = rng.dirichlet(np.ones(STATES), (STATES, ACTIONS)), rng.random((STATES, ACTIONS))
    return TabularMDP(transitions=transitions, rewards=means, horizon=HORIZON)


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


def test_mvp_is_the_formula_on_what_it_knew_when_visits_last_doubled(rng):
    agent = MVP(SPACE, Blind(), scale=0.0003)
    known, sums = np.zeros((STATES, ACTIONS, STATES)), np.zeros((STATES, ACTIONS))
    first, second, third = agent.constants
    played = []

    def bonus(n, mean, p, variance):
        iota = math.log(4 * STATES * ACTIONS * (HORIZON + 1) * n**2 / agent.delta)
        roots = first * math.sqrt(variance * iota / n) + second * math.sqrt(mean * iota / n)
        return agent.scale * (roots + third * HORIZON * iota / n)

    for _ in range(40):
        np.testing.assert_allclose(agent.optimistic_values(0), plain_values(bonus, known, sums), atol=1e-9)
        before = seen(played)[0].sum(axis=2)
        played.append(an_episode(rng, SPACE, 0, uniform(agent.model(0))))
        agent.update(played[-1])
        counts, all_sums = seen(played)
        for s, a in np.ndindex(STATES, ACTIONS):
            n = counts[s, a].sum()
            if any(before[s, a] < 2**i <= n for i in range(12)):
                known[s, a], sums[s, a] = counts[s, a], all_sums[s, a]


def test_mvp_plans_no_more_often_than_visits_double(rng):
    """At most S·A·(1 + log₂(HT)) times in each of two cells, whatever is seen in the other."""
    space, episodes = Space(states=2, actions=2, horizon=2), 300
    agent = MVP(space, PerContext(), scale=0.001)
    plans = {"a": set(), "b": set()}
    for t in range(episodes):
        agent.update(an_episode(rng, space, "ab"[t % 2], uniform(agent.model("a"))))
        for context, found in plans.items():
            found.add(agent.optimistic_values(context).tobytes())
    assert all(4 < len(found) <= 4 * (1 + math.log2(2 * episodes)) for found in plans.values())


@pytest.mark.parametrize(
    "made", [lambda **more: MVP(SPACE, Blind(), **more), lambda **more: UCBVIBF(SPACE, Blind(), **more)]
)
def test_values_are_optimistic(made, rng):
    """V_0 >= V* in all episodes of a run, but for a share δ of the runs; with hardly any bonus it is not."""
    runs, delta = 12, 0.1
    theory = {"constants": PROVEN} if isinstance(made(), MVP) else {}
    failures = {1.0: 0, 0.0005: 0}
    for scale in failures:
        for _ in range(runs):
            mdp = a_world(rng)
            agent, best, failed = made(delta=delta, scale=scale, **theory), optimal_policy(mdp)[1], False
            for _ in range(40):
                failed |= agent.optimistic_values(0)[0, 0] < best - 1e-12
                agent.update(sampled(rng, mdp, agent.policy(0)))
            failures[scale] += failed
    assert failures[1.0] <= delta * runs
    assert failures[0.0005] > delta * runs


def test_mvps_proof_is_monotone_and_covers_bernstein(rng):
    """Both lemmas of the docstring: g grows with every value, and max(cx, c²y) >= 2x + 14/3·y from c = 3.4 on."""
    horizon = float(HORIZON)
    for c in (PROVEN[0], PUBLISHED[0]):
        assert c**2 - 2 * c >= 14 / 3
        for _ in range(300):
            p, share = rng.dirichlet(np.full(5, 0.5)), 10.0 ** rng.uniform(-5, 1)  # ι/n
            v = horizon * rng.random(5) ** rng.uniform(0.2, 5.0)
            more = v + rng.random(5) * (rng.random(5) < 0.5) * (horizon - v)

            def g(v, p=p, share=share, c=c):
                spread = math.sqrt(max(p @ v**2 - (p @ v) ** 2, 0.0))
                return p @ v + max(c * spread * math.sqrt(share), c**2 * horizon * share)

            assert g(more) >= g(v) - 1e-9
    assert PROVEN[1] >= 2.0
    assert PROVEN[2] >= PROVEN[0] ** 2 + 14 / 3


def test_the_plan_of_mvp_grows_with_values_and_falls_with_visits(rng):
    """More reward in a table raises every value; the same frequencies, seen twice as often, lower them."""
    counts = rng.integers(1, 4, (STATES, ACTIONS, STATES)).astype(float)
    counts *= 4.0 ** rng.integers(2, 5, (STATES, ACTIONS, 1))
    sums = 0.5 * counts.sum(axis=2)

    def values(counts, sums):
        agent = MVP(SPACE, Blind(), scale=0.01, constants=PROVEN)
        agent.update(an_episode(rng, SPACE, 0, uniform(agent.model(0))))
        state = agent.state()
        state["counts"], state["rewards"] = np.stack([counts] * 2)[None], np.stack([sums] * 2)[None]
        agent.load_state(state)
        return agent.optimistic_values(0)

    base = values(counts, sums)
    assert (values(counts, sums * 1.1) >= base - 1e-12).all()
    assert (values(2.0 * counts, 2.0 * sums) <= base + 1e-12).all()
    assert values(2.0 * counts, 2.0 * sums).sum() < base.sum()


def test_without_variance_bonuses_fall_like_one_over_n():
    """No chance, four times the visits: Bernstein's bonus is a quarter, up to logarithms, Hoeffding's a half."""
    one = Space(states=1, actions=1, horizon=2)
    rewards = [0.0, 0.0]
    excess = {}
    for count in (200, 800):
        for agent in (
            MVP(one, Blind(), scale=0.01),
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
    assert ratios["MVP"] < 0.32
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


@pytest.mark.parametrize("kind", [MVP, UCBVIBF])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"constants": (1.0, 2.0)}, "`constants` must be 3 positive numbers, got"),
        ({"constants": (1.0, 2.0, -1.0)}, "`constants` must be a positive"),
        ({"scale": 0.0}, "`scale` must be a positive"),
        ({"delta": 1.5}, "`delta` must lie in"),
    ],
)
def test_what_is_wrong_is_refused_by_name(kind, more, message):
    with pytest.raises(ValueError, match=message):
        kind(SPACE, Blind(), **more)
