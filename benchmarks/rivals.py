"""The agents of the studies by name: "OMG", "PC-IGW 100", ..., the last word being the one constant there is to tune.

All play with finite classes around the truth at the guarded rate (the product class on the lower-bound instance), or
with offline fits of the same classes. UCBVI and the GLMs have models of their own: tables, and the contexts' features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp import OMG, oracles
from omg_cmdp.agents import (
    FALCON,
    GLMORL,
    GLMRLSVI,
    PCIGW,
    UC3RL,
    UCBVI,
    Agent,
    Blind,
    Boltzmann,
    Clusters,
    EpsilonGreedy,
    FastCB,
    FeelGoodThompson,
    Greedy,
    LocalIGW,
    OccupancyEntropy,
    PerBall,
    PerContext,
    PosteriorSampling,
    Power,
    SquareCB,
    Uniform,
    epoch_omg,
    epoch_pc_igw,
)
from omg_cmdp.contexts import Context
from omg_cmdp.environments import World
from omg_cmdp.validation import FloatArray

Oracles = tuple[Any, Any]
"""A reward oracle and a dynamics oracle."""


class Setting(NamedTuple):
    """What an agent is built for."""

    world: World
    seed: int
    episodes: int
    constant: float
    """The one that is tuned; nan for agents that have none."""

    @property
    def online(self) -> Oracles:
        """The usual oracles of the world."""
        horizon = self.world.space.horizon
        dynamics = oracles.FiniteDynamics(self.world.transition_functions, horizon=horizon)
        if self.world.product_class:
            return self._product(), dynamics
        return oracles.FiniteRewards(self.world.reward_functions, horizon=horizon), dynamics

    @property
    def offline(self) -> Oracles:
        """Fits to all past data; the product class has no such fit, and keeps its online oracle."""
        horizon = self.world.space.horizon
        dynamics = oracles.OfflineFiniteDynamics(self.world.transition_functions, horizon=horizon)
        if self.world.product_class:
            return self._product(), dynamics
        return oracles.OfflineFiniteRewards(self.world.reward_functions, horizon=horizon), dynamics

    def _product(self) -> oracles.ProductRewards:
        world = self.world
        return oracles.ProductRewards(
            world.reward_functions,
            contexts=world.contexts,
            states=world.space.states,
            functions=len(world.reward_functions(world.contexts[0])),
            horizon=world.space.horizon,
        )

    @property
    def root(self) -> Power:
        """The schedule γ_t = constant·√t."""
        return Power(self.constant, 0.5)

    @property
    def vectors(self) -> FloatArray:
        """The contexts as vectors, (C, d): labels become unit vectors."""
        contexts = self.world.contexts
        return np.array(contexts) if isinstance(contexts[0], np.ndarray) else np.eye(len(contexts))

    def features(self, context: Context) -> FloatArray:
        """Return the vector of a context, of norm at most 1."""
        if isinstance(context, np.ndarray):
            return np.asarray(context / max(1.0, float(np.linalg.norm(context))))
        return np.asarray(self.vectors[self.world.contexts.index(context)])


class Rival(NamedTuple):
    """How to build an agent, and the five constants that are tried for it; none, if there is nothing to tune."""

    build: Callable[[Setting], Agent]
    grid: tuple[float, ...] = ()
    plays: Callable[[World], bool] = lambda world: True
    """On which worlds."""


def _optimistic(setting: Setting, counts: str) -> Agent:
    world = setting.world
    # What is known needs no bonus: a class of one function.
    rewards, dynamics = (
        setting.constant * (len(functions(world.contexts[0])) > 1)
        for functions in (world.reward_functions, world.transition_functions)
    )
    return UC3RL(
        world.space,
        *setting.offline,
        contexts=world.contexts,
        scale=(rewards, dynamics),
        episodes=setting.episodes,
        counts=counts,
    )


def _glm(setting: Setting) -> dict[str, Any]:
    return {
        "dimension": setting.vectors.shape[1],
        "features": setting.features,
        "scale": setting.constant,
        "strong_convexity": 1.0 / setting.world.space.states,  # the proven one means that steps never shorten
    }


def _clusters(setting: Setting) -> Agent:
    cover = Clusters.by_means(setting.vectors, count=max(2, len(setting.vectors) // 4))
    return UCBVI(setting.world.space, cover, scale=setting.constant)


def _fast_cb(setting: Setting) -> Agent:
    world = setting.world
    return FastCB(
        world.space, oracles.LogLossRewards(world.reward_functions, horizon=1), setting.online[1], setting.root
    )


def _is_bandit(world: World) -> bool:
    return world.space.horizon == 1


def _has_vectors(world: World) -> bool:
    return isinstance(world.contexts[0], np.ndarray)


ROOTS = (10.0, 30.0, 100.0, 300.0, 1000.0)
BONUSES = (0.003, 0.01, 0.03, 0.1, 0.3)

RIVALS: dict[str, Rival] = {
    "OMG": Rival(lambda s: OMG(s.world.space, *s.online, episodes=s.episodes)),
    "OMG, root": Rival(lambda s: OMG(s.world.space, *s.online, s.root, episodes=s.episodes), ROOTS),
    "OMG by epochs": Rival(
        lambda s: epoch_omg(s.world.space, *s.offline, scale=s.constant, episodes=s.episodes), ROOTS
    ),
    "PC-IGW": Rival(lambda s: PCIGW(s.world.space, *s.online, s.root, seed=s.seed), ROOTS),
    "PC-IGW by epochs": Rival(lambda s: epoch_pc_igw(s.world.space, *s.offline, scale=s.constant, seed=s.seed), ROOTS),
    "UC3RL": Rival(lambda s: _optimistic(s, "occupancy"), (0.001, 0.003, 0.01, 0.03, 0.1)),
    "RM-UCDD": Rival(lambda s: _optimistic(s, "policy"), (0.001, 0.003, 0.01, 0.03, 0.1)),
    "GLM-ORL": Rival(lambda s: GLMORL(s.world.space, **_glm(s)), (0.001, 0.003, 0.01, 0.03, 0.1)),
    "GLM-RLSVI": Rival(lambda s: GLMRLSVI(s.world.space, seed=s.seed, **_glm(s)), (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)),
    "UCBVI, blind": Rival(lambda s: UCBVI(s.world.space, Blind(), scale=s.constant), BONUSES),
    "UCBVI per context": Rival(lambda s: UCBVI(s.world.space, PerContext(), scale=s.constant), BONUSES),
    "UCBVI per ball": Rival(
        lambda s: UCBVI(s.world.space, PerBall(s.constant), scale=0.03), (0.1, 0.2, 0.4, 0.8, 1.6), _has_vectors
    ),
    "UCBVI by clusters": Rival(_clusters, BONUSES, _has_vectors),
    "posterior sampling": Rival(lambda s: PosteriorSampling(s.world.space, *s.online, seed=s.seed)),
    "feel-good sampling": Rival(
        lambda s: FeelGoodThompson(s.world.space, *s.online, optimism=s.constant, seed=s.seed),
        (0.03, 0.1, 0.3, 1.0, 3.0),
        lambda world: not world.product_class,
    ),
    "greedy": Rival(lambda s: Greedy(s.world.space, *s.online)),
    "greedy, offline": Rival(lambda s: Greedy(s.world.space, *s.offline)),
    "ε-greedy": Rival(
        lambda s: EpsilonGreedy(s.world.space, *s.online, Power(s.constant, -1.0 / 3.0)), (0.03, 0.1, 0.3, 1.0, 3.0)
    ),
    "Boltzmann": Rival(lambda s: Boltzmann(s.world.space, *s.online, s.root), (0.3, 1.0, 3.0, 10.0, 30.0)),
    "local IGW": Rival(lambda s: LocalIGW(s.world.space, *s.online, s.root), (3.0, 10.0, 30.0, 100.0, 300.0)),
    "entropy": Rival(lambda s: OccupancyEntropy(s.world.space, *s.online, s.root), (0.3, 1.0, 3.0, 10.0, 30.0)),
    "SquareCB": Rival(lambda s: SquareCB(s.world.space, *s.online, s.root), ROOTS, _is_bandit),
    "FALCON": Rival(lambda s: FALCON(s.world.space, *s.offline, s.root), ROOTS, _is_bandit),
    "FastCB": Rival(_fast_cb, ROOTS, _is_bandit),
    "uniform": Rival(lambda s: Uniform(s.world.space, *s.online)),
}

RULES: dict[str, Callable[[Setting], Agent]] = {
    "fixed": lambda s: OMG(s.world.space, *s.online, s.constant, episodes=s.episodes),
    "theory": lambda s: OMG(s.world.space, *s.online, "theory", episodes=s.episodes),
    "anytime": lambda s: OMG(s.world.space, *s.online, "anytime", episodes=s.episodes),
}
"""OMG with other rules for γ than its own."""


def make(name: str, world: World, *, seed: int, episodes: int) -> Agent:
    """Return the agent of this name: one of `RIVALS` or `RULES`, and its constant."""
    words, _, last = name.rpartition(" ")
    tuned = last.replace(".", "").replace("e", "").replace("+", "").replace("-", "").isdigit()
    kind, constant = (words, float(last)) if tuned else (name, float("nan"))
    setting = Setting(world, seed, episodes, constant)
    return RULES[kind](setting) if kind in RULES else RIVALS[kind].build(setting)
