"""UC³RL: what is kept is what the counterfactual loop of the paper computes; bonuses; the boundary."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.rivals.small_world import ACTIONS, HORIZON, LABELS, SPACES, STATES, Small
from library.tests.random_mdps import random_mdp
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Greedy
from omg_cmdp.mdp import occupancy_measure
from omg_cmdp.mdp.bellman import best_response, value_bounds
from omg_lab.rivals import UC3RL
from omg_lab.rivals.compiled import plans as compiled

BOUNDS = value_bounds(HORIZON)


def plain_loop(agent, fits, context):
    """Return W and π of the next round by the loop in the paper: what would each round have played on this context?

    `fits` are those of all rounds, the next one last.
    """
    horizon, occupancy = agent.space.horizon, 0.0
    visits = np.ones((horizon, agent.space.states, agent.space.actions))
    for number, fit in enumerate(fits, start=1):
        visits = visits + occupancy
        rewards, dynamics = (scale * math.sqrt(agent.episodes or number) for scale in agent.scale)
        bonus = np.minimum(1, rewards / (2 * visits)) + horizon * np.minimum(2, dynamics / (2 * visits))
        means, transitions = (
            oracle.forecasters._smoothing(oracle.functions(context)[int(own[0])])
            for oracle, own in zip((agent.reward_oracle, agent.dynamics_oracle), fit, strict=True)
        )
        model = agent.space.mdp(rewards=means, transitions=transitions)
        policy, _ = best_response(model, model.reward_steps + bonus, bounds=agent.value_bounds)
        occupancy = occupancy_measure(model, policy)
    return visits, policy


def fits_of(agent):
    return agent.reward_oracle.parameters(), agent.dynamics_oracle.parameters()


def watched(world, agent, rounds, rng):
    """Play, and return the fits of all rounds, the next one included."""
    fits, run = [fits_of(agent)], omg.Run(world, IID(LABELS), agent, seed=int(rng.integers(1000)))
    for _ in range(rounds):
        run.advance(1)
        fits.append(fits_of(agent))
    return fits


@pytest.mark.parametrize("episodes", [None, 60])
@pytest.mark.parametrize("space", SPACES)
def test_kept_counts_are_those_of_the_plain_loop(space, episodes, rng):
    world = Small(rng, SPACES[space])
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS, scale=(0.3, 0.1), episodes=episodes)
    fits = watched(world, agent, 60, rng)
    assert len({(*r, *p) for r, p in fits}) > 2
    for context in LABELS:
        visits, policy = plain_loop(agent, fits, context)
        np.testing.assert_allclose(agent.visits(context), visits, rtol=0, atol=1e-12)
        assert np.array_equal(agent.policy(context), policy)


def test_compiled_rounds_are_plans_and_their_occupancies(rng):
    """Any model, any bonus, any bounds: PLAN with clipped values, and OCC."""
    for _ in range(60):
        mdp = random_mdp(rng)
        bonus = rng.exponential(rng.choice([0.0, 0.1, 3.0]), (mdp.horizon, mdp.states, mdp.actions))
        rewards = mdp.reward_steps + bonus
        policies, occupancies = np.empty((2, 1, *rewards.shape))
        kernel, _, start, admissible = mdp.raw
        bounds = value_bounds(mdp.horizon, tuple(np.sort(rng.uniform(0.0, mdp.horizon, 2))))
        compiled.plan_round(kernel[None], rewards[None], start, admissible, *bounds, policies, occupancies)
        policy, _ = best_response(mdp, rewards, bounds=bounds)
        assert np.array_equal(policies[0], policy)
        np.testing.assert_allclose(occupancies[0], occupancy_measure(mdp, policy), rtol=0, atol=1e-12)


def test_contexts_do_not_mix_in_a_compiled_round(rng):
    world = Small(rng)
    models = [world.mdp(context) for context in LABELS]
    kernels = np.stack([model.raw[0] for model in models])
    rewards = np.stack([model.raw[1] for model in models])
    start, admissible = models[0].raw[2:]
    together, alone = np.empty((2, *rewards.shape)), np.empty((2, *rewards.shape))
    compiled.plan_round(kernels, rewards, start, admissible, *BOUNDS, *together)
    for i in range(len(LABELS)):
        here = slice(i, i + 1)
        compiled.plan_round(kernels[here], rewards[here], start, admissible, *BOUNDS, *alone[:, here])
    assert np.array_equal(together, alone)


def test_every_round_adds_one_visit_to_every_step(rng):
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS)
    watched(world, agent, 30, rng)
    for context in LABELS:
        np.testing.assert_allclose(agent.visits(context).sum(axis=(1, 2)), STATES * ACTIONS + 30)


@pytest.mark.parametrize(("scale", "bonus"), [((0.1, 0.02), 0.5 + HORIZON * 0.1), (9.0, 1.0 + HORIZON * 2.0)])
def test_the_bonus_before_any_data(scale, bonus):
    """W = 1 and √T = 10: b = β_R/2 + H·β_P/2, up to 1 + 2H."""
    agent = UC3RL(
        SPACES["plain"], *Small(np.random.default_rng(0)).offline(), contexts=LABELS, scale=scale, episodes=100
    )
    np.testing.assert_allclose(agent.bonus("a"), bonus)


def test_without_a_bonus_it_is_greedy(rng):
    world = Small(rng, SPACES["restricted"])
    agent, greedy = (
        UC3RL(world.space, *world.offline(), contexts=LABELS, scale=0.0),
        Greedy(world.space, *world.offline()),
    )
    ledgers = [omg.simulate(world, IID(LABELS), each, 40) for each in (agent, greedy)]
    assert np.array_equal(ledgers[0].regret, ledgers[1].regret)


def test_listing_more_contexts_changes_nothing_for_the_others(rng):
    world = Small(rng)
    few = UC3RL(world.space, *world.offline(), contexts=LABELS[:2])
    many = UC3RL(world.space, *world.offline(), contexts=LABELS)
    ledgers = [omg.simulate(world, IID(LABELS[:2]), each, 40) for each in (few, many)]
    assert np.array_equal(ledgers[0].regret, ledgers[1].regret)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("scale", value) for value in (-0.1, math.nan, (0.1, -0.1), (0.1, 0.1, 0.1), "0.1", None)),
        *(("contexts", value) for value in ((), 5, [{"a"}], ("a", "no such context"))),
        ("episodes", 0),
    ],
)
def test_bad_arguments_are_refused_by_name(argument, value):
    world = Small(np.random.default_rng(0))
    name = "context" if value == ("a", "no such context") else argument
    with pytest.raises(ValueError, match=f"`{name}`"):
        UC3RL(world.space, *world.offline(), **{"contexts": LABELS} | {argument: value})


def test_oracles_of_another_size_are_refused():
    """Even where a table would fit if it were read in another order."""
    world = Small(np.random.default_rng(0))
    space = omg.Space(states=STATES * ACTIONS, actions=1, horizon=HORIZON)
    with pytest.raises(ValueError, match=r"`reward_oracle`.*states, actions"):
        UC3RL(space, *world.offline(), contexts=LABELS)


def test_a_context_that_is_not_listed_is_refused_and_teaches_nothing(rng):
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS[:2])
    steps = np.zeros(HORIZON, dtype=int)
    before = agent.state()
    for context in ("c", ["a"]):
        with pytest.raises(ValueError, match="`context`"):
            agent.policy(context)
        episode = omg.Trajectory(context=context, states=[0, *steps], actions=steps, rewards=steps * 0.5)
        with pytest.raises(ValueError, match="`context`"):
            agent.update(episode)
    assert all(np.array_equal(array, before[name]) for name, array in agent.state().items())


@pytest.mark.parametrize("change", [{"contexts": LABELS[:3]}, {"scale": 0.2}])
def test_states_saved_with_other_settings_are_refused(change, rng):
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS)
    other = UC3RL(world.space, *world.offline(), **({"contexts": LABELS} | change))
    with pytest.raises(ValueError, match="`state`"):
        agent.load_state(other.state())
