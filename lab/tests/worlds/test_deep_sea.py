"""DeepSea: one dive in 2ⁿ finds the treasure, and every other look says turn back."""

import itertools

import numpy as np
import pytest

from omg_cmdp import policy_value
from omg_lab.worlds import DeepSea


def played(world, context, moves):
    """Return the value of a sequence of moves, 1 a dive, which becomes a policy by the names of the context."""
    on = world.reward_functions(context)[world.reward_index][:, 0] != world.change
    actions = np.where(np.array(moves)[:, None] == 1, ~on, on).astype(int)  # action 0 dives where `on`
    return policy_value(world.truth(context).mdp, np.eye(2)[actions])


@pytest.mark.parametrize("size", [2, 5, 10, 20])
def test_the_optimum_is_one_and_turning_back_a_hundredth(seed, size):
    world = DeepSea(states=size, seed=seed)
    for context in world.contexts:
        assert world.optimal_value(context) == pytest.approx(1.0, abs=1e-12)
        assert played(world, context, [1] * size) == pytest.approx(1.0, abs=1e-12)
        assert played(world, context, [0] * size) == pytest.approx(0.01, abs=1e-12)


def test_one_sequence_of_moves_finds_the_treasure(seed):
    """All 2ⁿ are tried; each other one earns a change for every time that it turns back, as in the original."""
    size = 5
    world = DeepSea(states=size, seed=seed)
    for moves in itertools.product((0, 1), repeat=size):
        treasure = float(all(moves))
        original = treasure - 0.01 / size * sum(moves) if not all(moves) else treasure - 0.01
        expected = original + 0.01
        assert played(world, 0, moves) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("slip", [0.05, 0.2])
def test_with_slip_the_optimum_is_a_recursion_over_columns(seed, slip):
    world = DeepSea(states=6, slip=slip, seed=seed)
    after = np.zeros(6)
    for _ in range(6):
        left, right = after[[0, 0, 1, 2, 3, 4]], after[[1, 2, 3, 4, 5, 5]]
        treasure = np.eye(6)[5]
        on, back = (1 - slip) * right + slip * left, (1 - slip) * left + slip * right
        after = np.maximum(treasure + on, 0.01 / 6 + back)
    for context in world.contexts:
        assert world.optimal_value(context) == pytest.approx(after[0], rel=1e-9)


def test_names_differ_between_contexts_and_columns(seed):
    world = DeepSea(states=20, seed=seed)
    one, other = (world.transition_functions(c)[world.transition_index][:, 0].argmax(axis=1) for c in (0, 1))
    assert (one != other).any()
    assert len({bool(after > column) for column, after in enumerate(one)}) == 2


def test_rewards_have_no_noise(rng):
    world = DeepSea()
    policy = world.truth(0).best[0]
    np.testing.assert_array_equal(world.sample(0, policy, rng).rewards, [0.0] * 9 + [1.0])
