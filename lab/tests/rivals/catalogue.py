"""One of each rival, on spaces of every kind: name -> (contexts, agent). Shared parts are the library's."""

import numpy as np

from library.tests.agents.catalogue import (
    DIMENSION,
    LABELS,
    MASK,
    MOVED,
    NARROW,
    ORACLES,
    REWARDS,
    SIZE,
    SPACES,
    TRANSITIONS,
    VECTORS,
    build_each,
    line,
)
from library.tests.agents.catalogue import KINDS as LIBRARY_KINDS
from library.tests.agents.catalogue import build as build_one
from omg_cmdp import Space, oracles
from omg_cmdp.validation import frozen
from omg_lab.rivals import (
    FALCON,
    GLMORL,
    GLMRLSVI,
    ILTCB,
    MVP,
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
    Clipped,
    CoverRmax,
    EpochGreedy,
    ERMReduction,
    FastCB,
    FeelGoodThompson,
    KWIKRmax,
    LagrangianGreedy,
    LinMED,
    OccupancyEntropy,
    OptCMDP,
    OptPess,
    OptPrimalDual,
    PerBall,
    PerContext,
    RegCB,
    RegressorElimination,
    RegularisedIDS,
    SquareCB,
    WitnessRank,
)

LIMITS = {
    "costs": frozen(np.random.default_rng(1).random((2, SIZE["states"], SIZE["actions"]))),
    "budgets": (1.5, 2.0),
}

KINDS = {
    "feel-good Thompson": line(FeelGoodThompson, optimism=1.0, seed=3),
    "PC-IGW": line(PCIGW, seed=3),
    "Boltzmann": line(Boltzmann, lambda t: 10.0 * np.sqrt(t)),
    "occupancy entropy": line(OccupancyEntropy),
    "UC³RL": line(UC3RL, contexts=LABELS),
    "VIDS": line(VIDS, draws=6, seed=3),
    "regularised IDS": line(RegularisedIDS, lambda t: 0.5 * np.sqrt(t), draws=6, seed=3),
    "RM-UCDD": line(RMUCDD, contexts=LABELS),
    "reduction to offline regression": line(ERMReduction, samples=1),
    "OLIVE": line(OLIVE, evaluations=2),
    "witness rank": line(WitnessRank, evaluations=2),
    "clipped": line(Clipped, **LIMITS),
    "Lagrangian greedy": line(LagrangianGreedy, 0.3, **LIMITS),
}
"""Rivals with two oracles."""
EVERY_KIND = LIBRARY_KINDS | KINDS

OWN_STATISTICS = {
    "UCBVI, blind": (LABELS, line(UCBVI, Blind())),
    "UCBVI, per context": (LABELS, line(UCBVI, PerContext(), scale=0.1)),
    "UCBVI, known rewards": (
        LABELS,
        line(UCBVI, PerContext(), scale=0.1, known_rewards=lambda context: REWARDS[context][0]),
    ),
    "UCBVI, per vector": (VECTORS, line(UCBVI, PerContext())),
    "UCBVI, per ball": (VECTORS, line(UCBVI, PerBall(1.0), scale=0.1)),
    "Cover-Rmax, per ball": (VECTORS, line(CoverRmax, PerBall(1.0), visits=2)),
    "KWIK-Rmax": (VECTORS, line(KWIKRmax, dimension=DIMENSION, threshold=0.5)),
    "KWIK-Rmax, labels": (LABELS, line(KWIKRmax, dimension=1, features=lambda _: [1.0])),
    "GLM-ORL": (VECTORS, line(GLMORL, dimension=DIMENSION, scale=0.1)),
    "GLM-ORL, labels": (LABELS, line(GLMORL, dimension=1, features=lambda _: [1.0])),
    "GLM-RLSVI": (VECTORS, line(GLMRLSVI, dimension=DIMENSION, link="linear", seed=3)),
    "MVP": (LABELS, line(MVP, PerContext(), scale=0.1)),
    "MVP, known transitions": (
        LABELS,
        line(MVP, PerContext(), scale=0.1, known_transitions=lambda context: TRANSITIONS[context][0]),
    ),
    "MVP, per ball": (VECTORS, line(MVP, PerBall(1.0), scale=0.1)),
    "UCBVI-BF": (LABELS, line(UCBVIBF, PerContext(), scale=0.1)),
    "OptCMDP": (LABELS, line(OptCMDP, PerContext(), scale=0.1, **LIMITS)),
    "OptPess": (LABELS, line(OptPess, PerContext(), scale=0.01, **LIMITS)),
    "OptPrimalDual": (VECTORS, line(OptPrimalDual, PerBall(1.0), scale=0.1, policy_step=0.5, **LIMITS)),
    "RLSVI": (LABELS, line(RLSVI, PerContext(), scale=0.1, seed=3)),
}
"""Rivals without oracles: contexts, and how to build one."""

