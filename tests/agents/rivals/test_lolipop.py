"""LOLIPOP: trusted transitions, the cover of a step and its weights by enumeration, and which data make which fit."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp import oracles
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import LOLIPOP
from omg_cmdp.agents.kernels import trusted as compiled
from omg_cmdp.agents.rivals.lolipop import Segment, trusted_transitions
from omg_cmdp.environments import CombinationLock, LinearWorld
from omg_cmdp.mdp import optimal_policy, policy_value, squared_hellinger
from tests.agents.rivals.test_pc_igw import every_policy
from tests.agents.small_world import HORIZON, LABELS, SPACES, Small
from tests.random_mdps import by_step, random_mdp

TINY = ({"states": 2, "actions": 2, "horizon": 3}, {"states": 3, "actions": 2, "horizon": 2, "masked": True})


def trusted_occupancy(mdp, trusted, policy):
    """Return the probabilities (h + 1, S, A) of paths along `trusted` (h, S, A, S): a part of what happens."""
    marginal, found = mdp.start, []
    for h in range(len(trusted) + 1):
        found.append(marginal[:, None] * policy[h])
        if h < len(trusted):
            marginal = np.einsum("sa,saj->j", found[-1], trusted[h])
    return np.array(found)


def by_definition(mdp, kernel, threshold):
    """Return the trusted part of `kernel`, with the best of all policies for each (k, s)."""
    trusted, policies = np.zeros(kernel.shape), list(every_policy(mdp))
    for k in range(len(kernel)):
        reach = np.max([trusted_occupancy(mdp, trusted[:k], p)[k].sum(axis=1) for p in policies], axis=0)
        trusted[k] = np.where(reach[:, None, None] * kernel[k] >= threshold, kernel[k], 0.0)
    return trusted


@pytest.mark.parametrize("size", TINY, ids=str)
def test_transitions_are_trusted_by_what_can_be_reached_along_trusted_ones(size, rng):
    for threshold in (0.0, 0.03, 0.2, 0.6):
        mdp = random_mdp(rng, **size)
        kernel = by_step(mdp)[0][: mdp.horizon - 1]
        found = trusted_transitions(mdp.space, kernel, threshold)
        assert np.array_equal(found, by_definition(mdp, kernel, threshold))
        assert threshold > 0.0 or np.array_equal(found, kernel)


@pytest.mark.parametrize("threshold", [0.02, 0.1])
def test_trusted_occupancies_are_at_most_e_times_the_true_ones(threshold, rng):
    """If ρ·D² is small; all policies; and a fit that is too far off would break it."""
    largest, held, broken = 0.0, 0, 0
    for _ in range(60):
        truth, horizon = random_mdp(rng, 2, 2, 3, kernel="dense"), 3
        kernel = by_step(truth)[0][: horizon - 1]
        share = 10.0 ** rng.uniform(-3, 0)
        other = rng.dirichlet(np.full(2, 0.3), kernel.shape[:-1])
        fit = (1.0 - share) * kernel + share * other
        trusted = trusted_transitions(truth.space, fit, threshold)
        policies = list(every_policy(truth))
        reach = np.max([trusted_occupancy(truth, trusted, p)[:-1].sum(axis=2) for p in policies], axis=0)
        errors = (reach[:, :, None] * squared_hellinger(kernel, fit)).max()
        close = errors < threshold * (1.0 - 1.0 / math.sqrt(1.0 + 1.0 / horizon)) ** 2
        if close:
            assert (trusted <= (1.0 + 1.0 / horizon) * kernel + 1e-12).all()
        for policy in policies:
            seen = trusted_occupancy(truth, trusted, policy)
            true = trusted_occupancy(truth, kernel, policy)
            above = (seen / np.maximum(true, 1e-300) * (true > 0.0)).max()
            if close:
                assert (seen <= math.e * true + 1e-12).all()
                largest = max(largest, above)
            broken += above > math.e
        held += close
    assert held > 5
    assert largest > 1.01
    assert broken > 0


@pytest.mark.parametrize("gamma", [1.0, 30.0, 1e3])
@pytest.mark.parametrize("size", TINY, ids=str)
def test_the_cover_of_a_step_holds_the_best_of_all_policies(size, gamma, rng):
    """d̃/(SA + γ·lost) for every (s, a), lost along the trusted path; gaps are exact, in the model."""
    for _ in range(4):
        mdp, now = random_mdp(rng, **size), random_mdp(rng, **size)
        step, space = int(rng.integers(mdp.horizon)), mdp.space
        trusted = trusted_transitions(space, by_step(now)[0][:step] * mdp.admissible[:, :, None], 0.01)
        kernel, rewards, start, admissible = mdp.raw
        policies, gaps = compiled.layer_cover(trusted, kernel, rewards, start, admissible, gamma, step, mdp.horizon)
        best, value = optimal_policy(mdp)
        np.testing.assert_array_equal(policies[0], best)
        np.testing.assert_allclose(gaps, [value - policy_value(mdp, policy) for policy in policies], atol=1e-12)
        assert len({policy.tobytes() for policy in policies}) == len(policies) <= mdp.states * mdp.actions + 1
        ours = np.max([ratio(mdp, trusted, gamma, policy) for policy in policies], axis=0)
        most = np.max([ratio(mdp, trusted, gamma, policy) for policy in every_policy(mdp)], axis=0)
        np.testing.assert_allclose(ours, most, rtol=1e-9, atol=1e-15)


def ratio(mdp, trusted, gamma, policy):
    """Return d̃_h(s, a)/(SA + γ·lost), (S, A), h the number of trusted steps."""
    values, losses = np.zeros(mdp.states), np.zeros(policy.shape)
    kernel, rewards = by_step(mdp)
    for h in reversed(range(mdp.horizon)):
        gains = np.where(mdp.admissible, rewards[h] + kernel[h] @ values, -np.inf)
        values = gains.max(axis=1)
        losses[h] = np.where(mdp.admissible, values[:, None] - gains, 0.0)
    seen, last = trusted_occupancy(mdp, trusted, policy), len(trusted)
    before = (seen[:-1] * losses[:last]).sum()
    lost = before + seen[-1] * losses[last]  # at (s, a) itself: what is lost elsewhere at this step is avoidable
    return seen[-1] / (mdp.states * mdp.actions + gamma * lost)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_exploring_costs_at_most_the_number_of_pairs_over_eta(scale, rng):
    world = Small(rng, SPACES["restricted"])
    agent = LOLIPOP(world.space, *per_step(world), scale=scale)
    run = omg.Run(world, IID(LABELS), agent)
    for _ in range(60):
        for context in LABELS:
            decision = agent.decide(context)
            eta = scale * math.sqrt(2.0**agent.segment.epoch)
            values = [policy_value(decision.model, policy) for policy in decision.mixture.policies]
            lost = optimal_policy(decision.model)[1] - decision.mixture.probabilities @ values
            assert lost <= world.space.states * world.space.actions / eta + 1e-12
        run.advance(1)


def per_step(world):
    """Return fits of the classes of `world`, one table for all steps."""
    rewards = {context: tables[:, 0] for context, tables in world.rewards.items()}
    return (
        oracles.OfflineFiniteRewards(rewards, horizon=HORIZON),
        oracles.OfflineFiniteDynamics(world.kernels, horizon=HORIZON, smoothing=1e-3),
    )


def test_a_fit_is_made_of_one_step_of_one_segment_and_used_in_the_next_epoch(rng):
    world, episodes = Small(rng), []
    agent = LOLIPOP(world.space, *per_step(world), scale=5.0)
    run = omg.Run(world, IID(LABELS), agent, observe=lambda round_: episodes.append(round_.played))
    epochs = {0: (0, 1), 1: (4, 2), 2: (12, 4), 3: (28, 8)}
    assert [Segment.after(first, HORIZON) for first, _ in epochs.values()] == [Segment(m, 0) for m in epochs]
    run.advance(28)
    assert agent.segment == Segment(3, 0)
    first, length = epochs[2]
    for step in range(HORIZON):
        rewards, dynamics = per_step(world)
        for episode in episodes[first + step * length : first + (step + 1) * length]:
            at = episode.context, [episode.states[step]], [episode.actions[step]]
            rewards.update(*at, [episode.rewards[step]])
            dynamics.update(*at, [episode.next_states[step]])
        for context in LABELS:
            assert np.array_equal(agent.model(context).rewards[step], rewards.predict(context))
            assert np.array_equal(agent.model(context).transitions[step], dynamics.predict(context))
    before = {context: agent.model(context) for context in LABELS}
    run.advance(8)
    assert agent.segment == Segment(3, 1)
    _, dynamics = per_step(world)
    for episode in episodes[28:36]:
        dynamics.update(episode.context, episode.states[:1], episode.actions[:1], episode.next_states[:1])
    for context in LABELS:  # what this epoch has fitted is trusted or not, and no part of the model yet
        assert np.array_equal(agent.model(context).transitions, before[context].transitions)
        fitted = trusted_transitions(world.space, dynamics.predict(context)[None], 1.0 / (5.0 * math.sqrt(8.0)))
        assert np.array_equal(agent.trusted(context), fitted)


SMALL = {"states": 3, "actions": 2, "horizon": 3, "reward_class_size": 8, "transition_class_size": 8}


@pytest.mark.parametrize("world", [LinearWorld(**SMALL, seed=1), CombinationLock(seed=1)], ids=["linear", "lock"])
def test_regret_is_sublinear(world):
    horizon = world.space.horizon
    rewards = oracles.OfflineFiniteRewards(world.reward_functions, horizon=horizon)
    dynamics = oracles.OfflineFiniteDynamics(world.transition_functions, horizon=horizon)
    agent = LOLIPOP(world.space, rewards, dynamics, scale=100.0)
    regret = omg.simulate(world, IID(world.contexts), agent, 800).regret
    assert regret[:200].sum() > 5.0
    assert regret[600:].sum() < 0.5 * regret[:200].sum()


def test_oracles_must_keep_fits_and_have_one_table_for_all_steps(rng):
    world = Small(rng)
    rewards, _ = per_step(world)
    online = oracles.FiniteDynamics(world.kernels, horizon=HORIZON)
    with pytest.raises(ValueError, match="`dynamics_oracle`"):
        LOLIPOP(world.space, rewards, online)
    with pytest.raises(ValueError, match="`reward_oracle`"):
        LOLIPOP(world.space, *world.offline()).policy("a")


@pytest.mark.parametrize(("argument", "value"), [("scale", 0.0), ("trust", -1.0), ("trust", None), ("seed", -1)])
def test_bad_arguments_are_refused_by_name(argument, value, rng):
    world = Small(rng)
    with pytest.raises(ValueError, match=f"`{argument}`"):
        LOLIPOP(world.space, *per_step(world), **{argument: value})
