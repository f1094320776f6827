"""Exploration rules: how OMG-CMDP! decides what to play, given its model.

A rule is asked before each episode. Those here choose the weights m_h(s, a) > 0 of the log barrier, and play the
maximiser of ⟨q, f̂⟩ + Σ m·log q; the paper's barrier is m = 1/γ. With known dynamics, for any weights (docs/theory.md,
Theorem A; Theorem B adds a term if the dynamics are not known),

    V* - V^π <= Σ m·(1 + q̂) + ¼·Σ q̂·(f* - f̂)²/m.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.bellman import value_bounds, value_ranges
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.plan import plan
from omg_cmdp.theory.constants import Assumptions, printed_gamma, tight_gamma
from omg_cmdp.validation import FloatArray, positive_integer, positive_number, probability

kernels = Lazy("omg_cmdp.agents.kernels.exploration")

Tuned = float | Callable[[int], float]
"""A positive number, or a function of the episode t = 1, 2, ..."""

ROUGHLY = 1e-4
"""How closely the root program is solved: its answer only chooses weights, and any weights are allowed."""


class Situation(NamedTuple):
    """What a rule knows: the episode, its context, the model for it, and the oracles behind the model."""

    episode: int
    """Counted from 1."""
    context: Context
    model: TabularMDP
    reward_oracle: RewardOracle
    dynamics_oracle: DynamicsOracle
    tuples: int
    """An upper bound on the number n of reachable (h, s, a)."""
    tolerance: float
    """What the certificate of the plan must not exceed."""
    returns: tuple[float, float] = (0.0, math.inf)
    """The least and the most that an episode can earn; rewards lie in [0, 1]."""

    def plan(self, gamma: float, weights: FloatArray | None = None) -> Decision:
        """Return the plan for the barrier m = weights/γ; without `weights` they are 1."""
        solution = plan(self.model, gamma, weights=weights, tolerance=self.tolerance)
        return Decision(
            policy=solution.policy,
            model=self.model,
            gamma=gamma,
            weights=weights,
            occupancy=solution.occupancy,
            values=solution.values,
            certificate=solution.certificate,
            iterations=solution.iterations,
        )

    def assumptions(self, episodes: int, delta: float) -> Assumptions:
        """Return what bounds for T = `episodes` assume, by the oracles' own regret bounds, which must be finite."""
        regrets = {}
        for name in ("reward", "dynamics"):
            bound = getattr(self, f"{name}_oracle").regret_bound(episodes, self.model.horizon)
            if not math.isfinite(bound):
                raise ValueError(f"`{name}_oracle` must have a finite `regret_bound` for this gamma, got {bound}")
            regrets[f"{name}_regret"] = bound
        return Assumptions(
            states=self.model.states,
            actions=self.model.actions,
            horizon=self.model.horizon,
            tuples=self.tuples,
            episodes=episodes,
            delta=delta,
            **regrets,
        )


class ExplorationRule(abc.ABC):
    """A rule of your own needs one method, which often ends with `return situation.plan(gamma, weights)`."""

    @abc.abstractmethod
    def decide(self, situation: Situation) -> Decision:
        """Return what to play in the next episode. Pure: asking twice changes nothing."""

    def __str__(self) -> str:
        """The rule's settings: equal for rules that do the same."""
        return f"{type(self).__name__}({', '.join(f'{name}={_setting(value)}' for name, value in vars(self).items())})"


@final
class Schedule(ExplorationRule):
    """One number, the same in every episode or a function of t = 1, 2, ...: OMG's γ, or what a rival has in its place.

    >>> Schedule(5.0)(1), Schedule(lambda t: 30.0 * t**0.5)(4)
    (5.0, 60.0)
    """

    def __init__(self, given: Tuned, name: str = "gamma") -> None:
        self.name = name
        self.given = given if callable(given) else positive_number(name, given)

    def __call__(self, episode: int) -> float:
        """Return the value in episode t."""
        if callable(self.given):
            return positive_number(f"{self.name}(t)", self.given(episode))
        return self.given

    def __str__(self) -> str:
        return _setting(self.given)

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with the paper's barrier at γ, or γ_t."""
        return situation.plan(self(situation.episode))


@final
@dataclasses.dataclass(frozen=True)
class Power:
    """scale·t^exponent, as a function of the episode; saved agents compare its numbers.

    >>> Power(30.0, 0.5)(4)
    60.0
    """

    scale: float
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_number("scale", self.scale))
        if not isinstance(self.exponent, (int, float)) or not math.isfinite(self.exponent):
            raise ValueError(f"`exponent` must be a finite number, got {self.exponent!r}")

    def __call__(self, episode: int) -> float:
        """Return the value in episode t."""
        return float(self.scale * episode**self.exponent)


