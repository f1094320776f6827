"""Rmax and Cover-Rmax: optimism, the inequality of its docstring, the number of mistakes, and what a ball costs."""

import itertools
import math

import numpy as np
import pytest

import omg_cmdp as omg
import omg_lab
from library.tests.agents.models import an_episode, uniform
from omg_cmdp import Space, TabularMDP, optimal_policy, policy_value
from omg_lab.rivals import Blind, CoverRmax, PerBall, PerContext
from omg_lab.rivals.pac.rmax import induced_mdp

STATES, ACTIONS, HORIZON = 4, 3, 5
SPACE = Space(states=STATES, actions=ACTIONS, horizon=HORIZON, start=[0.5, 0.5, 0.0, 0.0])


def tables(rng, concentration=1.0):
    return rng.dirichlet(np.full(STATES, concentration), (STATES, ACTIONS)), rng.random((STATES, ACTIONS))


class Deterministic(omg.ContextualMDP):
    """A random deterministic MDP for each of three contexts; rewards are 0 or 1."""

    contexts = (1, 2, 3)
    space = Space(states=STATES, actions=ACTIONS, horizon=HORIZON)

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.tables = {c: (rng.integers(STATES, size=(STATES, ACTIONS)), rng.random((2, 3, 4))) for c in self.contexts}

    def mdp(self, context):
        following, draws = self.tables[context]
        rewards = (draws[0].T < 0.2).astype(float)
        return self.space.mdp(transitions=np.eye(STATES)[following], rewards=rewards)


def test_an_unknown_pair_absorbs_with_maximal_value(rng):
    """The same policy and value as with a state more, which pays 1 for ever and follows on every unknown pair."""
    for _ in range(20):
        kernel, rewards = tables(rng)
        known = rng.random((STATES, ACTIONS)) < 0.7
        larger = np.zeros((STATES + 1, ACTIONS, STATES + 1))
        larger[:-1, :, :-1] = np.where(known[:, :, None], kernel, 0.0)
        larger[:-1, :, -1] = ~known
        larger[-1, :, -1] = 1.0
        paid = np.ones((STATES + 1, ACTIONS))
        paid[:-1] = np.where(known, rewards, 1.0)
        explicit = TabularMDP(transitions=larger, rewards=paid, horizon=HORIZON, start=np.append(SPACE.start, 0.0))
        policy, value = optimal_policy(induced_mdp(SPACE, kernel, rewards, known))
        there, worth = optimal_policy(explicit)
        assert value == pytest.approx(worth, rel=1e-12)
        np.testing.assert_array_equal(policy, there[:, :-1])


def test_the_inequality_of_rmax(rng):
    """V* - V^π <= H·(2η_r + H·η_p) + H·Pr(π meets an unknown pair), and it is not far from tight without errors."""
    tightest = np.inf
    for round_ in range(60):
        kernel, rewards = tables(rng, 0.3)
        share = 0.0 if round_ % 2 else 0.1 * rng.random()
        guess, guessed = tables(rng)
        near, means = (1 - share) * kernel + share * guess, (1 - share) * rewards + share * guessed
        known = rng.random((STATES, ACTIONS)) < 0.8
        truth = SPACE.mdp(transitions=kernel, rewards=rewards)
        policy, optimistic = optimal_policy(induced_mdp(SPACE, near, means, known))
        # Who stops at the first unknown pair: the probability of meeting one is the value of a reward paid there once.
        stopping = np.concatenate([np.where(known[:, :, None], kernel, 0.0), (~known)[:, :, None]], axis=2)
        ended = np.concatenate([stopping, np.eye(STATES + 1)[-1:].repeat(ACTIONS, 0)[None]])
        meeting = TabularMDP(
            transitions=ended,
            rewards=np.concatenate([~known, np.zeros((1, ACTIONS), bool)]).astype(float),
            horizon=HORIZON,
            start=np.append(SPACE.start, 0.0),
        )
        met = policy_value(meeting, np.concatenate([policy, policy[:, :1]], axis=1))
        errors = np.abs(means - rewards)[known].max(), np.abs(near - kernel).sum(axis=2)[known].max()
        bound = HORIZON * (2.0 * errors[0] + HORIZON * errors[1]) + HORIZON * met
        lost = optimal_policy(truth)[1] - policy_value(truth, policy)
        assert lost <= bound + 1e-12
        if share == 0.0:
            assert optimistic >= optimal_policy(truth)[1] - 1e-12
            tightest = min(tightest, bound - lost)
    assert tightest < 2.0


