"""What the bounds are stated for, and the numbers that follow from it: n, the sums of errors, two values of γ.

>>> sizes = {"states": 5, "actions": 3, "horizon": 5, "episodes": 5000}
>>> given = Assumptions(**sizes, delta=0.05, reward_regret=6.9, dynamics_regret=13.9)
>>> given.n, round(given.reward_error), round(given.dynamics_error)
(63, 74, 67)
>>> round(printed_gamma(given), 2), round(tight_gamma(given), 1)
(0.2, 1.1)
"""

from __future__ import annotations

import dataclasses
import math

from omg_cmdp.mdp.space import Space
from omg_cmdp.theory import errors
from omg_cmdp.validation import at_least_zero, positive_integer, probability

EXACT, APPROXIMATE = 31.0, 62.0
"""The paper's constants: for exact plans, and for plans with γ·ε <= 1/(16T)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What a bound assumes: T episodes in a space of these sizes, probability 1 - δ, oracles of regret R_sq and R_log.

    Oracle regrets are those of a model that is frozen during an episode (docs/theory.md, E2).

    Parameters
    ----------
    states, actions, horizon, episodes : int
        S, A, H and T.
    delta : float
        The failure probability δ, in (0, 1).
    reward_regret, dynamics_regret : float
        R_sq and R_log, the regret bounds of the two oracles.
    tuples : int, optional
        A bound on n, if there is a better one than that of `states`, `actions` and `horizon`.

    Examples
    --------
    >>> sizes = {"states": 5, "actions": 3, "horizon": 5, "episodes": 5000}
    >>> Assumptions(**sizes, delta=0.05, reward_regret=6.9, dynamics_regret=13.9).n
    63
    """

    states: int
    actions: int
    horizon: int
    episodes: int
    delta: float
    reward_regret: float
    """R_sq."""
    dynamics_regret: float
    """R_log."""
    tuples: int | None = None
    """A bound on n, if there is a better one than that of `states`, `actions` and `horizon`."""

    def __post_init__(self) -> None:
        for name in ("states", "actions", "horizon"):
            positive_integer(name, getattr(self, name))
        positive_integer("episodes", self.episodes, most=math.inf)
        if self.tuples is not None:
            positive_integer("tuples", self.tuples)
        probability("delta", self.delta)
        at_least_zero("reward_regret", self.reward_regret)
        at_least_zero("dynamics_regret", self.dynamics_regret)

    @property
    def n(self) -> int:
        """The number of reachable (h, s, a), or a bound on it."""
        if self.tuples is not None:
            return self.tuples
        return most_tuples(Space(states=self.states, actions=self.actions, horizon=self.horizon))

    @property
    def reward_error(self) -> float:
        """Ē_sq of `errors.reward_error`."""
        return errors.reward_error(horizon=self.horizon, delta=self.delta, reward_regret=self.reward_regret)

    @property
    def dynamics_error(self) -> float:
        """Ē_hel = R_log + 2H·log(2H/δ)."""
        return errors.dynamics_error(horizon=self.horizon, delta=self.delta, dynamics_regret=self.dynamics_regret)

    @property
    def estimation(self) -> float:
        """C = 1.36·Ē_sq + (4.42H² + 6.12H⁴)·Ē_hel."""
        return errors.estimation(
            horizon=self.horizon, reward_error=self.reward_error, dynamics_error=self.dynamics_error
        )

    @property
    def value_error(self) -> float:
        """√(TH·Ē_sq) + H·√(TH·Ē_hel)."""
        measured = {"reward_error": self.reward_error, "dynamics_error": self.dynamics_error}
        return errors.value_error(horizon=self.horizon, episodes=self.episodes, **measured)

    @property
    def printed_errors(self) -> float:
        """The paper's 2R_sq + R_log + 18H·log(2H/δ)."""
        horizon = self.horizon
        regrets = 2.0 * self.reward_regret + self.dynamics_regret
        return regrets + 18.0 * horizon * math.log(2.0 * horizon / self.delta)


def most_tuples(space: Space) -> int:
    """Return an upper bound on the number n of reachable (h, s, a): one layer of start states, H - 1 full ones.

    >>> most_tuples(Space(states=5, actions=3, horizon=5))  # A + (H - 1)·S·A
    63
    """
    first = int(space.admissible[space.start > 0.0].sum())
    return first + (space.horizon - 1) * int(space.admissible.sum())


def printed_gamma(given: Assumptions, *, exact: bool = True) -> float:
    """Return the paper's γ = √(SAT/(c·H³·(2R_sq + R_log + 18H·log(2H/δ)))), c = 31 for exact plans, else 62."""
    constant = EXACT if exact else APPROXIMATE
    return math.sqrt(
        given.states * given.actions * given.episodes / (constant * given.horizon**3 * given.printed_errors)
    )


def tight_gamma(given: Assumptions) -> float:
    """Return √(nT/C), at which `bounds.corrected` is smallest."""
    return math.sqrt(given.n * given.episodes / given.estimation)
