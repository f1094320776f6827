"""OPO-CMDP: the step is mirror descent along action values, and the inequality of its analysis holds."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import OPOCMDP
from omg_cmdp.agents.kernels import counterfactual as compiled
from omg_cmdp.environments import CombinationLock, LinearWorld
from omg_cmdp.mdp import occupancy_measure
from omg_cmdp.mdp.bellman import value_bounds
from omg_cmdp.oracles import OfflineFiniteDynamics, OfflineFiniteRewards
from tests.agents.small_world import ACTIONS, HORIZON, LABELS, SPACES, Small
from tests.random_mdps import random_mdp

ETA = math.sqrt(8.0 * math.log(ACTIONS)) / HORIZON
"""η·√T at η₀ = 1."""


def action_values(mdp, policy, rewards, bounds):
    """Return Q (H, S, A) of `policy`, clipped, and V (H, S)."""
    values, gains = np.zeros((mdp.horizon + 1, mdp.states)), np.zeros(policy.shape)
    for h in reversed(range(mdp.horizon)):
        backup = rewards[h] + mdp.kernel[h % len(mdp.kernel)] @ values[h + 1]
        gains[h] = np.clip(backup, bounds.lows[h], bounds.highs[h])
        values[h] = (policy[h] * gains[h]).sum(axis=1)
    return gains, values[:-1]


def bonus_of(beta, visits):
    return np.minimum(1, beta / (2 * visits)) + HORIZON * np.minimum(2, beta / (2 * visits))


def stepped(policy, gains, step):
    """Return π·exp(step·Q), normalised."""
    weights = policy * np.exp(step * (gains - gains.max(axis=2, keepdims=True)))
    return weights / weights.sum(axis=2, keepdims=True)


def test_the_compiled_step_is_mirror_descent_along_action_values(rng):
    for _ in range(40):
        mdp = random_mdp(rng)
        kernel, _, start, admissible = mdp.raw
        rewards = mdp.reward_steps + rng.exponential(rng.choice([0.1, 3.0]), (mdp.horizon, mdp.states, mdp.actions))
        bounds, step = value_bounds(mdp.horizon), 10.0 ** rng.uniform(-2, 1)
        logits = rng.normal(size=(1, *rewards.shape))
        before = np.exp(logits[0]) * mdp.admissible
        before /= before.sum(axis=2, keepdims=True)
        policies, occupancies = np.empty((2, 1, *rewards.shape))
        arguments = kernel[None], rewards[None], start, admissible, *bounds, step
        compiled.improve_round(*arguments, logits, policies, occupancies)
        expected = stepped(before, action_values(mdp, before, rewards, bounds)[0], step)
        np.testing.assert_allclose(policies[0], expected, atol=1e-12)
        np.testing.assert_allclose(occupancies[0], occupancy_measure(mdp, policies[0]), atol=1e-12)
        again = np.exp(logits[0]) * mdp.admissible
        np.testing.assert_allclose(again / again.sum(axis=2, keepdims=True), policies[0], atol=1e-12)
        assert logits[0][:, mdp.admissible].max() <= 0.0


@pytest.mark.parametrize("rate", [1.0, 30.0])
def test_the_inequality_of_its_analysis_term_by_term(rate, rng):
    """Exponential weights in every (h, s), no step for the worse, optimism up to in-sample errors; and their sum."""
    world, rounds, scale = Small(rng), 80, 0.02
    settings = {"contexts": LABELS, "scale": scale, "learning_rate": rate, "episodes": rounds}
    agent = OPOCMDP(world.space, *world.offline(), **settings)
    eta, beta = rate * ETA / math.sqrt(rounds), scale * math.sqrt(rounds)
    run, bounds = omg.Run(world, IID(LABELS), agent), agent.value_bounds
    policies = {c: np.full((HORIZON, 3, ACTIONS), 1.0 / ACTIONS) for c in LABELS}
    counted = {c: np.ones((HORIZON, 3, ACTIONS)) for c in LABELS}
    earned, gained, short, allowed = (dict.fromkeys(LABELS, 0.0) for _ in range(4))
    for _ in range(rounds):
        for c in LABELS:
            model, truth, visits = agent.model(c), world.truth(c), counted[c]
            np.testing.assert_allclose(agent.visits(c), visits, atol=1e-9)
            bonus = bonus_of(beta, visits)
            gains, values = action_values(model, policies[c], model.reward_steps + bonus, bounds)
            earned[c] = earned[c] + gains
            gained[c] = gained[c] + values
            policies[c] = stepped(policies[c], gains, eta)
            np.testing.assert_allclose(agent.policy(c), policies[c], atol=1e-9)
            counted[c] = visits + occupancy_measure(model, policies[c])
            _, better = action_values(model, policies[c], model.reward_steps + bonus, bounds)
            assert (better >= values - 1e-12).all()
            squares = (truth.mdp.reward_steps - model.reward_steps) ** 2
            moved = np.abs(truth.mdp.kernel - model.kernel).sum(axis=-1) ** 2
            weights = occupancy_measure(truth.mdp, truth.best[0]) * visits
            allowed[c] += (weights * (squares + HORIZON * moved)).sum() / (2.0 * beta)
            short[c] += truth.best[1] - world.space.start @ better[0]
        run.advance(1)
    price = math.log(ACTIONS) / eta + eta * rounds * HORIZON**2 / 8.0
    for c in LABELS:
        assert (earned[c].max(axis=2) - gained[c] <= price + 1e-9).all()
        assert short[c] <= HORIZON * price + allowed[c] + 1e-9


def test_steps_of_any_size_on_one_model_improve_the_policy_to_the_optimum(rng):
    """Why an epoch may be one step."""
    mdp = random_mdp(rng, 3, 3, 4, kernel="dense", rewards="uniform")
    kernel, _, start, admissible = mdp.raw
    rewards = np.array(np.broadcast_to(mdp.reward_steps, (1, 4, 3, 3)))
    for step in (0.3, 1e3):
        logits, worth = np.zeros((1, 4, 3, 3)), []
        policies, occupancies = np.empty((2, *logits.shape))
        for _ in range(200):
            arguments = kernel[None], rewards, start, admissible, *value_bounds(4), step
            compiled.improve_round(*arguments, logits, policies, occupancies)
            worth.append(omg.policy_value(mdp, policies[0]))
        assert np.diff(worth).min() >= -1e-12
        assert worth[-1] > omg.optimal_policy(mdp)[1] - 0.1
        assert step > 1.0 or worth[0] < worth[-1] - 0.1


def test_without_a_list_an_epoch_is_one_step(rng):
    """Epochs last 1, 1, 2, 4 rounds; the fits are those of the beginning, and all rounds of an epoch are counted."""
    world = Small(rng, SPACES["restricted"])
    agent = OPOCMDP(world.space, *world.offline(), scale=0.02, learning_rate=5.0, episodes=50)
    run, visits = omg.Run(world, IID(LABELS), agent), np.ones((HORIZON, 3, ACTIONS))
    policy = np.tile(world.space.admissible / world.space.admissible.sum(axis=1, keepdims=True), (HORIZON, 1, 1))
    for length in (1, 1, 2, 4):
        model, eta = agent.model("a"), 5.0 * ETA * length / math.sqrt(50)
        rewards = model.reward_steps + bonus_of(0.02 * math.sqrt(50), visits)
        policy = stepped(policy, action_values(model, policy, rewards, agent.value_bounds)[0], eta)
        for _ in range(length):
            np.testing.assert_allclose(agent.visits("a"), visits, atol=1e-9)
            np.testing.assert_allclose(agent.policy("a"), policy, atol=1e-9)
            run.advance(1)
        visits = visits + length * occupancy_measure(model, policy)


@pytest.mark.parametrize("kind", [LinearWorld, CombinationLock])
def test_regret_is_sublinear(kind):
    world = kind(seed=1)
    horizon = world.space.horizon
    rewards = OfflineFiniteRewards(world.reward_functions, horizon=horizon)
    dynamics = OfflineFiniteDynamics(world.transition_functions, horizon=horizon)
    settings = {"contexts": world.contexts, "scale": 0.003, "learning_rate": 100.0, "episodes": 600}
    agent = OPOCMDP(world.space, rewards, dynamics, **settings)
    regret = omg.simulate(world, IID(world.contexts), agent, 600).regret
    assert regret[:100].sum() > 1.0
    assert regret[300:].sum() < 0.3 * regret[:300].sum()


@pytest.mark.parametrize(
    ("argument", "value"), [("learning_rate", 0.0), ("learning_rate", "fast"), ("scale", -1.0), ("episodes", 0)]
)
def test_bad_arguments_are_refused_by_name(argument, value):
    world = Small(np.random.default_rng(0))
    with pytest.raises(ValueError, match=f"`{argument}`"):
        OPOCMDP(world.space, *world.offline(), **{argument: value})