ROOT = Power(30.0, 0.5)
"""30·√t: as in the theorems it grows with the root of the episodes; the constant is there to be tuned."""


@final
class Theory(ExplorationRule):
    """The γ of the theorem (`printed_gamma`), from the oracles' own regret bounds for T = `episodes`.

    `exact` takes the constant for exact plans; the agent's plans are certified, not exact.
    """

    def __init__(self, episodes: int | None, delta: float, *, exact: bool = False) -> None:
        self.episodes = positive_integer("episodes", episodes)
        self.delta = probability("delta", delta)
        self.exact = exact

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with the same γ in every episode."""
        return situation.plan(printed_gamma(situation.assumptions(self.episodes, self.delta), exact=self.exact))


@final
class Anytime(ExplorationRule):
    """γ_t = √(n·t/C) with the tight C of docs/theory.md (`tight_gamma`), from the oracles' bounds for t episodes.

    T need not be known, at the price of 3·√(nCT) in the place of 2·√(nCT).
    """

    def __init__(self, delta: float) -> None:
        self.delta = probability("delta", delta)

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with γ_t."""
        return situation.plan(tight_gamma(situation.assumptions(situation.episode, self.delta)))


@final
class UncertaintyWeighted(ExplorationRule):
    """m = ½·√(q·u) + floor/√(n·t): explore where the oracles are unsure (docs/theory.md has the reasons).

    u_h = (κ/H)·(u_f + range_h²·u_P) is the expected squared error of f̂ + P̂·V_{h+1}, up to κ/H. range_h is by how much
    V_{h+1} can differ in the model; errors of H steps add in squares where bonuses √u add, hence 1/H.
    q maximises ⟨q, f̂⟩ + Σ √(u·q); for errors of size u its weights ½·√(q·u) make the bound above smallest.
    The floor costs at most 4·floor·√(nT), and keeps ¼·Σ q̂·err²/m over T episodes below √(nT)/(4·floor) times what the
    oracles' bounds allow, even if u is too small. Nothing helps against an oracle whose u stays too large.
    """

    def __init__(self, *, kappa: float = 0.15, floor: float = 1e-4) -> None:
        self.kappa = positive_number("kappa", kappa)
        self.floor = positive_number("floor", floor)

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with the weights of this episode."""
        model, shape = situation.model, (-1, *situation.model.admissible.shape)
        rewards, dynamics = (
            np.ascontiguousarray(oracle.uncertainty(situation.context), dtype=np.float64).reshape(shape)
            for oracle in (situation.reward_oracle, situation.dynamics_oracle)
        )
        unsure = np.empty((model.horizon, *shape[1:]))
        ranges = value_ranges(model, bounds=value_bounds(model.horizon, situation.returns))
        kernels.backup_errors(ranges, rewards, dynamics, self.kappa / model.horizon, unsure)
        floor = self.floor / math.sqrt(situation.tuples * situation.episode)
        # The floor as an uncertainty, so that the program has an interior: at q = 1/(SA) its weight is about the floor.
        rooted = plan(model, uncertainty=np.maximum(unsure, 4.0 * floor**2), tolerance=ROUGHLY)
        weights = np.empty(unsure.shape)
        gamma = kernels.root_weights(rooted.occupancy, unsure, floor, weights)
        return situation.plan(gamma, weights)


RULES: dict[str, Callable[[int | None, float], ExplorationRule]] = {
    "adaptive": lambda _, __: UncertaintyWeighted(),
    "theory": Theory,
    "anytime": lambda _, delta: Anytime(delta),
}
"""The rules by name, each made of `episodes` and `delta`."""


def exploration_rule(gamma: str | Tuned | ExplorationRule, episodes: int | None, delta: float) -> ExplorationRule:
    """Return the rule that the argument `gamma` of OMG stands for."""
    delta = probability("delta", delta)
    if isinstance(gamma, ExplorationRule):
        return gamma
    if not isinstance(gamma, str):
        return Schedule(gamma)
    if gamma not in RULES:
        names = ", ".join(f'"{name}"' for name in RULES)
        rule = f"must be one of {names}, a number, a function of t, or an ExplorationRule"
        raise ValueError(f"`gamma` {rule}, got {gamma!r}")
    return RULES[gamma](episodes, delta)


def _setting(value: object) -> str:
    """Return `value` as text; of functions only dataclasses can be told apart."""
    return "a function" if callable(value) and not dataclasses.is_dataclass(value) else str(value)
