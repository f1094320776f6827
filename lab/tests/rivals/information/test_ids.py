"""Information-directed sampling: two policies at most, the least ratio of all mixtures, and information as a reward."""

import itertools

import numpy as np
import pytest

from library.tests.agents.models import learning
from library.tests.random_mdps import random_mdp
from omg_cmdp import Space, TabularMDP, adversaries, oracles, policy_value, simulate
from omg_cmdp.agents import Power
from omg_cmdp.mdp.bellman import best_response, value_bounds
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.oracles.draws import Streams
from omg_lab.rivals import VIDS, RegularisedIDS
from omg_lab.rivals.information.regularised_ids import information, informed_policy
from omg_lab.rivals.information.vids import least_ratio, regrets_and_information
from omg_lab.worlds import SoftmaxWorld

RIVALS = 200


def ratio(shares, regrets, gains):
    return (shares @ regrets) ** 2 / (shares @ gains)


def some_values(rng, candidates=5, models=8):
    """Values of candidates in models, each model with its own optimum, as draws have."""
    return rng.random((candidates, models)) + 0.5 * np.eye(candidates, models)


def test_no_mixture_has_a_smaller_ratio(rng):
    """Not a pure policy, not Thompson sampling, not any mixture of all candidates: two are enough."""
    for _ in range(50):
        values = some_values(rng)
        regrets, gains = regrets_and_information(values)
        choice = least_ratio(regrets, gains)
        own = np.zeros(len(regrets))
        np.add.at(own, [choice.first, choice.second], [choice.share, 1.0 - choice.share])
        assert ratio(own, regrets, gains) == pytest.approx(choice.ratio)
        thompson = np.bincount(values.argmax(axis=0), minlength=len(values)) / values.shape[1]
        for shares in (*np.eye(len(values)), thompson, *rng.dirichlet(np.full(len(values), 0.5), RIVALS)):
            assert choice.ratio <= ratio(shares, regrets, gains) * (1.0 + 1e-9)


def test_the_ratio_is_at_most_the_number_of_policies_that_may_be_best(rng):
    """Also that of Thompson sampling, for which it is proven."""
    for models in (2, 3, 8, 20):
        values = some_values(rng, models=models)
        regrets, gains = regrets_and_information(values)
        best = values.argmax(axis=0)
        thompson = np.bincount(best, minlength=len(values)) / models
        assert (thompson @ regrets) ** 2 <= len(set(best)) * (thompson @ gains) + 1e-12
        assert least_ratio(regrets, gains).ratio <= len(set(best))


def test_information_is_the_variance_of_what_is_expected(rng):
    """By the law of total variance: of all variance, what the best policy explains; all of it if each is best once."""
    values = some_values(rng, candidates=4, models=12)
    regrets, gains = regrets_and_information(values)
    assert (regrets >= 0.0).all()
    best = values.argmax(axis=0)
    within = sum((best == i).mean() * values[:, best == i].var(axis=1) for i in set(best.tolist()))
    np.testing.assert_allclose(gains + within, values.var(axis=1))
    alone = rng.random((6, 6)) + 10.0 * np.eye(6)
    np.testing.assert_allclose(regrets_and_information(alone)[1], alone.var(axis=1))


def test_what_cannot_be_regretted_is_played_and_where_nothing_is_learned_the_least_regret():
    assert least_ratio(np.array([0.3, 0.0]), np.array([9.0, 0.0]))[:3] == (1, 1, 1.0)
    assert least_ratio(np.array([0.3, 0.2]), np.zeros(2)) == (1, 1, 1.0, np.inf)


def two_arms_and_a_witness():
    """Arm 0 or 1 earns 1, the other 0; arm 2 earns .45 if it is arm 0 and .05 if it is arm 1, and never is best."""
    rewards = np.array([[[1.0, 0.0, 0.45]], [[0.0, 1.0, 0.05]]])
    space = Space(states=1, actions=3, horizon=1)
    kernel = oracles.KnownDynamics(np.ones((1, 3, 1)), horizon=1)
    return space, oracles.FiniteRewards(lambda _: rewards, horizon=1), kernel


def test_an_agent_plays_the_least_ratio_of_its_candidates():
    world = SoftmaxWorld(seed=3, context_count=4)
    agent = learning(world, VIDS, draws=12, seed=5)
    sizes = []
    for _ in range(6):
        for context in world.contexts:
            decision = agent.decide(context)
            if decision.mixture is not None:
                generator = np.random.default_rng((5, agent.episodes_seen))
                candidates, values = agent._candidates(agent.model(context), context, generator)
                choice = least_ratio(*regrets_and_information(values))
                own = np.zeros(len(candidates))
                np.add.at(own, [choice.first, choice.second], [choice.share, 1.0 - choice.share])
                policies, shares = decision.mixture
                assert shares.sum() == pytest.approx(1.0)
                for policy, share in zip(policies, shares, strict=True):
                    (number,) = (k for k, each in enumerate(candidates) if (each == policy).all())
                    assert share == pytest.approx(own[number])
                assert any((decision.policy == policy).all() for policy in policies)
                sizes.append(len(shares))
        simulate(world, adversaries.IID(world.contexts), agent, episodes=1)
    assert sizes
    assert set(sizes) <= {1, 2}


def test_values_of_candidates_are_exact():
    """V_i(k) is the value of policy i in model k, and each model's own optimum is the best of its column."""
    world = SoftmaxWorld(seed=1, context_count=2)
    agent = learning(world, VIDS, draws=5, seed=1)
    context, generator = world.contexts[0], np.random.default_rng(7)
    policies, values = agent._candidates(agent.model(context), context, generator)
    streams = Streams.fresh(5, np.random.default_rng(7))
    rewards = agent.reward_oracle.draws_from(context, streams.of(0))
    kernels = agent.dynamics_oracle.draws_from(context, streams.of(1))
    for i, (k, policy) in itertools.product(range(5), enumerate(policies)):
        mdp = world.space.mdp(transitions=kernels[i], rewards=rewards[i])
        assert values[k, i] == pytest.approx(policy_value(mdp, policy))
    assert len({policy.tobytes() for policy in policies}) == len(policies)


