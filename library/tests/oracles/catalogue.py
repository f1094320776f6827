"""One of each oracle, for the tests that run over all of them: name -> (contexts for it, how to build it).

An oracle goes into `RATED` if it has the argument `rate`, built by (horizon, rate); else it is built by (horizon), and
goes into `OFFLINE` if it fits all past episodes, into `EPOCHS` if it is an `EpochRewards`, and into
`UNRATED` otherwise, whether it is made of other oracles or not.
"""

import math

import numpy as np
import pytest

from omg_cmdp import oracles

STATES, ACTIONS, DIMENSION, FUNCTIONS = 3, 2, 3, 16
RATES = ("guarded", "proven", "realizable")

LABELS = (0, 1, "two")
VECTORS = tuple(np.array(v) for v in ([1.0, 0.0, 0.0], [0.0, 0.6, 0.8], [-0.5, 0.5, 0.5]))
SIMPLEX = tuple(np.array(v) for v in ([1.0, 0.0, 0.0], [0.2, 0.5, 0.3], [0.0, 0.5, 0.5]))

_generator = np.random.default_rng(0)
REWARDS = {label: _generator.random((FUNCTIONS, STATES, ACTIONS)) for label in LABELS}
TRANSITIONS = {label: _generator.dirichlet(np.ones(STATES), (FUNCTIONS, STATES, ACTIONS)) for label in LABELS}
ORDER = {label: tables.argsort(axis=-1).argsort(axis=-1) for label, tables in TRANSITIONS.items()}
SPARSE = {  # eight tables that are certain, and eight that exclude one next state
    label: np.concatenate([(order[:8] == 2).astype(float), (order[8:] > 0) / 2.0]) for label, order in ORDER.items()
}
SIZE = {"states": STATES, "actions": ACTIONS}
SUPPORT = np.ones((STATES, ACTIONS, STATES), dtype=bool)
SUPPORT[0, 0, 1] = SUPPORT[2, 1, 0] = False


def shared_features(context):
    """Features of (context, s, a), of norm at most 1."""
    table = np.sin(np.arange(STATES * ACTIONS * DIMENSION)).reshape(STATES, ACTIONS, DIMENSION)
    return table * np.reshape(context, DIMENSION) / math.sqrt(DIMENSION)


RATED = {
    "finite rewards": (LABELS, lambda h, r: oracles.FiniteRewards(REWARDS, horizon=h, rate=r)),
    "finite dynamics": (LABELS, lambda h, r: oracles.FiniteDynamics(TRANSITIONS, horizon=h, rate=r)),
    "sparse dynamics": (LABELS, lambda h, r: oracles.FiniteDynamics(SPARSE, horizon=h, rate=r)),
    "smoothed dynamics": (
        LABELS,
        lambda h, r: oracles.FiniteDynamics(TRANSITIONS, horizon=h, rate=r, smoothing=0.01, support=SUPPORT),
    ),
    "product rewards": (
        LABELS,
        lambda h, r: oracles.ProductRewards(
            REWARDS, contexts=LABELS, states=STATES, functions=FUNCTIONS, horizon=h, rate=r
        ),
    ),
    "reward counts": (LABELS, lambda h, r: oracles.CountRewards(**SIZE, horizon=h, rate=r)),
    "reward counts by context": (
        LABELS,
        lambda h, r: oracles.CountRewards(**SIZE, horizon=h, rate=r, contexts=LABELS),
    ),
    "transition counts": (LABELS, lambda h, r: oracles.CountDynamics(**SIZE, horizon=h, rate=r, support=SUPPORT)),
    "transition counts by context": (
        LABELS,
        lambda h, r: oracles.CountDynamics(**SIZE, horizon=h, rate=r, contexts=LABELS),
    ),
    "linear": (VECTORS, lambda h, r: oracles.LinearRewards(**SIZE, dimension=DIMENSION, horizon=h, rate=r)),
    "shared linear": (
        VECTORS,
        lambda h, r: oracles.LinearRewards(
            **SIZE, dimension=DIMENSION, horizon=h, rate=r, features=shared_features, shared=True
        ),
    ),
    "softmax": (VECTORS, lambda h, r: oracles.SoftmaxDynamics(**SIZE, dimension=DIMENSION, horizon=h, rate=r)),
    "sparse softmax": (
        VECTORS,
        lambda h, r: oracles.SoftmaxDynamics(
            **SIZE, dimension=DIMENSION, horizon=h, rate=r, support=SUPPORT, intercept=False
        ),
    ),
    "basis": (SIMPLEX, lambda h, r: oracles.BasisDynamics(**SIZE, bases=DIMENSION, horizon=h, rate=r)),
}


def _aggregate_rewards(horizon):
    experts = [RATED[name][1](horizon, "guarded") for name in ("finite rewards", "reward counts by context")]
    return oracles.AggregateRewards([*experts, known_rewards(horizon)], horizon=horizon)


def _aggregate_dynamics(horizon):
    experts = [RATED[name][1](horizon, "guarded") for name in ("finite dynamics", "transition counts")]
    return oracles.AggregateDynamics(experts, horizon=horizon)


