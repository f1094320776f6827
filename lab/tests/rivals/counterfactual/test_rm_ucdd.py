"""RM-UCDD: the warm-up, what is counted, reachability, and optimism in expectation."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.rivals.small_world import ACTIONS, HORIZON, LABELS, MASK, SPACES, STATES, Small
from omg_cmdp.adversaries import IID
from omg_cmdp.mdp import occupancy_measure
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.oracles import OfflineFiniteRewards, OfflineLeastSquaresDynamics
from omg_lab.rivals import RMUCDD
from omg_lab.worlds import CombinationLock, LinearWorld


def least_squares(world):
    """Return both of its fits, for the classes of `world`."""
    return (
        OfflineFiniteRewards(world.rewards, horizon=HORIZON),
        OfflineLeastSquaresDynamics(world.kernels, horizon=HORIZON),
    )


def test_rm_ucdd_plays_every_action_once_and_counts_choices(rng):
    world = Small(rng)
    agent = RMUCDD(world.space, *world.offline(), contexts=LABELS)
    chosen = {context: np.zeros((HORIZON, STATES, ACTIONS)) for context in LABELS}
    run = omg.Run(world, IID(LABELS), agent)
    for round_ in range(25):
        for context in LABELS:
            policy = agent.policy(context)
            if round_ < ACTIONS:
                assert (policy[..., round_] == 1.0).all()
            chosen[context] += policy
        run.advance(1)
        if round_ + 1 >= ACTIONS:
            assert all(np.array_equal(agent.visits(context), chosen[context]) for context in LABELS)


def test_a_warm_up_with_restricted_actions_covers_them_all(rng):
    world = Small(rng, SPACES["restricted"])
    agent = RMUCDD(world.space, *world.offline(), contexts=LABELS)
    run, covered = omg.Run(world, IID(LABELS), agent), np.zeros((HORIZON, STATES, ACTIONS))
    for _ in range(ACTIONS):
        covered += agent.policy("a")
        run.advance(1)
    assert np.array_equal(covered > 0.0, np.broadcast_to(MASK, covered.shape))


def least_reachability(world):
    """Return p_min: the least probability, over contexts, steps after the first and states, under any policy."""
    found = []
    for context in LABELS:
        mdp = world.mdp(context)
        for h in range(1, HORIZON):
            for s in range(STATES):
                target = np.zeros((HORIZON, STATES, ACTIONS))
                target[h, s] = -1.0
                found.append(-float(mdp.start @ best_response(mdp, target)[1][0]))
    return min(found)


@pytest.mark.parametrize("scale", [1e-4, 0.1])
def test_it_is_optimistic_in_expectation(scale, rng):
    """p_min·N is below the true occupancies of the rounds so far; so V* - Ṽ is below their errors, in every context."""
    world = Small(rng)
    p_min = least_reachability(world)
    assert 0.01 < p_min < 1.0
    settings = {"contexts": LABELS, "scale": scale / p_min, "episodes": 60}
    agent = RMUCDD(world.space, *least_squares(world), **settings)
    run, beta, gaps = omg.Run(world, IID(LABELS), agent), scale * math.sqrt(60), []
    been = {context: np.zeros((HORIZON, STATES, ACTIONS)) for context in LABELS}
    for number in range(60):
        for context in LABELS:
            truth, model = world.truth(context), agent.model(context)
            if number >= ACTIONS:
                start = np.zeros((HORIZON, STATES, ACTIONS), dtype=bool)
                start[0] = world.space.start[:, None] == 0.0
                counted = p_min * agent.visits(context)
                assert (np.where(start, 0.0, counted) <= been[context] + 1e-9).all()
                optimistic = model.reward_steps + agent.bonus(context)
                policy, values = best_response(model, optimistic, bounds=agent.value_bounds)
                assert np.array_equal(agent.policy(context), policy)
                squares = (truth.mdp.reward_steps - model.reward_steps) ** 2
                moved = np.abs(truth.mdp.transition_steps - model.transition_steps).sum(axis=-1) ** 2
                errors = (squares + HORIZON * moved) / (2.0 * beta)
                gaps.append(truth.best[1] - world.space.start @ values[0])
                weights = occupancy_measure(truth.mdp, truth.best[0]) * counted
                assert gaps[-1] <= (weights * errors).sum() + 1e-9
                assert gaps[-1] <= (been[context] * errors).sum() + 1e-9
            been[context] += occupancy_measure(truth.mdp, agent.policy(context))
        run.advance(1)
    assert scale > 1e-3 or max(gaps) > 0.0  # with next to no bonus it is not optimistic by itself


@pytest.mark.parametrize("kind", [LinearWorld, CombinationLock])
def test_regret_is_sublinear_with_its_own_fits(kind):
    world = kind(seed=1)
    horizon = world.space.horizon
    rewards = OfflineFiniteRewards(world.reward_functions, horizon=horizon)
    dynamics = OfflineLeastSquaresDynamics(world.transition_functions, horizon=horizon)
    agent = RMUCDD(world.space, rewards, dynamics, contexts=world.contexts, scale=0.003, episodes=600)
    regret = omg.simulate(world, IID(world.contexts), agent, 600).regret
    assert regret[:100].sum() > 1.0
    assert regret[300:].sum() < 0.3 * regret[:300].sum()