@pytest.mark.parametrize(("oracle_draws", "bits"), [((0.0, 1.0), np.log(2.0)), ((0.3, 0.3), 0.0)])
def test_information_of_a_coin(oracle_draws, bits):
    rewards = np.array(oracle_draws).reshape(2, 1, 1, 1)
    assert information(rewards, np.ones((2, 1, 1, 1, 1)))[0, 0, 0] == pytest.approx(bits)


def test_information_is_mutual_information(rng):
    """Of the model's number and what one visit shows, from their joint distribution; at most log K."""
    count = 4
    rewards, kernels = rng.random((count, 1, 2, 3)), rng.dirichlet(np.full(5, 0.3), (count, 1, 2, 3))
    found = information(rewards, kernels)
    coins = np.stack([rewards, 1.0 - rewards], axis=-1)
    for index in np.ndindex(found.shape):
        total = 0.0
        for rows in (coins, kernels):
            joint = rows[(slice(None), *index)] / count
            apart = joint.sum(axis=0) / count
            total += (joint * np.log(joint / apart)).sum()
        assert found[index] == pytest.approx(total)
    assert (found <= 2.0 * np.log(count)).all()


def test_regularised_ids_maximises_value_and_information(rng):
    """Over all deterministic policies, by enumeration: V̂^π + λ·Σ q̂·I in the mean model."""
    states, actions, horizon = 2, 2, 2
    space = Space(states=states, actions=actions, horizon=horizon)
    rewards, kernels = rng.random((6, states, actions)), rng.dirichlet(np.ones(states), (6, states, actions))
    for worth in (0.01, 1.0, 30.0):
        pair = (
            oracles.FiniteRewards(lambda _: rewards, horizon=horizon),
            oracles.FiniteDynamics(lambda _: kernels, horizon=horizon),
        )
        agent = RegularisedIDS(space, *pair, worth, draws=12, seed=1)
        decision, streams = agent.decide("any"), Streams.fresh(12, np.random.default_rng((1, 0)))
        told = information(*(each.draws_from("any", streams.of(i))[:, None] for i, each in enumerate(pair)))

        def objective(policy, worth=worth, model=decision.model, told=told):
            occupancy, value = flow(model, policy)
            return value + worth * (occupancy * told).sum()

        every = itertools.product(range(actions), repeat=horizon * states)
        best = max(objective(np.eye(actions)[np.reshape(chosen, (horizon, states))]) for chosen in every)
        assert objective(decision.policy) == pytest.approx(best)


def test_without_a_range_values_and_information_are_one_reward(rng):
    for _ in range(30):
        mdp = random_mdp(rng)
        worths = rng.exponential(1.0, (mdp.horizon, mdp.states, mdp.actions))
        policy = informed_policy(mdp, worths, value_bounds(mdp.horizon))
        _, values = best_response(mdp, mdp.reward_steps + worths)
        occupancy, value = flow(mdp, policy)
        assert value + (occupancy * worths).sum() == pytest.approx(mdp.start @ values[0], rel=1e-12)


def test_a_range_of_returns_bounds_what_is_earned_and_not_what_is_told():
    """Two ways: one seems to earn 1 at its end, the other .9, where something worth .2 is told."""
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = transitions[1, :, 1] = transitions[2, :, 2] = 1.0
    mdp = TabularMDP(transitions=transitions, rewards=[[0.0, 0.0], [1.0, 1.0], [0.9, 0.9]], horizon=2)
    worths = np.array([[[0.0, 0.0], [0.0, 0.0], [0.2, 0.2]]])
    assert informed_policy(mdp, worths, value_bounds(2))[0, 0, 1] == 1.0  # 1 against 1.1
    assert informed_policy(mdp, 0.4 * worths, value_bounds(2))[0, 0, 0] == 1.0  # 1 against .98
    assert informed_policy(mdp, 0.4 * worths, value_bounds(2, (0.0, 0.9)))[0, 0, 1] == 1.0  # .9 against .98


def test_a_witness_that_tells_no_more_than_an_arm_is_not_asked():
    for kind, more in ((VIDS, {}), (RegularisedIDS, {"worth": Power(1.0, 0.5)})):
        agent = kind(*two_arms_and_a_witness(), **more)
        played = agent.decide("any")
        policies = [played.policy] if played.mixture is None else list(played.mixture.policies)
        assert all(policy[0, 0, 2] == 0.0 for policy in policies)


def test_a_witness_that_tells_all_is_asked_if_that_is_cheap():
    """Arms 0 to 7 are alike but for one that earns more, and arm 8 says which."""
    arms = 8
    rewards = np.full((arms, arms + 1), 0.5)
    rewards[np.arange(arms), np.arange(arms)] = 0.6
    rewards[:, arms] = np.arange(arms) / arms / 2.0
    space = Space(states=1, actions=arms + 1, horizon=1)
    pair = (
        oracles.FiniteRewards(lambda _: rewards[:, None, :], horizon=1),
        oracles.KnownDynamics(np.ones((1, arms + 1, 1)), horizon=1),
    )
    assert RegularisedIDS(space, *pair, 10.0, draws=32).policy("any")[0, 0, arms] == 1.0
    assert RegularisedIDS(space, *pair, 1e-6, draws=32).policy("any")[0, 0, arms] == 0.0
