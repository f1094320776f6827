"""The same arguments give the same bits, wherever the arrays lie: plans, learners, and every compiled function.

Whether a loop is vectorised can depend on how far apart its arrays are. So the heap is churned between calls, and what
learners pass to compiled functions is passed again, copied to other addresses, aligned to 8 bytes only.

Effort 60 is a thousand plans, a thousand times each: 1 000 000 solves.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import sys

import numpy as np

import omg_cmdp as omg
from library.tests.planning.heap import Heap, bits, plan_bits
from library.tests.planning.problems import combination_lock
from library.tests.random_mdps import random_mdp
from omg_cmdp import agents, oracles
from omg_cmdp.checks.agents import AgentSubject
from omg_cmdp.jit import Lazy
from omg_lab import rivals
from tests.attack.outcome import Outcome

WHOLE = 60.0
"""The effort of 1 000 plans, each made 1 000 times."""
LARGEST = 40
LABELS = ("a", "b")


def attack(effort, seed):
    """Make plans, train learners and replay compiled functions; one answer each, or it is broken."""
    outcome, rng = Outcome(), np.random.default_rng(seed)
    heap, rounds = Heap(rng), math.ceil(1000.0 * math.sqrt(effort / WHOLE))
    for number in range(rounds):
        arguments = problem(np.random.default_rng([seed, number]))
        check(outcome, f"plan {number} of seed {seed}", rounds, lambda: plan_bits(arguments, heap))  # noqa: B023
    for number in range(math.ceil(0.5 * rounds)):
        name, subject = learner(np.random.default_rng([seed, 1, number]), number)
        calls = []
        with recording(calls):
            subject.answers(subject.train(subject.fresh()))
        check(outcome, f"learner {number} of seed {seed}, {name}", 3, lambda: learner_bits(subject, heap))  # noqa: B023
        for i in rng.permutation(len(calls))[: 2 * rounds]:
            function, given = calls[i]
            what = f"{function.__module__}.{function.__name__} of learner {number} of seed {seed}, {name}"
            check(outcome, what, 5, lambda: bits_elsewhere(function, given, rng))  # noqa: B023
    heap.clear()
    return outcome


def check(outcome, what, times, answer):
    """Count it as broken if `answer()` varies."""
    found = {answer() for _ in range(times)}
    outcome.tried += times
    if len(found) > 1:
        outcome.broken.append(f"{what}: {len(found)} answers in {times} calls")


def problem(rng):
    """Return the arguments of a plan: any size up to 40, any kernel, any regulariser, warm or cold."""
    sizes = np.floor(np.exp(rng.uniform(0.0, math.log(LARGEST + 1.0), 3))).astype(int).tolist()
    if rng.random() < 0.05:
        sizes[0] = 60  # where sparse rows begin
    lock = sizes[1] > 1 and rng.random() < 0.3
    mdp = combination_lock(*sizes, slip=rng.choice([0.0, 0.05])) if lock else random_mdp(rng, *sizes)
    table = (mdp.states, mdp.actions)
    kind = rng.integers(4)
    arguments = [
        {"gamma": 10.0 ** rng.uniform(-2, 6)},
        {"gamma": 10.0 ** rng.uniform(-2, 6), "weights": 10.0 ** rng.uniform(-3, 3, table)},
        {"uncertainty": 10.0 ** rng.uniform(-10, 0, table)},
        {"uncertainty": 10.0 ** rng.uniform(-10, 0, table), "floor": 10.0 ** rng.uniform(-8, -2)},
    ][kind]
    if rng.random() < 0.3:
        arguments["start"] = omg.plan(mdp, gamma=10.0 ** rng.uniform(-2, 4))
    return {"mdp": mdp, "tolerance": 1e-8, **arguments}


def learner(rng, number):
    """Return the name of one of the learners, and a subject, with tables of any size."""
    states, actions, horizon = rng.integers([1, 1, 1], [20, 8, 8]).tolist()
    functions, dimension = rng.integers([1, 1], [40, 9]).tolist()
    size = {"states": states, "actions": actions, "horizon": horizon}
    rewards = {label: rng.random((functions, states, actions)) for label in LABELS}
    kernels = {label: rng.dirichlet(np.ones(states), (functions, states, actions)) for label in LABELS}
    vectors = tuple(v / np.linalg.norm(v) for v in rng.standard_normal((2, dimension)))
    space, featured = omg.Space(**size), {**size, "dimension": dimension}

    def finite():
        return oracles.FiniteRewards(rewards, horizon=horizon), oracles.FiniteDynamics(kernels, horizon=horizon)

    def featuring():
        return oracles.LinearRewards(**featured), oracles.SoftmaxDynamics(**featured)

    def fitted():
        return oracles.OfflineFiniteRewards(rewards, horizon=horizon), oracles.OfflineFiniteDynamics(
            kernels, horizon=horizon
        )

    def product():
        listed = {"contexts": LABELS, "states": states, "functions": functions, "horizon": horizon}
        return oracles.ProductRewards(rewards, **listed), oracles.FiniteDynamics(kernels, horizon=horizon)

    makers = {
        "OMG, finite": (LABELS, lambda: omg.OMG(space, *finite())),
        "OMG, counts": (LABELS, lambda: omg.OMG(space, oracles.CountRewards(**size), oracles.CountDynamics(**size))),
        "OMG, features": (vectors, lambda: omg.OMG(space, *featuring())),
        "OMG, fits": (LABELS, lambda: omg.OMG(space, *fitted())),
        "OMG, products": (LABELS, lambda: omg.OMG(space, *product())),
        "posterior sampling": (vectors, lambda: agents.PosteriorSampling(space, *featuring(), seed=3)),
        "uncertainty": (LABELS, lambda: omg.OMG(space, *finite(), agents.UncertaintyWeighted(kappa=1.0, floor=0.01))),
        "PC-IGW": (LABELS, lambda: rivals.PCIGW(space, *finite(), seed=3)),
        "Boltzmann": (LABELS, lambda: rivals.Boltzmann(space, *finite(), 20.0)),
        "occupancy entropy": (LABELS, lambda: rivals.OccupancyEntropy(space, *finite())),
        "UC³RL": (LABELS, lambda: rivals.UC3RL(space, *finite(), contexts=LABELS)),
        "GLM-ORL": (vectors, lambda: rivals.GLMORL(space, dimension=dimension, scale=0.1)),
        "GLM-RLSVI": (vectors, lambda: rivals.GLMRLSVI(space, dimension=dimension, link="linear", seed=3)),
        "UCBVI": (LABELS, lambda: rivals.UCBVI(space, rivals.Blind())),
    }
    name = list(makers)[number % len(makers)]
    contexts, make = makers[name]
    return name, AgentSubject(make(), contexts)


def learner_bits(subject, heap):
    """Return the bits of what the learner has learned from a few episodes, and of its policies."""
    agent = subject.fresh()
    for number in range(4):
        heap.churn()
        subject.train(agent, [number])
    return bits([part for answer in subject.answers(agent) for part in answer[3:]])


@contextlib.contextmanager
def recording(calls):
    """Append (function, copied arguments) of every call of compiled code through a stand-in."""

    class Recording(Lazy):
        def __getattr__(self, name):
            function = getattr(importlib.import_module(self._module), name)

            def recorded(*given):
                calls.append((function, [copied(each) for each in given]))
                return function(*given)

            return recorded if hasattr(function, "py_func") else function

    ours = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("omg_cmdp")]
    stand_ins = {id(each): each for names in ours for each in names.values() if type(each) is Lazy}
    for each in stand_ins.values():
        for name in [name for name in vars(each) if name != "_module"]:
            delattr(each, name)
        each.__class__ = Recording
    try:
        yield
    finally:
        for each in stand_ins.values():
            each.__class__ = Lazy


def copied(value, place=0):
    """Return a copy of an array, with its strides and flags, that begins `place` bytes into its memory."""
    if not isinstance(value, np.ndarray):
        return value
    if not value.size or min(value.strides, default=0) < 0:
        return value.copy()
    extent = sum((n - 1) * stride for n, stride in zip(value.shape, value.strides, strict=True)) + value.itemsize
    room = np.empty(extent + place + 64, np.uint8)
    copy = np.ndarray(value.shape, value.dtype, room, place, value.strides)
    copy[...] = value
    copy.flags.writeable = value.flags.writeable
    return copy


def bits_elsewhere(function, given, rng):
    """Return the bits of all arguments and results of a call, with every array somewhere else."""
    arguments = [copied(each, 8 * int(rng.integers(9))) for each in given]
    return bits([function(*arguments), *arguments])
