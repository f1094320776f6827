"""One of each agent of the library, on spaces of every kind: name -> (contexts, agent)."""

import numpy as np

from omg_cmdp import OMG, Space, oracles
from omg_cmdp.agents import EpsilonGreedy, Greedy, Informed, PosteriorSampling, Schedule, UncertaintyWeighted, Uniform

STATES, ACTIONS, HORIZON, DIMENSION, FUNCTIONS = 3, 3, 4, 3, 6
SIZE = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON}
MASK = np.array([[True, True, False], [False, True, True], [True, False, False]])

LABELS = ("a", 1, ("b", 2.5))
VECTORS = tuple(np.array(v) for v in ([1.0, 0.0, 0.0], [0.0, 0.6, 0.8], [-0.5, 0.5, 0.5]))

_rng = np.random.default_rng(0)
REWARDS = {label: _rng.random((FUNCTIONS, STATES, ACTIONS)) for label in LABELS}
TRANSITIONS = {label: _rng.dirichlet(np.ones(STATES), (FUNCTIONS, STATES, ACTIONS)) for label in LABELS}
STEP_REWARDS = {label: _rng.random((HORIZON, STATES, ACTIONS)) for label in LABELS}
STEP_TRANSITIONS = {label: _rng.dirichlet(np.ones(STATES), (HORIZON, STATES, ACTIONS)) for label in LABELS}

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
            oracles.FiniteDynamics(TRANSITIONS, horizon=HORIZON, smoothing=0.01),
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
            oracles.KnownDynamics(STEP_TRANSITIONS, horizon=HORIZON),
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
            oracles.KnownDynamics(STEP_TRANSITIONS, horizon=HORIZON),
        ),
    ),
}


def by_sign(tables):
    """Return a function of vectors with some of `tables`."""

    def of(context):
        if np.shape(context) != (DIMENSION,) or np.isnan(context).any():
            raise ValueError(f"`context` must be {DIMENSION} numbers, got {context}")
        return tables[LABELS[int(context[0] > 0.0)]]

    return of


OFFLINE = {
    "offline finite": (
        LABELS,
        lambda: (
            oracles.OfflineFiniteRewards(REWARDS, horizon=HORIZON),
            oracles.OfflineFiniteDynamics(TRANSITIONS, horizon=HORIZON, smoothing=0.01),
        ),
    ),
    "offline least squares": (
        LABELS,
        lambda: (
            oracles.OfflineFiniteRewards(REWARDS, horizon=HORIZON),
            oracles.OfflineLeastSquaresDynamics(TRANSITIONS, horizon=HORIZON),
        ),
    ),
    "offline finite of vectors": (
        VECTORS,
        lambda: (
            oracles.OfflineFiniteRewards(by_sign(REWARDS), horizon=HORIZON),
            oracles.OfflineFiniteDynamics(by_sign(TRANSITIONS), horizon=HORIZON),
        ),
    ),
}


def line(made, *arguments, **named):
    """Return how to build an agent of the class or builder `made`: these arguments come after what all agents have."""

    def build_one(*parts, **more):
        return made(*parts, *arguments, **(named | more))

    build_one.made, build_one.arguments, build_one.named = made, arguments, named
    return build_one


KINDS = {
    "adaptive": line(OMG),
    "theory": line(OMG, "theory", episodes=1000),
    "anytime": line(OMG, "anytime", delta=0.1),
    "float": line(OMG, 50.0),
    "callable": line(OMG, lambda t: 10.0 * np.sqrt(t)),
    "uncertainty weighted": line(OMG, UncertaintyWeighted(kappa=1.0, floor=0.01)),
    "schedule, episodes": line(OMG, Schedule(200.0), episodes=500),
    "greedy": line(Greedy),
    "posterior sampling": line(PosteriorSampling, seed=3),
    "epsilon-greedy": line(EpsilonGreedy),
}
"""Agents with two oracles."""

OWN_STATISTICS = {
    "informed": (LABELS, line(lambda space, **more: Informed(space, _truth(space), **more))),
    "uniform": (LABELS, line(Uniform)),
}
"""Agents without oracles: contexts, and how to build one."""

NARROW = {"reward_range": (-2, 5), "return_range": (-7.0, 3.0)}
MOVED = {"reward_range": (-2, 5)}


def _truth(space):
    return lambda context: space.mdp(transitions=TRANSITIONS[context][0], rewards=STEP_REWARDS[context])


def build(kind, oracle="finite", space="plain", *, kinds=KINDS, **more):
    """Return (contexts, agent) of one of `kinds`, by its name."""
    contexts, make = (ORACLES | OFFLINE)[oracle]
    return contexts, kinds[kind](SPACES[space], *make(), **more)


def build_each(kinds, varied, own_statistics):
    """Return name -> (contexts, agent): every kind on the plain space, as `varied` says, and those without oracles.

    `varied` has a row for each agent: kind, oracle, space, options.
    """
    found = {}
    for kind, oracle, space, more in [*((kind, "finite", "plain", {}) for kind in kinds), *varied]:
        name = ", ".join([kind, oracle, space, *(f"{key} {value}" for key, value in more.items())])
        found[name] = build(kind, oracle, space, kinds=kinds, **more)
    for kind, (contexts, make) in own_statistics.items():
        for space, more in (("plain", {}), ("restricted, spread start", NARROW)):
            found[f"{kind}, {space}"] = contexts, make(SPACES[space], **more)
    return found


def each_agent():
    """Return name -> (contexts, agent): every kind on the plain space, and each space and oracle with some of them."""
    few = ("adaptive", "anytime", "greedy")
    varied = [(kind, "finite", space, {}) for kind in few for space in list(SPACES)[1:]]
    varied += [(kind, oracle, "plain", {}) for kind in few for oracle in list(ORACLES)[1:]]
    varied += [("posterior sampling", oracle, "restricted", {}) for oracle in ORACLES]
    varied += [("float", "linear and softmax", "restricted, spread start", {})]
    varied += [(kind, "counts", "restricted", MOVED) for kind in ("adaptive", "theory", "greedy")]
    varied += [("epsilon-greedy", "known by step", "restricted, spread start", MOVED)]
    varied += [(kind, "finite", "restricted", NARROW) for kind in ("adaptive", "posterior sampling")]
    return build_each(KINDS, varied, OWN_STATISTICS)
