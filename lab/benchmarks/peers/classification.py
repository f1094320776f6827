"""Classification as a contextual bandit: of each example a learner sees only whether it was right."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from omg_cmdp import Space, Trajectory, oracles
from omg_cmdp.agents import Agent
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray


class Ours:
    """An agent of this package, on the features (n, d)."""

    def __init__(self, make: Callable[..., Agent], features: FloatArray, actions: int) -> None:
        dimension = features.shape[1]
        space = Space(states=1, actions=actions, horizon=1)
        rewards = oracles.LinearRewards(
            states=1, actions=actions, dimension=dimension, horizon=1, feature_norm=math.sqrt(dimension)
        )
        self._agent = make(space, rewards, oracles.KnownDynamics(np.ones((1, actions, 1)), horizon=1))
        self._features = features

    def probabilities(self, example: int) -> FloatArray:
        """Return the probabilities of the actions."""
        return np.asarray(self._agent.policy(self._features[example])[0, 0])

    def learn(self, example: int, action: int, reward: float) -> None:
        """Learn from one action."""
        context = self._features[example]
        self._agent.update(Trajectory(context=context, states=[0, 0], actions=[action], rewards=[reward]))


def play(learner: Ours, order: NDArray[np.int64], labels: NDArray[np.int64], uniforms: FloatArray) -> float:
    """Let the learner see the examples in `order`, one at a time, and return its mean reward."""
    total = 0.0
    for example, uniform in zip(order.tolist(), uniforms.tolist(), strict=True):
        chances = learner.probabilities(example)
        action = draw_index(chances, uniform)
        reward = float(action == labels[example])
        learner.learn(example, action, reward)
        total += reward
    return total / len(order)
