"""Random games for oracles: one of each class that has a bound, with classes of functions that may exclude much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp import oracles


class Size(NamedTuple):
    """What a game is drawn for."""

    states: int
    actions: int
    horizon: int
    contexts: int


class Game(NamedTuple):
    """An oracle, contexts for it, and for each of these the tables (N, ...) of some functions of its class."""

    oracle: Any
    contexts: Any
    members: Any = None


Maker = Callable[[np.random.Generator, Size], Game]


def transitions(rng: np.random.Generator, size: Size, *shape: int) -> Any:
    """Return (*shape, S, A, S): dense rows, rows with zeros, or certainties; one kind, or each row its own."""
    rows = rng.dirichlet(np.full(size.states, rng.choice([0.01, 0.3, 1.0])), (*shape, size.states, size.actions))
    least = rng.choice([0.0, 0.4, 1.0, rng.random()]) * rows.max(axis=-1, keepdims=True)
    rows = np.where(rows >= least, rows, 0.0)
    return rows / rows.sum(axis=-1, keepdims=True)


def mask(rng: np.random.Generator, size: Size) -> Any:
    """Return a support, and often one that holds everything."""
    return transitions(rng, size) > 0.0 if rng.random() < 0.5 else None


def rate(rng: np.random.Generator) -> str:
    """Return one of the two rates that have a bound."""
    return str(rng.choice(["guarded", "proven"]))


def functions(rng: np.random.Generator, size: Size, *shape: int) -> Any:
    """Return (*shape, S, A) in [0, 1]: any numbers, or zeros and ones."""
    tables = rng.random((*shape, size.states, size.actions))
    return np.round(tables) if rng.random() < 0.5 else tables


def finite_dynamics(rng: np.random.Generator, size: Size, *steps: int) -> Game:
    tables = transitions(rng, size, size.contexts, rng.integers(1, 7), *steps)
    options = {"smoothing": rng.choice([0.01, 0.5]), "support": mask(rng, size)} if rng.random() < 0.3 else {}
    oracle = oracles.FiniteDynamics(lambda c: tables[c], horizon=size.horizon, rate=rate(rng), **options)
    return Game(oracle, range(size.contexts), tables)


def step_dependent_dynamics(rng: np.random.Generator, size: Size) -> Game:
    return finite_dynamics(rng, size, size.horizon)


def basis_dynamics(rng: np.random.Generator, size: Size) -> Game:
    support, count = mask(rng, size), int(rng.integers(1, 4))
    contexts = rng.dirichlet(np.full(count, 0.5), size.contexts)
    bases = transitions(rng, size, 40, count) * (1.0 if support is None else support)
    empty = bases.sum(axis=-1, keepdims=True) == 0.0
    bases = np.where(empty, True if support is None else support, bases)
    bases /= bases.sum(axis=-1, keepdims=True)
    sizes = {"states": size.states, "actions": size.actions, "bases": count, "horizon": size.horizon}
    oracle = oracles.BasisDynamics(**sizes, rate=rate(rng), support=support)
    return Game(oracle, contexts, np.einsum("cd,mdsat->cmsat", contexts, bases))


def softmax_dynamics(rng: np.random.Generator, size: Size) -> Game:
    base, contexts = transitions(rng, size), rng.uniform(-0.7, 0.7, (size.contexts, 2))
    weights = rng.standard_normal((40, size.states, size.actions, size.states, 2))
    weights /= np.sqrt((weights**2).sum(axis=(-2, -1), keepdims=True))  # in the ball of radius 3, for each pair
    members = base * np.exp(np.einsum("cd,msatd->cmsat", contexts, 3.0 * rng.random() * weights))
    sizes = {"states": size.states, "actions": size.actions, "dimension": 2, "horizon": size.horizon}
    oracle = oracles.SoftmaxDynamics(**sizes, rate=rate(rng), support=base > 0.0, base=base)
    return Game(oracle, contexts, members / members.sum(axis=-1, keepdims=True))


def count_dynamics(rng: np.random.Generator, size: Size) -> Game:
    sizes = {"states": size.states, "actions": size.actions, "horizon": size.horizon}
    contexts = range(size.contexts) if rng.random() < 0.5 else None
    options = {"support": mask(rng, size), "prior": rng.choice([0.5, 1.0]), "contexts": contexts}
    return Game(oracles.CountDynamics(**sizes, rate=rate(rng), **options), range(size.contexts))


def aggregate_dynamics(rng: np.random.Generator, size: Size) -> Game:
    """Known tables only, or beside other classes; perhaps an aggregate in an aggregate."""
    tables = transitions(rng, size, size.contexts, rng.integers(2, 5))
    known = [oracles.KnownDynamics(lambda c, i=i: tables[c, i], horizon=size.horizon) for i in range(tables.shape[1])]
    others = [finite_dynamics, count_dynamics] if rng.random() < 0.5 else []
    experts = [*known, *(make(rng, size).oracle for make in others)]
    if rng.random() < 0.3:
        experts = [oracles.AggregateDynamics(experts[:2], horizon=size.horizon), *experts[2:]]
    return Game(oracles.AggregateDynamics(experts, horizon=size.horizon), range(size.contexts), tables)


def stepwise_dynamics(rng: np.random.Generator, size: Size) -> Game:
    makers, one = (finite_dynamics, count_dynamics, aggregate_dynamics), size._replace(horizon=1)
    parts = [makers[rng.integers(3)](rng, one).oracle for _ in range(size.horizon)]
    return Game(oracles.StepwiseDynamics(parts), range(size.contexts))


def finite_rewards(rng: np.random.Generator, size: Size) -> Game:
    tables = functions(rng, size, size.contexts, rng.integers(1, 7))
    oracle = oracles.FiniteRewards(lambda c: tables[c], horizon=size.horizon, rate=rate(rng))
    return Game(oracle, range(size.contexts), tables)


def product_rewards(rng: np.random.Generator, size: Size) -> Game:
    tables, contexts = functions(rng, size, size.contexts, rng.integers(1, 7)), range(size.contexts)
    sizes = {"states": size.states, "functions": tables.shape[1], "horizon": size.horizon, "contexts": contexts}
    return Game(oracles.ProductRewards(lambda c: tables[c], **sizes, rate=rate(rng)), contexts, tables)


def count_rewards(rng: np.random.Generator, size: Size) -> Game:
    sizes = {"states": size.states, "actions": size.actions, "horizon": size.horizon}
    return Game(oracles.CountRewards(**sizes, rate=rate(rng)), range(size.contexts))


def linear_rewards(rng: np.random.Generator, size: Size) -> Game:
    sizes = {"states": size.states, "actions": size.actions, "horizon": size.horizon, "dimension": 2}
    return Game(oracles.LinearRewards(**sizes, rate=rate(rng)), rng.uniform(-0.7, 0.7, (size.contexts, 2)))


def aggregate_rewards(rng: np.random.Generator, size: Size) -> Game:
    table = functions(rng, size)
    experts = [make(rng, size).oracle for make in (finite_rewards, count_rewards)]
    known = oracles.KnownRewards(table, horizon=size.horizon)
    members = np.broadcast_to(table, (size.contexts, 1, *table.shape))
    return Game(oracles.AggregateRewards([*experts, known], horizon=size.horizon), range(size.contexts), members)


def stepwise_rewards(rng: np.random.Generator, size: Size) -> Game:
    parts = [finite_rewards(rng, size._replace(horizon=1)).oracle for _ in range(size.horizon)]
    return Game(oracles.StepwiseRewards(parts), range(size.contexts))


MAKERS: tuple[Maker, ...] = (
    finite_dynamics,
    step_dependent_dynamics,
    basis_dynamics,
    softmax_dynamics,
    count_dynamics,
    aggregate_dynamics,
    stepwise_dynamics,
    finite_rewards,
    product_rewards,
    count_rewards,
    linear_rewards,
    aggregate_rewards,
    stepwise_rewards,
)
