"""Control with contexts: they change the physics, and nothing else."""

import gymnasium
import numpy as np
import pytest

from omg_lab.worlds import cart_pole, mountain_car


def test_contexts_change_the_physics():
    """A longer pole falls more slowly, a stronger motor drives faster; 1 is Gymnasium's own."""

    def after(make, context, action, steps=4):
        env = make()
        env.reset(seed=0, options={"context": context})
        return [env.step(action)[0] for _ in range(steps)][-1]

    falls = [abs(after(cart_pole, length, 1)[1]) for length in (0.5, 1.0, 2.0)]
    assert falls[0] > falls[1] > falls[2]
    speeds = [after(mountain_car, strength, 2)[1] for strength in (0.5, 1.0, 2.0)]
    assert speeds[0] < speeds[1] < speeds[2]
    own = gymnasium.make("CartPole-v1")
    own.reset(seed=0)
    np.testing.assert_array_equal(after(cart_pole, 1.0, 1), [own.step(1)[0] for _ in range(4)][-1][2:])
    assert cart_pole(cart=True).reset(seed=0)[0].shape == (4,)


def test_a_length_must_be_positive():
    with pytest.raises(ValueError, match=r"`context` must be a positive, finite number, got 0.0"):
        cart_pole().reset(options={"context": 0.0})


def test_a_fallen_pole_has_terminated():
    env = cart_pole()
    env.reset(seed=0, options={"context": 2.0})
    while True:
        angle, terminated = (each := env.step(1))[0][0], each[2]
        assert terminated == (abs(angle) > 0.2095)
        if terminated:
            break
