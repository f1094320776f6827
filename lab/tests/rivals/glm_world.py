"""A world for tests of GLM-ORL and GLM-RLSVI, and parts of their formulas in plain numpy."""

import math

import numpy as np

from omg_cmdp import ContextualMDP, Space, TabularMDP

STATES, ACTIONS, HORIZON, DIMENSION = 4, 2, 5, 3
SPACE = Space(states=STATES, actions=ACTIONS, horizon=HORIZON)
LINKS = ("logit", "linear")
BALL = 1.75


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def direction(rng):
    vector = rng.standard_normal(DIMENSION)
    return vector / np.linalg.norm(vector)


class GLMWorld(ContextualMDP):
    """A world that keeps every assumption: contexts on the simplex, rows of bounded norm, rewards ½ + θ·x."""

    space = SPACE

    def __init__(self, rng, link, ball=BALL):
        self.link = link
        self.contexts = tuple(rng.dirichlet(np.full(DIMENSION, 0.5), size=8))
        weights = rng.standard_normal((STATES, ACTIONS, STATES, DIMENSION))
        weights *= ball / np.maximum(np.linalg.norm(weights, axis=-1, keepdims=True), ball)
        weights[:, :, -1] = 0.0
        mixed = np.moveaxis(rng.dirichlet(np.ones(STATES), (DIMENSION, STATES, ACTIONS)), 0, -1)
        self.weights = weights if link == "logit" else mixed
        self.theta = rng.uniform(-0.5, 0.5, (STATES, ACTIONS, DIMENSION))

    def mdp(self, context):
        scores = self.weights @ context
        kernel = softmax(scores) if self.link == "logit" else scores
        return TabularMDP(transitions=kernel, rewards=0.5 + self.theta @ context, horizon=HORIZON)


def printed_radius(prior, reach, alpha, count, growth, failure):
    tau = math.log(2 * math.ceil(2 * math.log(STATES * count)) * count**2 / failure)
    return prior + 8 * reach + 2 * ((4 / alpha + 8 / 3 * reach) * tau + 4 / alpha * growth)
