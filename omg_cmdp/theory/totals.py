"""The sums over a run, and the statements about them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from omg_cmdp.theory import bounds, errors
from omg_cmdp.theory.constants import Assumptions
from omg_cmdp.theory.quantities import Barrier, Comparison
from omg_cmdp.theory.rounds import Round
from omg_cmdp.theory.statements import Sides


@dataclasses.dataclass
class Totals:
    """The sums over the episodes of a run that the cumulative statements need."""

    episodes: int = 0
    last: int = 0
    regret: float = 0.0
    modelled: bool = True
    barred: bool = True
    horizon: int = 0
    states: int = 0
    actions: int = 0
    reward_error: float = 0.0
    dynamics_error: float = 0.0
    reward_excess: float = 0.0
    dynamics_excess: float = 0.0
    policy_error: float = 0.0
    exploration: float = 0.0
    estimation: float = 0.0
    least: float = math.inf
    gammas: set[float] = dataclasses.field(default_factory=set)
    plain: bool = True
    certificate: float = 0.0

    def add_model(self, c: Comparison, this: Round) -> None:
        """Add the errors of the model in one episode."""
        self.horizon, self.states, self.actions = c.horizon, c.model.states, c.model.actions
        self.reward_error += c.reward_error
        self.dynamics_error += c.dynamics_error
        self.policy_error += c.policy_error
        rewards, dynamics = excess_losses(c, this)
        self.reward_excess += rewards
        self.dynamics_excess += dynamics

    def add_barrier(self, c: Comparison, b: Barrier) -> None:
        """Add what the barrier of one episode costs."""
        least = float(b.m.min())
        estimate = errors.estimation(horizon=c.horizon, reward_error=c.reward_error, dynamics_error=c.dynamics_error)
        self.exploration += float(b.m.sum()) + b.defect
        self.estimation += estimate / least
        self.least = min(self.least, least)
        self.plain = self.plain and b.plain
        self.certificate = max(self.certificate, b.certificate)
        if len(self.gammas) < 2:
            self.gammas.add(b.gamma)

    def sides(self, reward_regret: float | None, dynamics_regret: float | None, delta: float) -> Iterator[Sides]:
        """Yield the statements about the whole run."""
        if not (self.modelled and self.episodes):
            return
        horizon, episodes = self.horizon, self.episodes
        measured = {"reward_error": self.reward_error, "dynamics_error": self.dynamics_error}
        value_error = errors.value_error(horizon=horizon, episodes=episodes, **measured)
        yield "policy errors, sum", self.policy_error, value_error
        if self.barred:
            yield "regret, from errors", self.regret, self.exploration + self.estimation + value_error

        # The lemmas hold for a negative regret too, but 0 in its place is a valid bound.
        squares = max(self.reward_excess if reward_regret is None else reward_regret, 0.0)
        logs = max(self.dynamics_excess if dynamics_regret is None else dynamics_regret, 0.0)
        rewards = errors.reward_error(horizon=horizon, delta=delta, reward_regret=squares)
        dynamics = errors.dynamics_error(horizon=horizon, delta=delta, dynamics_regret=logs)
        yield "square loss", self.reward_error, rewards
        yield "log loss", self.dynamics_error, dynamics
        if not self.barred:
            return
        estimate = errors.estimation(horizon=horizon, reward_error=rewards, dynamics_error=dynamics)
        rest = errors.value_error(horizon=horizon, episodes=episodes, reward_error=rewards, dynamics_error=dynamics)
        yield "theorem, corrected", self.regret, self.exploration + estimate / self.least + rest
        if self.plain and len(self.gammas) == 1 and self.certificate <= 1.0 / (16.0 * episodes):
            given = Assumptions(
                states=self.states,
                actions=self.actions,
                horizon=horizon,
                episodes=episodes,
                delta=delta,
                reward_regret=squares,
                dynamics_regret=logs,
            )
            printed = bounds.as_printed(given, gamma=next(iter(self.gammas)), exact=False)
            yield "theorem, printed", self.regret, printed


def excess_losses(c: Comparison, this: Round) -> tuple[float, float]:
    """Return the losses of the model minus those of the truth on the episode played: square loss, and log loss."""
    path = this.played
    squares = logs = 0.0
    believed, true = c.model, c.truth
    steps = zip(path.states.tolist(), path.actions.tolist(), path.rewards.tolist(), strict=False)
    for h, (state, action, reward) in enumerate(steps):
        after = path.states[h + 1]
        f_hat = believed.reward_steps[h % len(believed.reward_steps), state, action]
        f_true = true.reward_steps[h % len(true.reward_steps), state, action]
        squares += (f_hat - reward) ** 2 - (f_true - reward) ** 2
        p_hat = believed.kernel[h % len(believed.kernel), state, action, after]
        p_true = true.kernel[h % len(true.kernel), state, action, after]
        logs += math.log(p_true / p_hat) if p_hat > 0.0 and p_true > 0.0 else math.inf
    return float(squares), float(logs)
