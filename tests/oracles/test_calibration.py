"""Calibration: on data that fit the class, the uncertainty is the size of the true error, within a factor of three.

Every repetition draws a truth from a stated prior, contexts at random and pairs at random. Both sides are averaged over
repetitions, contexts and pairs: (f* - f̂)² with Bernoulli rewards, or Σ(√P* - √P̂)². Run with -s to see the ratios.
"""

import math

import numpy as np
import pytest

from omg_cmdp.oracles import (
    BasisDynamics,
    CountDynamics,
    CountRewards,
    FiniteDynamics,
    FiniteRewards,
    LinearRewards,
    MixtureDynamics,
    SoftmaxDynamics,
)

STATES, ACTIONS, HORIZON, EPISODES, REPETITIONS = 4, 2, 5, 50, 60
DIMENSION, FUNCTIONS, LABELS = 3, 16, 10
SIZE = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON}
RATES = ("guarded", "proven", "realizable")


def in_ball(rng, *shape):
    """Return vectors uniform in the unit ball."""
    vectors = rng.standard_normal((*shape, DIMENSION))
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True) * rng.random((*shape, 1)) ** (1.0 / DIMENSION)


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


# Each world returns an oracle, the truth as a function of the context, and the contexts to draw from.


def finite_rewards(rng, rate):
    """One of 16 functions, uniform in [0.35, 0.65]: so close that 250 examples do not settle which."""
    tables = rng.uniform(0.35, 0.65, (LABELS, FUNCTIONS, STATES, ACTIONS))
    return FiniteRewards(tables.__getitem__, horizon=HORIZON, rate=rate), lambda c: tables[c, 0], range(LABELS)


def finite_dynamics(rng, rate):
    """One of 16 kernels, Dirichlet(30, 30, 30, 30)."""
    tables = rng.dirichlet(np.full(STATES, 30.0), (LABELS, FUNCTIONS, STATES, ACTIONS))
    return FiniteDynamics(tables.__getitem__, horizon=HORIZON, rate=rate), lambda c: tables[c, 0], range(LABELS)


def linear_rewards(rng, rate):
    """θ uniform in the ball of radius ½, z in the unit ball."""
    theta = 0.5 * in_ball(rng, STATES, ACTIONS)
    oracle = LinearRewards(**SIZE, dimension=DIMENSION, rate=rate)
    return oracle, lambda z: 0.5 + theta @ z, in_ball(rng, LABELS)


def shared_rewards(rng, rate):
    """The same with one θ for all pairs."""
    theta, features = 0.5 * in_ball(rng), in_ball(rng, LABELS, STATES, ACTIONS)
    oracle = LinearRewards(**SIZE, dimension=DIMENSION, rate=rate, shared=True, features=features.__getitem__)
    return oracle, lambda c: 0.5 + features[c] @ theta, range(LABELS)


def count_rewards(rng, rate):
    """Mean rewards uniform in [0, 1]."""
    truth = rng.random((STATES, ACTIONS))
    return CountRewards(**SIZE, rate=rate), lambda _: truth, range(LABELS)


def count_dynamics(rng, rate):
    """Rows from Dirichlet(½, ..., ½)."""
    truth = rng.dirichlet(np.full(STATES, 0.5), (STATES, ACTIONS))
    return CountDynamics(**SIZE, rate=rate), lambda _: truth, range(LABELS)


def softmax_dynamics(rng, rate):
    """Weights N(0, 1), the prior that ridge = 1 stands for."""
    weights = rng.standard_normal((STATES, ACTIONS, STATES, DIMENSION))
    oracle = SoftmaxDynamics(**SIZE, dimension=DIMENSION, rate=rate)
    return oracle, lambda z: softmax(weights @ z), in_ball(rng, LABELS)


def mixture_dynamics(rng, rate):
    """Weights uniform on the simplex, four kernels from Dirichlet(½, ..., ½)."""
    tables = rng.dirichlet(np.full(STATES, 0.5), (LABELS, 4, STATES, ACTIONS))
    weights = rng.dirichlet(np.ones(4))
    oracle = MixtureDynamics(tables.__getitem__, horizon=HORIZON, rate=rate)
    return oracle, lambda c: np.tensordot(weights, tables[c], 1), range(LABELS)


def basis_dynamics(rng, rate):
    """Three kernels from Dirichlet(1, ..., 1), contexts uniform on the simplex."""
    tables = rng.dirichlet(np.ones(STATES), (DIMENSION, STATES, ACTIONS))
    oracle = BasisDynamics(**SIZE, bases=DIMENSION, rate=rate)
    return oracle, lambda c: np.tensordot(c, tables, 1), rng.dirichlet(np.ones(DIMENSION), LABELS)


WORLDS = {
    finite_rewards: RATES,
    finite_dynamics: RATES,
    linear_rewards: RATES,
    shared_rewards: ("guarded",),
    count_rewards: RATES,
    count_dynamics: RATES,
    softmax_dynamics: RATES,
    mixture_dynamics: ("guarded",),
    basis_dynamics: ("guarded",),
}


def teach(rng, oracle, truth, contexts):
    """Teach the oracle; return the true error and the uncertainty, each averaged over contexts and pairs."""
    for _ in range(EPISODES):
        context = contexts[rng.integers(len(contexts))]
        states, actions = rng.integers(STATES, size=HORIZON), rng.integers(ACTIONS, size=HORIZON)
        table, noise = truth(context)[states, actions], rng.random(HORIZON)
        reached = (table.cumsum(axis=-1)[:, :-1] < noise[:, None]).sum(axis=-1) if table.ndim == 2 else None
        oracle.update(context, states, actions, 1.0 * (noise < table) if reached is None else reached)
    errors, claimed = [], []
    for context in contexts:
        exact, prediction = truth(context), oracle.predict(context)
        distance = (exact - prediction) ** 2 if exact.ndim == 2 else (np.sqrt(exact) - np.sqrt(prediction)) ** 2
        errors.append(distance.sum() / (STATES * ACTIONS))
        claimed.append(oracle.uncertainty(context).mean())
    return np.mean(errors), np.mean(claimed)


@pytest.mark.parametrize(("world", "rate"), [(world, rate) for world, rates in WORLDS.items() for rate in rates])
def test_the_uncertainty_is_the_size_of_the_error(world, rate, rng):
    outcomes = np.array([teach(rng, *world(rng, rate)) for _ in range(REPETITIONS)])
    error, claimed = outcomes.mean(axis=0)
    doubt = outcomes.std(axis=0)[0] / math.sqrt(REPETITIONS) / error
    sizes = f"error {error:.1e} (±{doubt:.0%}), uncertainty {claimed:.1e}"
    print(f"\n{world.__name__:16} {rate:10} {sizes}, ratio {error / claimed:.2f}")
    assert claimed / 3.0 <= error <= 3.0 * claimed
