"""One of each agent, on spaces of every kind: name -> (contexts, agent)."""

import numpy as np

from omg_cmdp import OMG, Space, oracles
from omg_cmdp.agents import Adaptive, Fixed, Greedy, PosteriorSampling

STATES, ACTIONS, HORIZON, DIMENSION, FUNCTIONS = 3, 3, 4, 3, 6
SIZE = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON}
MASK = np.array([[True, True, False], [False, True, True], [True, False, False]])

LABELS = ("a", 1, ("b", 2.5))
VECTORS = tuple(np.array(v) for v in ([1.0, 0.0, 0.0], [0.0, 0.6, 0.8], [-0.5, 0.5, 0.5]))

_rng = np.random.default_rng(0)
REWARDS = {label: _rng.random((FUNCTIONS, STATES, ACTIONS)) for label in LABELS}
KERNELS = {label: _rng.dirichlet(np.ones(STATES), (FUNCTIONS, STATES, ACTIONS)) for label in LABELS}
STEP_REWARDS = {label: _rng.random((HORIZON, STATES, ACTIONS)) for label in LABELS}
STEP_KERNELS = {label: _rng.dirichlet(np.ones(STATES), (HORIZON, STATES, ACTIONS)) for label in LABELS}

SPACES = {
    "plain": Space(**SIZE),
    "restricted": Space(**SIZE, admissible=MASK),
    "spread start": Space(**SIZE, start=[0.5, 0.0, 0.5]),
    "restricted, spread start": Space(**SIZE, start=[0.2, 0.3, 0.5], admissible=MASK),
}

ORACLES = {
    "finite": (
        LABELS,
        lambda: (
            oracles.FiniteRewards(REWARDS, horizon=HORIZON),
            oracles.FiniteDynamics(KERNELS, horizon=HORIZON, smoothing=0.01),
        ),
    ),
    "counts": (LABELS, lambda: (oracles.CountRewards(**SIZE, contexts=LABELS), oracles.CountDynamics(**SIZE))),
    "linear and softmax": (
        VECTORS,
        lambda: (
            oracles.LinearRewards(**SIZE, dimension=DIMENSION),
            oracles.SoftmaxDynamics(**SIZE, dimension=DIMENSION),
        ),
    ),
    "known by step": (
        LABELS,
        lambda: (
            oracles.KnownRewards(STEP_REWARDS, horizon=HORIZON),
            oracles.KnownDynamics(STEP_KERNELS, horizon=HORIZON),
        ),
    ),
    "known rewards by step, counted dynamics": (
        LABELS,
        lambda: (oracles.KnownRewards(STEP_REWARDS, horizon=HORIZON), oracles.CountDynamics(**SIZE)),
    ),
    "finite rewards, known dynamics by step": (
        LABELS,
        lambda: (
            oracles.FiniteRewards(REWARDS, horizon=HORIZON),
            oracles.KnownDynamics(STEP_KERNELS, horizon=HORIZON),
        ),
    ),
}

SAMPLED = ("finite", "known by step", "finite rewards, known dynamics by step")
"""Those with a posterior to sample from."""

KINDS = {
    "adaptive": lambda *parts, **more: OMG(*parts, **more),
    "theory": lambda *parts, **more: OMG(*parts, "theory", episodes=1000, **more),
    "anytime": lambda *parts, **more: OMG(*parts, "anytime", delta=0.1, **more),
    "float": lambda *parts, **more: OMG(*parts, 50.0, **more),
    "callable": lambda *parts, **more: OMG(*parts, lambda t: 10.0 * np.sqrt(t), **more),
    "gamma object": lambda *parts, **more: OMG(*parts, Adaptive(kappa=1.0, floor=0.01), **more),
    "fixed object, episodes": lambda *parts, **more: OMG(*parts, Fixed(200.0), episodes=500, **more),
    "greedy": lambda *parts, **more: Greedy(*parts, **more),
    "posterior sampling": lambda *parts, **more: PosteriorSampling(*parts, seed=3, **more),
}


def build(kind, oracle="finite", space="plain", **more):
    """Return (contexts, agent)."""
    contexts, make = ORACLES[oracle]
    return contexts, KINDS[kind](SPACES[space], *make(), **more)


def each_agent():
    """Return name -> (contexts, agent): every kind on the plain space, and each space and oracle with some of them."""
    few = ("adaptive", "anytime", "greedy")
    varied = [(kind, "finite", "plain", {}) for kind in KINDS]
    varied += [(kind, "finite", space, {}) for kind in few for space in list(SPACES)[1:]]
    varied += [(kind, oracle, "plain", {}) for kind in few for oracle in list(ORACLES)[1:]]
    varied += [("posterior sampling", oracle, "restricted", {}) for oracle in ORACLES if oracle in SAMPLED]
    varied += [("float", "linear and softmax", "restricted, spread start", {})]
    varied += [(kind, "counts", "restricted", {"reward_range": (-2, 5)}) for kind in ("adaptive", "theory", "greedy")]
    found = {}
    for kind, oracle, space, more in varied:
        name = ", ".join([kind, oracle, space, *(f"{key} {value}" for key, value in more.items())])
        found[name] = build(kind, oracle, space, **more)
    return found
