"""One of each agent, on spaces of every kind: name -> (contexts, agent)."""

import numpy as np

from omg_cmdp import OMG, Space, oracles
from omg_cmdp.agents import (
    FALCON,
    GLMORL,
    GLMRLSVI,
    PCIGW,
    UC3RL,
    UCBVI,
    Adaptive,
    Blind,
    Boltzmann,
    Clusters,
    EpsilonGreedy,
    FastCB,
    FeelGoodThompson,
    Fixed,
    Greedy,
    Informed,
    LocalIGW,
    NormalisedIGW,
    OccupancyEntropy,
    PerBall,
    PerContext,
    PosteriorSampling,
    SquareCB,
    Uniform,
    epoch_omg,
    epoch_pc_igw,
)

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

OFFLINE = {
    "offline finite": (
        LABELS,
        lambda: (
            oracles.OfflineFiniteRewards(REWARDS, horizon=HORIZON),
            oracles.OfflineFiniteDynamics(KERNELS, horizon=HORIZON, smoothing=0.01),
        ),
    ),
    "offline linear and softmax": (
        VECTORS,
        lambda: (
            oracles.OfflineLinearRewards(**SIZE, dimension=DIMENSION),
            oracles.OfflineSoftmaxDynamics(**SIZE, dimension=DIMENSION),
        ),
    ),
}

SAMPLED = (
    "finite",
    "counts",
    "linear and softmax",
    "known by step",
    "known rewards by step, counted dynamics",
    "finite rewards, known dynamics by step",
)
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
    "feel-good Thompson": lambda *parts, **more: FeelGoodThompson(*parts, optimism=1.0, seed=3, **more),
    "PC-IGW": lambda *parts, **more: PCIGW(*parts, seed=3, **more),
    "local IGW": lambda *parts, **more: LocalIGW(*parts, 20.0, **more),
    "Boltzmann": lambda *parts, **more: Boltzmann(*parts, lambda t: 10.0 * np.sqrt(t), **more),
    "occupancy entropy": lambda *parts, **more: OccupancyEntropy(*parts, **more),
    "epsilon-greedy": lambda *parts, **more: EpsilonGreedy(*parts, **more),
    "uniform": lambda *parts, **more: Uniform(*parts, **more),
    "UC³RL": lambda *parts, contexts=LABELS, **more: UC3RL(*parts, contexts=contexts, **more),
    "RM-UCDD": lambda *parts, contexts=LABELS, **more: UC3RL(*parts, contexts=contexts, counts="policy", **more),
    "epoch OMG": lambda *parts, **more: epoch_omg(*parts, **more),
    "epoch PC-IGW": lambda *parts, **more: epoch_pc_igw(*parts, seed=3, **more),
}

OWN_STATISTICS = {
    "UCBVI, blind": (LABELS, lambda space, **more: UCBVI(space, Blind(), **more)),
    "UCBVI, per context": (LABELS, lambda space, **more: UCBVI(space, PerContext(), scale=0.1, **more)),
    "UCBVI, per vector": (VECTORS, lambda space, **more: UCBVI(space, PerContext(), **more)),
    "UCBVI, per ball": (VECTORS, lambda space, **more: UCBVI(space, PerBall(1.0), scale=0.1, **more)),
    "UCBVI, per ball of labels": (LABELS, lambda space, **more: UCBVI(space, PerBall(0.5, _apart), **more)),
    "UCBVI, clusters": (VECTORS, lambda space, **more: UCBVI(space, Clusters(VECTORS[:2]), **more)),
    "GLM-ORL": (VECTORS, lambda space, **more: GLMORL(space, dimension=DIMENSION, scale=0.1, **more)),
    "GLM-ORL, labels": (LABELS, lambda space, **more: GLMORL(space, dimension=1, features=lambda _: [1.0], **more)),
    "GLM-RLSVI": (VECTORS, lambda space, **more: GLMRLSVI(space, dimension=DIMENSION, link="linear", seed=3, **more)),
    "informed": (LABELS, lambda space, **more: Informed(space, _truth(space), **more)),
}
"""Those without oracles: contexts, and how to make one."""