@pytest.mark.parametrize("cover", [PerContext(), PerBall(0.5)], ids=str)
def test_in_a_deterministic_world_there_is_a_mistake_for_each_pair_at_most(cover, seed):
    """One visit tells all of a pair: an episode that loses anything meets a pair that was never met."""
    world = Deterministic(seed)
    agent = CoverRmax(world.space, cover, visits=1)
    ledger = omg.simulate(world, omg.adversaries.WorstRegret(world.contexts), agent, 60)
    found = omg_lab.sample_complexity(ledger, 1e-9, window=1)
    assert 0 < found.mistakes <= STATES * ACTIONS * len(world.contexts)
    assert ledger.regret[-10:].max() <= 1e-12


def test_a_pair_learns_until_it_is_known_and_then_no_more(rng):
    agent = CoverRmax(SPACE, Blind(), visits=3)
    guess = SPACE.mdp(transitions=np.full((STATES, ACTIONS, STATES), 0.25), rewards=np.zeros((STATES, ACTIONS)))
    everything = uniform(guess)
    for _ in range(200):
        agent.update(an_episode(rng, SPACE, "c", everything))
    counts, sums = (agent.state()[name][0] for name in ("counts", "rewards"))
    assert (counts.sum(axis=2) == 3.0).all()
    agent.update(an_episode(rng, SPACE, "c", everything))
    np.testing.assert_array_equal(agent.state()["counts"][0], counts)
    np.testing.assert_array_equal(agent.state()["rewards"][0], sums)
    model = agent.model("c")
    np.testing.assert_allclose(model.transitions, counts / 3.0)
    np.testing.assert_allclose(model.rewards, sums / 3.0)


def test_before_any_visit_everything_is_worth_the_horizon():
    agent = CoverRmax(SPACE, PerContext())
    assert optimal_policy(agent.model("new"))[1] == HORIZON


def test_there_are_no_more_balls_than_an_interval_needs(rng):
    """Centres are more than r apart: at most 1/r + 1 of them in [0, 1]."""
    for radius in (0.3, 0.1, 0.02):
        agent = CoverRmax(SPACE, PerBall(radius))
        for context in rng.random(60):
            agent.update(an_episode(rng, SPACE, float(context), agent.policy(float(context))))
        assert len(agent.cover) <= 1.0 / radius + 1.0
        assert len(agent.state()["counts"]) == len(agent.cover)


def test_contexts_in_a_ball_of_the_published_radius_differ_by_three_eighths_of_epsilon(rng):
    """Tables linear in c in [0, 1] are smooth with L = the distance of the two ends; values then differ as proven."""
    ends = [tables(rng, 0.3) for _ in range(2)]
    slopes = {
        "dynamics": np.abs(ends[1][0] - ends[0][0]).sum(axis=2).max(),
        "rewards": np.abs(ends[1][1] - ends[0][1]).max(),
    }

    def mdp(context):
        kernel, rewards = (context * one + (1 - context) * other for one, other in zip(*ends, strict=True))
        return SPACE.mdp(transitions=kernel, rewards=rewards)

    for epsilon in (0.5, 2.0):
        radius = epsilon / (8.0 * HORIZON * max(HORIZON * slopes["dynamics"], slopes["rewards"]))
        bias = HORIZON * 2.0 * radius * slopes["rewards"] + (HORIZON**2) * radius * slopes["dynamics"]
        assert bias <= 3.0 * epsilon / 8.0 + 1e-12
        inside = np.clip(0.5 + radius * np.array([-1.0, 0.0, 1.0]), 0.0, 1.0)
        policies = [optimal_policy(mdp(context))[0] for context in inside]
        for one, other in itertools.combinations(inside, 2):
            for policy in policies:
                assert abs(policy_value(mdp(one), policy) - policy_value(mdp(other), policy)) <= 3.0 * epsilon / 8.0


def test_known_pairs_of_the_published_number_of_visits_are_good_enough(rng):
    """m visits leave ‖P̂ - P‖₁ below ε/(4H²), the share that the inequality asks for, with room: factor 128."""
    for epsilon in (1.0, 2.0):
        logarithm = STATES * math.log(2.0) + math.log(STATES * ACTIONS / 0.05)
        visits = math.ceil(128.0 * logarithm * HORIZON**4 / epsilon**2)
        for row in tables(rng)[0].reshape(-1, STATES):
            frequencies = rng.multinomial(visits, row) / visits
            assert np.abs(frequencies - row).sum() <= epsilon / (4.0 * HORIZON**2)


@pytest.mark.parametrize("visits", [0, 2.5, -1])
def test_bad_arguments_are_refused(visits):
    with pytest.raises(ValueError, match="`visits` must be an integer"):
        CoverRmax(SPACE, Blind(), visits=visits)
    with pytest.raises(ValueError, match="`cover` must be a Cover"):
        CoverRmax(SPACE, "balls")
