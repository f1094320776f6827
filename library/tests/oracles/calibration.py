"""How large the true error is, over what `uncertainty` claims: `python -m tests.oracles.calibration` prints the table.

Every repetition draws a truth from a stated prior, and contexts at random. One pair is never visited, one in a step of
two hundred, the others equally often. Errors are (f* - f̂)² or Σ(√P* - √P̂)²; rewards are coins, or without noise.
"""

import sys

import numpy as np

from omg_cmdp.oracles import (
    BasisDynamics,
    CountDynamics,
    CountRewards,
    FiniteDynamics,
    FiniteRewards,
    LinearRewards,
    SoftmaxDynamics,
)

STATES, ACTIONS, HORIZON = 4, 2, 5
PAIRS = STATES * ACTIONS
DIMENSION, FUNCTIONS, LABELS = 3, 16, 10
SIZE = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON}
RATES = ("guarded", "proven", "realizable")

VISITS = np.full(PAIRS, (1.0 - 0.005) / (PAIRS - 2))
VISITS[:2] = 0.0, 0.005
"""The probability of each pair."""
SELDOM = slice(0, 2)
EPISODES = (10, 100, 1000)


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
    """One of 16 tables, Dirichlet(30, 30, 30, 30)."""
    tables = rng.dirichlet(np.full(STATES, 30.0), (LABELS, FUNCTIONS, STATES, ACTIONS))
    return FiniteDynamics(tables.__getitem__, horizon=HORIZON, rate=rate), lambda c: tables[c, 0], range(LABELS)


def linear_rewards(rng, rate):
    """θ uniform in the ball of radius ½, z in the unit ball."""
    theta = 0.5 * in_ball(rng, STATES, ACTIONS)
    oracle = LinearRewards(**SIZE, dimension=DIMENSION, rate=rate, intercept=False)
    return oracle, lambda z: 0.5 + theta @ z, in_ball(rng, LABELS)


def shared_rewards(rng, rate):
    """The same with one θ for all pairs."""
    theta, features = 0.5 * in_ball(rng), in_ball(rng, LABELS, STATES, ACTIONS)
    sizes = {**SIZE, "dimension": DIMENSION, "intercept": False}
    oracle = LinearRewards(**sizes, rate=rate, shared=True, features=features.__getitem__)
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
    oracle = SoftmaxDynamics(**SIZE, dimension=DIMENSION, rate=rate, intercept=False)
    return oracle, lambda z: softmax(weights @ z), in_ball(rng, LABELS)


def basis_dynamics(rng, rate):
    """Three tables from Dirichlet(1, ..., 1), contexts uniform on the simplex."""
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
    basis_dynamics: ("guarded",),
}
REWARDS = (finite_rewards, linear_rewards, shared_rewards, count_rewards)


def teach(rng, oracle, truth, contexts, episodes, noise=True):
    """Teach the oracle so many more episodes."""
    for _ in range(episodes):
        context = contexts[rng.integers(len(contexts))]
        states, actions = np.divmod(rng.choice(PAIRS, size=HORIZON, p=VISITS), ACTIONS)
        table, uniforms = truth(context)[states, actions], rng.random(HORIZON)
        if table.ndim == 2:
            outcomes = (table.cumsum(axis=-1)[:, :-1] < uniforms[:, None]).sum(axis=-1)
        else:
            outcomes = 1.0 * (uniforms < table) if noise else table
        oracle.update(context, states, actions, outcomes)


def measured(oracle, truth, contexts):
    """Return (2, pairs): the true error and the uncertainty of each pair, averaged over contexts."""
    errors, claimed = [], []
    for context in contexts:
        exact, prediction = truth(context), oracle.predict(context)
        if exact.ndim == 2:
            errors.append((exact - prediction) ** 2)
        else:
            errors.append(((np.sqrt(exact) - np.sqrt(prediction)) ** 2).sum(axis=-1))
        claimed.append(oracle.uncertainty(context))
    return np.stack([np.mean(errors, axis=0), np.mean(claimed, axis=0)]).reshape(2, PAIRS)


def calibration(rng, world, rate, marks=EPISODES, repetitions=60, noise=True):
    """Return (marks, repetitions, 2 kinds, 2): error and uncertainty, by visits and of pairs seldom visited."""
    found = np.empty((len(marks), repetitions, 2, 2))
    for repetition in range(repetitions):
        oracle, truth, contexts = world(rng, rate)
        for i, episodes in enumerate(marks):
            teach(rng, oracle, truth, contexts, episodes - oracle.episodes, noise)
            pairs = measured(oracle, truth, contexts)
            found[i, repetition] = pairs @ VISITS, pairs[:, SELDOM].mean(axis=1)
    return found


def main():
    """Print one line for each class and rate: the ratios by visits, and of pairs seldom visited."""
    rng = np.random.default_rng(0)
    for noise in (True, False):
        for world, rates in WORLDS.items():
            for rate in rates if noise else rates[:1]:
                if noise or world in REWARDS:
                    found = calibration(rng, world, rate, noise=noise).mean(axis=1)  # (marks, kinds, 2)
                    ratios = found[:, :, 0] / found[:, :, 1]
                    cells = [f"{ratio:.2f}" for ratio in ratios.T.reshape(-1)]
                    name = f"{world.__name__}{'' if noise else ', no noise'}"
                    sys.stdout.write(" | ".join([f"{name:28}", f"{rate:10}", *cells]) + "\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