def _rival_simulators(horizon):
    tables = [{label: tables[i] for label, tables in SPARSE.items()} for i in (0, 1, 8)]
    known = [oracles.KnownDynamics(each, horizon=horizon) for each in tables]
    return oracles.AggregateDynamics(known, horizon=horizon)


def known_rewards(horizon):
    return oracles.KnownRewards({label: tables[0] for label, tables in REWARDS.items()}, horizon=horizon)


def known_dynamics(horizon):
    return oracles.KnownDynamics({label: tables[0] for label, tables in TRANSITIONS.items()}, horizon=horizon)


UNRATED = {
    "known rewards": (LABELS, known_rewards),
    "known dynamics": (LABELS, known_dynamics),
    "aggregate rewards": (LABELS, _aggregate_rewards),
    "aggregate dynamics": (LABELS, _aggregate_dynamics),
    "aggregate of known dynamics": (LABELS, _rival_simulators),
    "stepwise rewards": (
        LABELS,
        lambda h: oracles.StepwiseRewards([oracles.FiniteRewards(REWARDS, horizon=1) for _ in range(h)]),
    ),
    "stepwise dynamics": (
        LABELS,
        lambda h: oracles.StepwiseDynamics([oracles.CountDynamics(**SIZE, horizon=1) for _ in range(h)]),
    ),
    "stepwise sparse dynamics": (
        LABELS,
        lambda h: oracles.StepwiseDynamics([oracles.FiniteDynamics(SPARSE, horizon=1) for _ in range(h)]),
    ),
    "copies of finite rewards": (
        LABELS,
        lambda h: oracles.CopiesRewards(RATED["finite rewards"][1](h, "guarded"), delay=2),
    ),
    "copies of transition counts": (
        LABELS,
        lambda h: oracles.CopiesDynamics(RATED["transition counts"][1](h, "guarded"), delay=2),
    ),
    "finite rewards, late": (
        LABELS,
        lambda h: oracles.FiniteRewards(REWARDS, horizon=h, rate="proven", delay=4),
    ),
    "finite dynamics, late": (
        LABELS,
        lambda h: oracles.FiniteDynamics(TRANSITIONS, horizon=h, rate="proven", delay=4, smoothing=0.01),
    ),
    "linear, late": (
        VECTORS,
        lambda h: oracles.LinearRewards(**SIZE, dimension=DIMENSION, horizon=h, rate="proven", delay=4),
    ),
    "log-loss finite rewards": (LABELS, lambda h: oracles.LogLossRewards(REWARDS, horizon=h)),
    "log-loss finite rewards, by Bayes' rule": (
        LABELS,
        lambda h: oracles.LogLossRewards(REWARDS, horizon=h, rate="realizable"),
    ),
    "step-dependent finite rewards": (
        LABELS,
        lambda h: oracles.FiniteRewards(
            lambda context: np.stack([REWARDS[context]] * h, axis=1) ** np.arange(1, h + 1)[:, None, None], horizon=h
        ),
    ),
}

OFFLINE = {
    "offline finite rewards": (LABELS, lambda h: oracles.OfflineFiniteRewards(REWARDS, horizon=h)),
    "offline finite dynamics": (
        LABELS,
        lambda h: oracles.OfflineFiniteDynamics(TRANSITIONS, horizon=h, smoothing=0.01, support=SUPPORT),
    ),
    "offline least squares dynamics": (LABELS, lambda h: oracles.OfflineLeastSquaresDynamics(TRANSITIONS, horizon=h)),
}

EPOCHS = {
    "epochs of known rewards": (LABELS, lambda h: oracles.EpochRewards(known_rewards(h))),
    "epochs of stepwise rewards": (LABELS, lambda h: oracles.EpochRewards(UNRATED["stepwise rewards"][1](h))),
    "epochs of least squares": (LABELS, lambda h: oracles.EpochRewards(OFFLINE["offline finite rewards"][1](h))),
}

EVERY = {
    f"{name}, {rate}": (contexts, lambda h, build=build, rate=rate: build(h, rate))
    for name, (contexts, build) in RATED.items()
    for rate in RATES
}
EVERY |= UNRATED | OFFLINE | EPOCHS
"""Every class and rate, built by (horizon)."""

# A class has its usual rate and, of two classes in three, one of the others; the rest is for `make test-all`.
QUICK = {f"{name}, {rate}" for number, name in enumerate(RATED) for rate in ("guarded", RATES[number % 3])}
SAMPLED = [
    pytest.param(name, marks=pytest.mark.slow if name.endswith(RATES) and name not in QUICK else ()) for name in EVERY
]
"""The parameters of tests that take some time for each oracle."""


def build_oracle(name, horizon):
    """Return (contexts, oracle) by its name."""
    contexts, build = EVERY[name]
    return contexts, build(horizon)


def each_oracle(horizon):
    """Return name -> (contexts, oracle), for every class and rate."""
    return {name: build_oracle(name, horizon) for name in EVERY}
