"""One of each agent, on spaces of every kind: name -> (contexts, agent)."""

import numpy as np

from omg_cmdp import OMG, Space, oracles
from omg_cmdp.agents import EpsilonGreedy, Greedy, Informed, PosteriorSampling, Schedule, UncertaintyWeighted, Uniform
from omg_lab.rivals import (
    FALCON,
    GLMORL,
    GLMRLSVI,
    ILTCB,
    OLIVE,
    PCIGW,
    RLSVI,
    RMUCDD,
    UC3RL,
    UCBVI,
    UCBVIBF,
    UCCB,
    VIDS,
    AdaCB,
    Blind,
    Boltzmann,
    Clusters,
    CoverRmax,
    EliminatingSquareCB,
    EpochGreedy,
    ERMReduction,
    FastCB,
    FeelGoodThompson,
    KWIKRmax,
    LinMED,
    LocalIGW,
    NormalisedIGW,
    OccupancyEntropy,
    OnlineCover,
    PerBall,
    PerContext,
    RegCB,
    RegressorElimination,
    RegularisedIDS,
    SquareCB,
    WitnessRank,
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
    "offline least squares": (
        LABELS,
        lambda: (
            oracles.OfflineFiniteRewards(REWARDS, horizon=HORIZON),
            oracles.OfflineLeastSquaresDynamics(KERNELS, horizon=HORIZON),
        ),
    ),
    "offline linear": (
        VECTORS,
        lambda: (
            oracles.OfflineLinearRewards(**SIZE, dimension=DIMENSION),
            oracles.OfflineLinearDynamics(**SIZE, dimension=DIMENSION),
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


def line(made, *arguments, **named):
    """Return how to build an agent of the class or builder `made`: these arguments come after what all agents have."""

    def build_one(*parts, **more):
        return made(*parts, *arguments, **(named | more))

    build_one.made = made
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
    "feel-good Thompson": line(FeelGoodThompson, optimism=1.0, seed=3),
    "PC-IGW": line(PCIGW, seed=3),
    "local IGW": line(LocalIGW, 20.0),
    "Boltzmann": line(Boltzmann, lambda t: 10.0 * np.sqrt(t)),
    "occupancy entropy": line(OccupancyEntropy),
    "epsilon-greedy": line(EpsilonGreedy),
    "uniform": line(Uniform),
    "UC³RL": line(UC3RL, contexts=LABELS),
    "VIDS": line(VIDS, draws=6, seed=3),
    "regularised IDS": line(RegularisedIDS, lambda t: 0.5 * np.sqrt(t), draws=6, seed=3),
    "RM-UCDD": line(RMUCDD, contexts=LABELS, reachability=0.5),
    "reduction to offline regression": line(ERMReduction, samples=1),
    "epoch OMG": line(epoch_omg),
    "epoch PC-IGW": line(epoch_pc_igw, seed=3),
    "OLIVE": line(OLIVE, evaluations=2),
    "witness rank": line(WitnessRank, evaluations=2),
}
"""Those with two oracles."""

OWN_STATISTICS = {
    "UCBVI, blind": (LABELS, line(UCBVI, Blind())),
    "UCBVI, per context": (LABELS, line(UCBVI, PerContext(), scale=0.1)),
    "UCBVI, per vector": (VECTORS, line(UCBVI, PerContext())),
    "UCBVI, per ball": (VECTORS, line(UCBVI, PerBall(1.0), scale=0.1)),
    "UCBVI, per ball of labels": (LABELS, line(UCBVI, PerBall(0.5, lambda one, other: float(one != other)))),
    "UCBVI, clusters": (VECTORS, line(UCBVI, Clusters(VECTORS[:2]))),
    "Cover-Rmax, per ball": (VECTORS, line(CoverRmax, PerBall(1.0), visits=2)),
    "KWIK-Rmax": (VECTORS, line(KWIKRmax, dimension=DIMENSION, threshold=0.5)),
    "KWIK-Rmax, labels": (LABELS, line(KWIKRmax, dimension=1, features=lambda _: [1.0])),
    "GLM-ORL": (VECTORS, line(GLMORL, dimension=DIMENSION, scale=0.1)),
    "GLM-ORL, labels": (LABELS, line(GLMORL, dimension=1, features=lambda _: [1.0])),
    "GLM-RLSVI": (VECTORS, line(GLMRLSVI, dimension=DIMENSION, link="linear", seed=3)),
    "UCBVI-BF": (LABELS, line(UCBVIBF, PerContext(), scale=0.1)),
    "RLSVI": (LABELS, line(RLSVI, PerContext(), scale=0.1, seed=3)),
    "informed": (LABELS, line(lambda space, **more: Informed(space, _truth(space), **more))),
}
"""Those without oracles: contexts, and how to build one."""

ONE_STEP = {**SIZE, "horizon": 1}
BANDITS = {
    "normalised IGW": (oracles.FiniteRewards, line(NormalisedIGW, 20.0)),
    "SquareCB": (oracles.FiniteRewards, line(SquareCB)),
    "FALCON": (oracles.OfflineFiniteRewards, line(FALCON)),
    "FastCB": (oracles.LogLossRewards, line(FastCB, lambda t: 5.0 * t)),
    "AdaCB": (oracles.OfflineFiniteRewards, line(AdaCB, 20.0)),
    "eliminating SquareCB": (oracles.FiniteRewards, line(EliminatingSquareCB, 20.0, 0.5)),
    "Epoch-Greedy": (oracles.OfflineFiniteRewards, line(EpochGreedy)),
    "ILTCB": (oracles.FiniteRewards, line(ILTCB, contexts=LABELS, scale=0.1)),
    "LinMED": (oracles.FiniteRewards, line(LinMED)),
    "online cover": (oracles.FiniteRewards, line(OnlineCover)),
    "RegCB, elimination": (oracles.FiniteRewards, line(RegCB, 0.5, optimistic=False)),
    "RegCB, optimistic": (oracles.FiniteRewards, line(RegCB)),
    "Regressor Elimination": (oracles.FiniteRewards, line(RegressorElimination, 0.5, contexts=LABELS)),
    "UCCB": (oracles.OfflineFiniteRewards, line(UCCB, contexts=LABELS)),
}
"""Those for episodes of one step: the class of their reward oracle, and how to build one."""


def _truth(space):
    return lambda context: space.mdp(transitions=KERNELS[context][0], rewards=STEP_REWARDS[context])


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
    drawing = ("VIDS", "regularised IDS")
    varied += [(kind, oracle, "restricted", {}) for kind in drawing for oracle in list(ORACLES)[1:]]
    narrow = {"reward_range": (-2, 5), "return_range": (-7.0, 3.0)}
    bounding = ("adaptive", "posterior sampling", "UC³RL", "epoch OMG", "epoch PC-IGW")
    varied += [(kind, "finite", "restricted", narrow) for kind in bounding]
    counting, general = ("UC³RL", "RM-UCDD"), {"contexts": None, "episodes": 50}
    varied += [(kind, "offline finite", space, general) for kind in counting for space in SPACES]
    varied += [(kind, "offline linear and softmax", "restricted", general) for kind in counting]
    varied += [(kind, "offline linear and softmax", "restricted", {"contexts": VECTORS}) for kind in counting]
    varied += [(kind, "known rewards by step, counted dynamics", "restricted", {}) for kind in counting]
    varied += [("epoch OMG", oracle, "restricted", {}) for oracle in OFFLINE]
    varied += [("RM-UCDD", oracle, "restricted", general) for oracle in ("offline least squares", "offline linear")]
    found = {}
    for kind, oracle, space, more in varied:
        name = ", ".join([kind, oracle, space, *(f"{key} {value}" for key, value in more.items())])
        found[name] = build(kind, oracle, space, **more)
    for kind, (contexts, make) in OWN_STATISTICS.items():
        for space, more in (("plain", {}), ("restricted, spread start", narrow)):
            found[f"{kind}, {space}"] = contexts, make(SPACES[space], **more)
    hard = Space(**ONE_STEP, start=[0.2, 0.3, 0.5], admissible=MASK)
    for kind, (rewards, make) in BANDITS.items():
        for name, space, more in ((kind, Space(**ONE_STEP), {}), (f"{kind}, hard", hard, {"reward_range": (-2, 5)})):
            pair = rewards(REWARDS, horizon=1), oracles.CountDynamics(**ONE_STEP)
            found[name] = LABELS, make(space, *pair, **more)
    return found


def builders():
    """Return the classes and functions that the catalogue builds agents with."""
    lines = [
        *KINDS.values(),
        *(make for _, make in (*OWN_STATISTICS.values(), *BANDITS.values())),
    ]
    return {each.made for each in lines}
