"""The sums over a run, and the statements about them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory import bounds, errors
from omg_cmdp.theory.constants import Assumptions
from omg_cmdp.theory.rounds import Round
from omg_lab.audit.quantities import Barrier, ModelComparison
from omg_lab.audit.records import losses


class Growth(NamedTuple):
    """A right side as a function of T: constant + root·√T + linear·T."""

    constant: float = 0.0
    root: float = 0.0
    linear: float = 0.0

    def at(self, episodes: float) -> float:
        """Return the right side for T = `episodes`."""
        return self.constant + self.root * math.sqrt(episodes) + self.linear * episodes

    def binds_from(self, most: float) -> float:
        """Return the smallest T at which it is at most `most`·T; inf if there is none.

        >>> Growth(constant=10.0, linear=1.0).binds_from(2.0)
        10.0
        """
        spare = most - self.linear
        if math.isnan(self.at(1.0)) or not spare > 0.0 or not self.at(1.0) < math.inf:
            return math.inf
        root = (self.root + math.sqrt(self.root**2 + 4.0 * spare * max(self.constant, 0.0))) / (2.0 * spare)
        return float(math.ceil(root * root * (1.0 - 1e-12)))


NOTHING = Growth(constant=math.nan)
"""A right side that could not be computed."""


@dataclasses.dataclass
class Totals:
    """The sums over the episodes of a run that the cumulative statements need."""

    episodes: int = 0
    last: int = 0
    regret: float = 0.0
    modelled: int = 0
    """The number of episodes with a model."""
    broken: int = 0
    """The number of episodes with tables that are not those of an MDP."""
    claimed: int = 0
    """The number of episodes that claimed a barrier."""
    barred: int = 0
    """The number of episodes with a barrier over all of Z."""
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)
    """S, A and H."""
    reward_error: float = 0.0
    dynamics_error: float = 0.0
    reward_excess: float = 0.0
    dynamics_excess: float = 0.0
    variance: float = 0.0
    policy_error: float = 0.0
    exploration: float = 0.0
    estimation: float = 0.0
    defect: float = 0.0
    least: float = math.inf
    gammas: set[float] = dataclasses.field(default_factory=set)
    plain: bool = True
    certificate: float = 0.0

    def add_round(self, this: Round) -> None:
        """Count one episode, whatever its decision says."""
        mdp = this.truth.mdp
        self.episodes, self.last = self.episodes + 1, this.episode
        self.regret += this.truth.best[1] - this.value
        self.sizes = {"states": mdp.states, "actions": mdp.actions, "horizon": mdp.horizon}

    @property
    def horizon(self) -> int:
        """H, of which every episode has the same."""
        return self.sizes["horizon"]

    def add_model(self, c: ModelComparison, this: Round) -> None:
        """Add the errors of the model in one episode."""
        self.modelled += 1
        self.reward_error += c.reward_error
        self.dynamics_error += c.dynamics_error
        self.variance += c.variance
        self.policy_error += c.policy_error
        own, true = losses(c.model, this), losses(c.truth, this)
        self.reward_excess += own[0] - true[0]
        self.dynamics_excess += own[1] - true[1]

    def add_claim(self, decision: Decision) -> None:
        """Note the γ, the weights and the certificate that one episode claims."""
        self.claimed += 1
        self.plain = self.plain and decision.weights is None
        self.certificate = max(self.certificate, decision.certificate if decision.certificate >= 0.0 else math.inf)
        if len(self.gammas) < 2:
            self.gammas.add(decision.gamma)

    def add_barrier(self, c: ModelComparison, b: Barrier) -> None:
        """Add what the barrier of one episode costs."""
        self.barred += 1
        least = float(b.m.min())
        estimate = errors.estimation(horizon=c.horizon, reward_error=c.reward_error, dynamics_error=c.dynamics_error)
        self.exploration += float(b.m.sum()) + b.defect
        self.estimation += estimate / least
        self.defect += b.defect
        self.least = min(self.least, least)

    def sides(self, proven: Sequence[float], delta: float) -> Iterator[tuple[str, float, Growth]]:
        """Yield the statements about the whole run, with bounds `proven` for the oracles' regrets."""
        if not (self.modelled or self.broken or self.claimed):
            return
        # A statement about the run needs all of its episodes.
        whole, planned = self.modelled == self.episodes, self.barred == self.episodes
        horizon, episodes = self.horizon, self.episodes
        measured = self._value_error(self.reward_error, self.dynamics_error)
        yield "policy errors, sum", self.policy_error, Growth(root=measured) if whole else NOTHING

        squares, logs = self.reward_excess, self.dynamics_excess
        # The lemmas hold for a negative regret too: it is not cut off at 0.
        rewards, dynamics = self._errors(squares, logs, delta)
        freedman = self.variance / (8.0 * horizon) + 8.0 * horizon * math.log(2.0 / delta)
        drift = self.reward_error - self.reward_excess
        yield "Freedman", drift, Growth(constant=freedman) if whole else NOTHING
        yield "square loss", self.reward_error, Growth(constant=rewards) if whole else NOTHING
        yield "log loss", self.dynamics_error, Growth(constant=dynamics) if whole else NOTHING
        if not self.claimed:
            return
        cost = self.exploration / episodes
        exact = Growth(self.estimation, measured, cost)
        yield "regret, from errors", self.regret, exact if planned else NOTHING
        yield "theorem, corrected", self.regret, self._theorem(rewards, dynamics) if planned else NOTHING
        if math.inf not in proven:
            shown = planned and not any(map(math.isnan, proven))
            limit = self._theorem(*self._errors(proven[0], proven[1], delta)) if shown else NOTHING
            yield "corollary", self.regret, limit
        if self.plain and len(self.gammas) == 1:
            printed = [self._printed(squares, logs, delta, plans) if planned else NOTHING for plans in (True, False)]
            yield "theorem, exact", self.regret, printed[0]
            if self.certificate <= 1.0 / (16.0 * episodes):
                yield "theorem, printed", self.regret, printed[1]

    def _errors(self, squares: float, logs: float, delta: float) -> tuple[float, float]:
        """Return Ē_sq and Ē_hel."""
        return (
            errors.reward_error(horizon=self.horizon, delta=delta, reward_regret=squares),
            errors.dynamics_error(horizon=self.horizon, delta=delta, dynamics_regret=logs),
        )

    def _printed(self, squares: float, logs: float, delta: float, exact: bool) -> Growth:
        """Return the paper's own theorem, for one γ and w = 1; for exact plans with what the certificates leave."""
        given = Assumptions(
            **self.sizes,
            episodes=self.episodes,
            delta=delta,
            reward_regret=max(squares, 0.0),
            dynamics_regret=max(logs, 0.0),
        )
        [gamma] = self.gammas
        limit = bounds.as_printed(given, gamma=gamma, exact=exact) + (self.defect if exact else 0.0)
        linear = math.prod(self.sizes.values()) / gamma  # HSA/γ
        root = math.sqrt(self.horizon * given.reward_error) + 2.0 * math.sqrt(self.horizon * given.dynamics_error)
        root += 0.0 if exact else 0.5 * math.sqrt(self.horizon)
        return Growth(limit - linear * self.episodes - root * math.sqrt(self.episodes), root, linear)

    def _theorem(self, reward_error: float, dynamics_error: float) -> Growth:
        """Return the corrected theorem for these errors; they are not negative, whatever a lemma says."""
        rewards, dynamics = max(reward_error, 0.0), max(dynamics_error, 0.0)
        estimate = errors.estimation(horizon=self.horizon, reward_error=rewards, dynamics_error=dynamics)
        rest = self._value_error(rewards, dynamics)
        return Growth(estimate / self.least, rest, self.exploration / self.episodes)

    def _value_error(self, rewards: float, dynamics: float) -> float:
        return errors.value_error(horizon=self.horizon, episodes=1, reward_error=rewards, dynamics_error=dynamics)
