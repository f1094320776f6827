"""Agents by cells that are told rewards or transitions: what is known is not estimated, and no bonus is paid for it."""

import numpy as np
import pytest

from omg_cmdp import ContextualMDP, Space, Trajectory, adversaries, optimal_policy, simulate
from omg_lab.rivals import MVP, RLSVI, UCBVI, UCBVIBF, CoverRmax, PerContext

STATES, ACTIONS, HORIZON = 3, 2, 4
SPACE = Space(states=STATES, actions=ACTIONS, horizon=HORIZON, start=np.full(STATES, 1 / STATES))
KINDS = {UCBVI: {"scale": 1.0}, UCBVIBF: {"scale": 1.0}, MVP: {"scale": 1.0}, RLSVI: {"scale": 1.0}, CoverRmax: {}}
PARTS = "rewards", "dynamics"


class Rooms(ContextualMDP):
    """Random tables in each of three contexts; deterministic ones if asked for."""

    contexts = ("a", "b", "c")
    space = SPACE

    def __init__(self, rng, certain=False):
        rows = rng.dirichlet(np.ones(STATES), (3, STATES, ACTIONS))
        rows = np.eye(STATES)[rows.argmax(axis=-1)] if certain else rows
        rewards = rng.random((3, STATES, ACTIONS))
        self._mdps = {
            context: SPACE.mdp(transitions=rows[place], rewards=rewards[place])
            for place, context in enumerate(self.contexts)
        }

    def mdp(self, context):
        return self._mdps[context]


def agent_of(kind, world, known=(), **options):
    return kind.for_world(world, known=known, **KINDS[kind] | options)


def everywhere(world, context):
    """Return episodes that visit every pair, with the mean rewards, in a deterministic world."""
    mdp = world.mdp(context)
    for start in range(STATES):
        for action in range(ACTIONS):
            states, actions = [start], []
            for step in range(HORIZON):
                actions.append(action if step == 0 else step % ACTIONS)
                states.append(int(mdp.transitions[states[-1], actions[-1]].argmax()))
            rewards = mdp.rewards[states[:-1], actions]
            yield Trajectory(context=context, states=states, actions=actions, rewards=rewards)


@pytest.mark.parametrize("kind", KINDS)
def test_who_knows_everything_loses_nothing(kind, rng):
    world = Rooms(rng)
    agent = agent_of(kind, world, PARTS)
    ledger = simulate(world, adversaries.IID(world.contexts), agent, episodes=20)
    np.testing.assert_allclose(ledger.regret, 0.0, atol=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not CoverRmax])
@pytest.mark.parametrize("known", PARTS)
def test_what_is_known_is_in_the_model_of_every_context(kind, known, rng):
    world = Rooms(rng)
    agent, plain = agent_of(kind, world, (known,)), agent_of(kind, world)
    for context in world.contexts:
        model, other, truth = agent.model(context), plain.model(context), world.mdp(context)
        parts = {"rewards": "rewards", "dynamics": "transitions"}
        np.testing.assert_array_equal(getattr(model, parts[known]), getattr(truth, parts[known]))
        (unknown,) = set(PARTS) - {known}
        np.testing.assert_array_equal(getattr(model, parts[unknown]), getattr(other, parts[unknown]))


def test_the_width_is_that_of_what_is_not_known(rng):
    """Of r + V: H in all, of which r has 1; and never more than an episode can earn."""
    world = Rooms(rng)
    widths = {known: agent_of(UCBVI, world, known).width for known in ((), PARTS[:1], PARTS[1:], PARTS)}
    assert list(widths.values()) == [HORIZON, HORIZON - 1, 1, 0]
    narrow = UCBVI(SPACE, PerContext(), return_range=(0.0, 0.5), known_transitions=lambda _: None)
    assert narrow.width == 0.5
    bonuses = [agent_of(UCBVI, world, known).bonus(np.array([4.0])) for known in ((), PARTS[1:])]
    np.testing.assert_allclose(bonuses[0], HORIZON * bonuses[1])


@pytest.mark.parametrize("kind", [UCBVIBF, MVP])
@pytest.mark.parametrize("known", PARTS)
def test_knowing_more_makes_less_optimistic_and_not_pessimistic(kind, known, rng):
    """Where the estimates are the truth, only bonuses differ: those of what is known are gone."""
    world = Rooms(rng, certain=True)
    agent, plain = agent_of(kind, world, (known,), scale=0.01), agent_of(kind, world, scale=0.01)
    for context in world.contexts:
        for episode in [*everywhere(world, context)] * 64:
            agent.update(episode)
            plain.update(episode)
        values, others = agent.optimistic_values(context), plain.optimistic_values(context)
        assert (values <= others + 1e-12).all()
        assert values[0].sum() < others[0].sum()
        assert values[0].mean() >= optimal_policy(world.mdp(context))[1] - 1e-12


@pytest.mark.parametrize("known", PARTS)
def test_the_theorys_bonus_stays_optimistic(known, rng):
    """V_0 >= V* in all episodes of a run but for a share δ of the runs."""
    failures, runs = 0, 12
    for _ in range(runs):
        world = Rooms(rng)
        agent = agent_of(UCBVI, world, (known,), delta=0.1)
        for _ in range(30):
            context = "a"
            model, gains = agent.model(context), agent.bonus(agent.tally(context).counts.sum(axis=2))
            value = np.zeros(STATES)
            for h in reversed(range(HORIZON)):
                value = np.minimum((model.rewards + gains + model.transitions @ value).max(axis=1), HORIZON - h)
            if value.mean() < optimal_policy(world.mdp(context))[1] - 1e-12:
                failures += 1
                break
            simulate(world, adversaries.Sequence([context]), agent, episodes=1, seed=int(rng.integers(2**31)))
    assert failures <= 0.1 * runs


def test_unknown_pairs_of_rmax_lead_where_they_lead(rng):
    world = Rooms(rng)
    agent, truth = agent_of(CoverRmax, world, PARTS[1:], visits=1), world.mdp("a")
    np.testing.assert_array_equal(agent.model("a").transitions, truth.transitions)
    np.testing.assert_array_equal(agent.model("a").rewards, 1.0)


def test_a_part_that_nobody_can_know_is_refused(rng):
    with pytest.raises(ValueError, match="known"):
        UCBVI.for_world(Rooms(rng), known=("support",))
