import numpy as np
import pytest

from omg_lab.worlds import Arms


@pytest.mark.parametrize("actions", [2, 10, 50])
def test_one_arm_is_good_and_the_gap_is_two_fifths(seed, actions):
    world = Arms(actions=actions, seed=seed)
    for context in world.contexts:
        rewards = world.mdp(context).rewards[0]
        assert rewards.argmax() == world.best_arms[context]
        np.testing.assert_array_equal(np.sort(rewards), [0.5] * (actions - 1) + [0.9])
        uniform = np.full((1, 1, actions), 1.0 / actions)
        assert world.truth(context).regret(uniform) == pytest.approx(0.4 * (actions - 1) / actions, rel=1e-12)


def test_contexts_have_different_arms_while_there_are_enough(seed):
    assert len(set(Arms(context_count=10, seed=seed).best_arms)) == 10
    assert len(set(Arms(context_count=15, seed=seed).best_arms)) == 10


def test_with_the_dial_the_good_arm_stays_the_best(seed):
    world = Arms(seed=seed, misspecification=0.9)
    for context in world.contexts:
        assert world.mdp(context).rewards.argmax() == world.best_arms[context]
