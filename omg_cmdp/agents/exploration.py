"""How much to explore: the weights of the log barrier, chosen before each episode.

Every rule answers with m_h(s, a) > 0, and the agent plays the maximiser of ⟨q, f̂⟩ + Σ m·log q; the paper's barrier is
m = 1/γ. Whatever the weights, if the dynamics are known (docs/theory.md, Theorem A; Theorem B if they are not),

    V* - V^π <= Σ m·(1 + q̂) + ¼·Σ q̂·(f* - f̂)²/m.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import lazy
from omg_cmdp.mdp.bellman import value_ranges
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.plan import plan
from omg_cmdp.validation import FloatArray, positive_integer, positive_number, probability

kernels = lazy("omg_cmdp.agents.kernels.exploration")


class Situation(NamedTuple):
    """What is known when the weights are chosen."""

    episode: int
    """Counted from 1."""
    context: Context
    model: TabularMDP
    reward_oracle: RewardOracle
    dynamics_oracle: DynamicsOracle
    tuples: int
    """An upper bound on the number n of reachable (h, s, a)."""


class Barrier(NamedTuple):
    """The weights m = `weights`/`gamma`; weights None stands for ones."""

    gamma: float
    weights: FloatArray | None = None


class Gamma(abc.ABC):
    """A rule for the barrier: one method."""

    @abc.abstractmethod
    def barrier(self, situation: Situation) -> Barrier:
        """Return the barrier of the next episode."""


@final
class Fixed(Gamma):
    """γ as given: a number, or a function of the episode t = 1, 2, ..."""

    def __init__(self, gamma: float | Callable[[int], float]) -> None:
        self.gamma = gamma if callable(gamma) else positive_number("gamma", gamma)

    def barrier(self, situation: Situation) -> Barrier:
        """Return γ, or γ_t."""
        if callable(self.gamma):
            return Barrier(positive_number("gamma(t)", self.gamma(situation.episode)))
        return Barrier(self.gamma)


@final
class Theory(Gamma):
    """The γ of the theorem: √(SAT/(c·H³·(2R_sq + R_log + 18H·log(2H/δ)))).

    c = 31 for exact plans, 62 for certified ones; R_sq and R_log are the oracles' own bounds for T episodes.
    """

    def __init__(self, episodes: int, delta: float, *, exact: bool = False) -> None:
        self.episodes = positive_integer("episodes", episodes)
        self.delta = probability("delta", delta)
        self.constant = 31.0 if exact else 62.0

    def barrier(self, situation: Situation) -> Barrier:
        """Return the same γ in every episode."""
        model, horizon = situation.model, situation.model.horizon
        squares, logs = _bounds(situation, self.episodes)
        errors = 2.0 * squares + logs + 18.0 * horizon * math.log(2.0 * horizon / self.delta)
        return Barrier(math.sqrt(model.states * model.actions * self.episodes / (self.constant * horizon**3 * errors)))


@final
class Anytime(Gamma):
    """γ_t = √(n·t/C), C = 1.36·(2R_sq + 16H·log(2/δ)) + (4.42H² + 6.12H⁴)·(R_log + 2H·log(2H/δ)).

    The tight constants of docs/theory.md, with the oracles' bounds for t episodes. T need not be known, at the price of
    3·√(nCT) in the place of 2·√(nCT).
    """

    def __init__(self, delta: float) -> None:
        self.delta = probability("delta", delta)

    def barrier(self, situation: Situation) -> Barrier:
        """Return γ_t."""
        horizon, episode = situation.model.horizon, situation.episode
        squares, logs = _bounds(situation, episode)
        rewards = 2.0 * squares + 16.0 * horizon * math.log(2.0 / self.delta)
        dynamics = logs + 2.0 * horizon * math.log(2.0 * horizon / self.delta)
        errors = 1.36 * rewards + (4.42 * horizon**2 + 6.12 * horizon**4) * dynamics
        return Barrier(math.sqrt(situation.tuples * episode / errors))


@final
class Adaptive(Gamma):
    """m = ½·√(q·u) + floor/√(n·t): explore where the oracles are unsure, u_h = (κ/H)·(u_f + range_h²·u_P).

    u is the size that the oracles expect, up to κ/H, of the squared error (f* - f̂) + (P* - P̂)V_{h+1}: transitions
    matter by as much as what comes after them can differ, |(P* - P̂)V|² <= range(V)²·D²(P*, P̂). The range is the
    model's, over all states and policies. Bonuses √u of H steps add, while the errors of H steps add in squares if they
    are independent: hence 1/H. q is the occupancy that maximises ⟨q, f̂⟩ + Σ √(u·q), whose own barrier weights are
    ½·√(q·u): with them the right side of the inequality above, for errors of size u, is smallest. The floor keeps a
    guarantee if u is too small: the sum ¼·Σ q̂·err²/m of T episodes is at most √(nT)/(4·floor) times what the oracles'
    bounds allow, and the floor itself costs at most 4·floor·√(nT). If u stays too large, so does Σ m: no floor helps
    against an oracle that never learns.
    """

    def __init__(self, *, kappa: float = 0.15, floor: float = 1e-4) -> None:
        self.kappa = positive_number("kappa", kappa)
        self.floor = positive_number("floor", floor)

    def barrier(self, situation: Situation) -> Barrier:
        """Return the weights of the next episode."""
        model, shape = situation.model, (-1, *situation.model.admissible.shape)
        rewards, dynamics = (
            np.ascontiguousarray(oracle.uncertainty(situation.context), dtype=np.float64).reshape(shape)
            for oracle in (situation.reward_oracle, situation.dynamics_oracle)
        )
        unsure = np.empty((model.horizon, *shape[1:]))
        scale = self.kappa / model.horizon
        kernels.backup_errors(value_ranges(model), rewards, dynamics, scale, unsure)
        floor = self.floor / math.sqrt(situation.tuples * situation.episode)
        # The floor as an uncertainty, so that the program has an interior: at q = 1/(SA) its weight is about the floor.
        rooted = plan(model, uncertainty=np.maximum(unsure, 4.0 * floor**2), tolerance=ROUGHLY)
        weights = np.empty(unsure.shape)
        gamma = kernels.root_weights(rooted.occupancy, unsure, floor, weights)
        return Barrier(gamma, weights)


ROUGHLY = 1e-4
"""How closely the root program is solved: its answer only chooses weights, and any weights are allowed."""


def most_tuples(space: Space) -> int:
    """Return an upper bound on the number n of reachable (h, s, a): one layer of starts, H - 1 full ones."""
    first = int(space.admissible[space.start > 0.0].sum())
    return first + (space.horizon - 1) * int(space.admissible.sum())


def gamma_rule(gamma: str | float | Callable[[int], float] | Gamma, episodes: int | None, delta: float) -> Gamma:
    """Return the rule that the argument `gamma` of an agent stands for."""
    delta = probability("delta", delta)
    if isinstance(gamma, Gamma):
        return gamma
    if not isinstance(gamma, str):
        return Fixed(gamma)
    if gamma == "theory":
        if episodes is None:
            raise ValueError('`episodes` must be given for gamma="theory", got None')
        return Theory(episodes, delta)
    rules: dict[str, Callable[[], Gamma]] = {"adaptive": Adaptive, "anytime": lambda: Anytime(delta)}
    if gamma not in rules:
        names = '"adaptive", "theory", "anytime"'
        raise ValueError(f"`gamma` must be one of {names}, a number, a function of t, or a Gamma, got {gamma!r}")
    return rules[gamma]()


def _bounds(situation: Situation, episodes: int) -> tuple[float, float]:
    """Return the oracles' own bounds, which must be finite."""
    horizon = situation.model.horizon
    found = []
    for name in ("reward_oracle", "dynamics_oracle"):
        bound = getattr(situation, name).regret_bound(episodes, horizon)
        if not math.isfinite(bound):
            raise ValueError(f"`{name}` must have a finite `regret_bound` for this gamma, got {bound}")
        found.append(bound)
    return found[0], found[1]