ONE_STEP = {**SIZE, "horizon": 1}
BANDITS = {
    "SquareCB": (oracles.FiniteRewards, line(SquareCB)),
    "FALCON": (oracles.OfflineFiniteRewards, line(FALCON)),
    "FastCB": (oracles.LogLossRewards, line(FastCB, lambda t: 5.0 * t)),
    "AdaCB": (oracles.OfflineFiniteRewards, line(AdaCB, 20.0)),
    "Epoch-Greedy": (oracles.OfflineFiniteRewards, line(EpochGreedy)),
    "ILTCB": (oracles.FiniteRewards, line(ILTCB, contexts=LABELS, scale=0.1)),
    "LinMED": (oracles.FiniteRewards, line(LinMED)),
    "RegCB, elimination": (oracles.FiniteRewards, line(RegCB, 0.5, optimistic=False)),
    "RegCB, optimistic": (oracles.FiniteRewards, line(RegCB)),
    "Regressor Elimination": (oracles.FiniteRewards, line(RegressorElimination, 0.5, contexts=LABELS)),
    "UCCB": (oracles.OfflineFiniteRewards, line(UCCB, contexts=LABELS)),
}
"""Rivals for episodes of one step: the class of their reward oracle, and how to build one."""


def build(kind, oracle="finite", space="plain", **more):
    """Return (contexts, agent) of a rival or an agent of the library, by its name."""
    return build_one(kind, oracle, space, kinds=EVERY_KIND, **more)


def each_agent():
    """Return name -> (contexts, agent): every rival on the plain space, and other spaces and oracles with some."""
    varied = [("feel-good Thompson", "finite", "restricted, spread start", MOVED)]
    by_gamma = ("PC-IGW", "Boltzmann", "occupancy entropy")
    varied += [(kind, "known by step", "restricted, spread start", MOVED) for kind in by_gamma]
    drawing = ("VIDS", "regularised IDS")
    varied += [(kind, oracle, "restricted", {}) for kind in drawing for oracle in list(ORACLES)[1:]]
    varied += [(kind, "finite", "restricted", NARROW) for kind in ("UC³RL", "PC-IGW")]
    counting = ("UC³RL", "RM-UCDD")
    varied += [(kind, "offline finite", space, {"episodes": 50}) for kind in counting for space in SPACES]
    varied += [(kind, "offline finite of vectors", "restricted", {"contexts": VECTORS}) for kind in counting]
    varied += [(kind, "known rewards by step, counted dynamics", "restricted", {}) for kind in counting]
    varied += [("RM-UCDD", "offline least squares", "restricted", {"episodes": 50})]
    found = build_each(KINDS, varied, OWN_STATISTICS)
    hard = Space(**ONE_STEP, start=[0.2, 0.3, 0.5], admissible=MASK)
    for kind, (rewards, make) in BANDITS.items():
        for name, space, more in ((kind, Space(**ONE_STEP), {}), (f"{kind}, hard", hard, MOVED)):
            pair = rewards(REWARDS, horizon=1), oracles.CountDynamics(**ONE_STEP)
            found[name] = LABELS, make(space, *pair, **more)
    return found


def builders():
    """Return the classes and functions that the catalogue builds rivals with."""
    lines = [*KINDS.values(), *(make for _, make in (*OWN_STATISTICS.values(), *BANDITS.values()))]
    return {each.made for each in lines}