ONE_STEP = {**SIZE, "horizon": 1}
BANDITS = {
    "normalised IGW": lambda space, **more: NormalisedIGW(space, *_one_step(oracles.FiniteRewards), 20.0, **more),
    "SquareCB": lambda space, **more: SquareCB(space, *_one_step(oracles.FiniteRewards), **more),
    "FALCON": lambda space, **more: FALCON(space, *_one_step(oracles.OfflineFiniteRewards), **more),
    "FastCB": lambda space, **more: FastCB(space, *_one_step(oracles.LogLossRewards), lambda t: 5.0 * t, **more),
}
"""Those for episodes of one step."""


def _one_step(kind):
    return kind(REWARDS, horizon=1), oracles.CountDynamics(**ONE_STEP)


def _truth(space):
    return lambda context: space.mdp(transitions=KERNELS[context][0], rewards=STEP_REWARDS[context])


def _apart(one, other):
    return float(one != other)


def build(kind, oracle="finite", space="plain", **more):
    """Return (contexts, agent)."""
    contexts, make = (ORACLES | OFFLINE)[oracle]
    return contexts, KINDS[kind](SPACES[space], *make(), **more)


def each_agent():
    """Return name -> (contexts, agent): every kind on the plain space, and each space and oracle with some of them."""
    few = ("adaptive", "anytime", "greedy")
    varied = [(kind, "finite", "plain", {}) for kind in KINDS]
    varied += [(kind, "finite", space, {}) for kind in few for space in list(SPACES)[1:]]
    varied += [(kind, oracle, "plain", {}) for kind in few for oracle in list(ORACLES)[1:]]
    varied += [("posterior sampling", oracle, "restricted", {}) for oracle in ORACLES if oracle in SAMPLED]
    varied += [("feel-good Thompson", "finite", "restricted, spread start", {"reward_range": (-2, 5)})]
    varied += [("float", "linear and softmax", "restricted, spread start", {})]
    varied += [(kind, "counts", "restricted", {"reward_range": (-2, 5)}) for kind in ("adaptive", "theory", "greedy")]
    rest = ("PC-IGW", "local IGW", "Boltzmann", "occupancy entropy", "epsilon-greedy", "uniform")
    varied += [(kind, "known by step", "restricted, spread start", {"reward_range": (-2, 5)}) for kind in rest]
    counting, general = ("UC³RL", "RM-UCDD"), {"contexts": None, "reachability": 1.0, "episodes": 50}
    varied += [(kind, "offline finite", space, general) for kind in counting for space in SPACES]
    varied += [(kind, "offline linear and softmax", "restricted", general) for kind in counting]
    varied += [(kind, "offline linear and softmax", "restricted", {"contexts": VECTORS}) for kind in counting]
    varied += [(kind, "known rewards by step, counted dynamics", "restricted", {}) for kind in counting]
    varied += [("epoch OMG", oracle, "restricted", {}) for oracle in OFFLINE]
    found = {}
    for kind, oracle, space, more in varied:
        name = ", ".join([kind, oracle, space, *(f"{key} {value}" for key, value in more.items())])
        found[name] = build(kind, oracle, space, **more)
    for kind, (contexts, make) in OWN_STATISTICS.items():
        for space, more in (("plain", {}), ("restricted, spread start", {"reward_range": (-2, 5)})):
            found[f"{kind}, {space}"] = contexts, make(SPACES[space], **more)
    for kind, make in BANDITS.items():
        found[kind] = LABELS, make(Space(**ONE_STEP))
        hard = Space(**ONE_STEP, start=[0.2, 0.3, 0.5], admissible=MASK)
        found[f"{kind}, restricted, spread start"] = LABELS, make(hard, reward_range=(-2, 5))
    return found
