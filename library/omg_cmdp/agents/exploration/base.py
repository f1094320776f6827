"""What an exploration rule knows, and what it must do."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from omg_cmdp.contexts import Context, Keyed, unchanging
from omg_cmdp.fingerprints import setting
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.budgets import Budgets
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.plan import plan
from omg_cmdp.planning.solution import Solution, Status
from omg_cmdp.recipes.recipe import Made
from omg_cmdp.theory.constants import Assumptions
from omg_cmdp.validation import LARGEST_FLOAT, FloatArray, float_table, in_range, one_of_shapes, positive_number

if TYPE_CHECKING:
    from omg_cmdp.agents.exploration.accounted import Account

compiled, frank_wolfe = Lazy("omg_cmdp.mdp.compiled"), Lazy("omg_cmdp.agents.exploration.frank_wolfe")

ENOUGH, ROUNDS = 0.05, 8
"""When a plan for gains is done: at this gap, relative to what it pays for them, or after this many rounds."""


class Situation(NamedTuple):
    """What a rule knows: the episode, its context, the model for it, and the oracles behind the model.

    OMG makes one for every decision. Its methods `plan`, `plan_roots` and `plan_gains` turn weights into a `Decision`.
    """

    episode: int
    """Counted from 1."""
    known: Keyed
    """The context with its key."""
    model: TabularMDP
    """The MDP that the oracles predict for the context."""
    reward_oracle: RewardOracle
    """The oracle of rewards, to be asked and not to be changed."""
    dynamics_oracle: DynamicsOracle
    """The oracle of dynamics, alike."""
    tuples: int
    """An upper bound on the number n of reachable (h, s, a)."""
    tolerance: float
    """What the certificate of the plan must not exceed."""
    bounds: ValueBounds
    """What can be earned from each step on."""
    account: Account | None = None
    """What the rule may have lost so far; None for rules that keep no account."""
    limits: Budgets | None = None
    """What an episode costs and may cost; None without budgets."""
    charges: FloatArray | None = None
    """What decisions are charged beforehand, λ·c (K, S, A), to make a total budget last; None: nothing."""

    @property
    def context(self) -> Context:
        """The context of the episode; what could be changed in place is a copy."""
        return unchanging(self.known.context)

    def plan(self, gamma: float, weights: FloatArray | None = None, start: Solution | None = None) -> Decision:
        """Return the plan for the barrier m = weights/γ; without `weights` they are 1. `start` saves time."""
        solution = self._solve(gamma, weights=weights, tolerance=self.tolerance, start=start)
        return self._decision(solution, gamma, weights, solution.certificate)

    def plan_roots(self, u: FloatArray, floor: float) -> Decision:
        """Return the plan that maximises ⟨q, f̂⟩ + Σ √(u·q) + floor·Σ log q, u (H, S, A).

        It is also the plan for the barrier of its own weights, m = ½·√(q̂·u) + floor, and is certified as that: the
        certificate is relative to their mean, 1/γ. Where it falls short, the barrier of these weights is solved on,
        from there: weights may be any numbers, but a plan must be that of its weights.
        """
        floor = positive_number("floor", floor)
        u = _not_negative("u", u, (self.model.horizon, self.model.states, self.model.actions))
        # To a gap of the tolerance times the weight that is likely: what the weights are is known afterwards.
        solution = self._solve(uncertainty=u, floor=floor, tolerance=self.tolerance * likely_weight(u, floor))
        weights = 0.5 * np.sqrt(solution.occupancy * u) + floor
        gamma = weights.size / _in_order(weights)
        weights *= gamma
        certificate = gamma * solution.certificate
        if certificate > self.tolerance and solution.status is not Status.INFEASIBLE:
            return self.plan(gamma, weights, start=solution)
        return self._decision(solution, gamma, weights, certificate)

    def plan_gains(self, w: FloatArray, visits: FloatArray) -> Decision:
        """Return a plan for max ⟨q, f̂⟩ + Σ √(w·Q), Q = Σ_h q_h; for w (H, S, A) each step has a root of its own.

        It falls short of the maximum by `certificate`/γ at most, which is within the situation's tolerance, or a
        twentieth of Σ √(w·Q); after eight rounds it may be more. Budgets are not kept.

        Parameters
        ----------
        w : array (S, A) or (H, S, A)
            The squares of what can be gained.
        visits : array (H, S, A)
            The occupancy measure from which the plan begins. Roots to which neither it nor the model's optimum goes are
            left out.

        Returns
        -------
        Decision
            The plan. Its weights are γ·½·√(w/Q)·q, 0 where nothing is to be gained; 1/γ is their mean before that, and
            the tolerance. `omg.certificate` proves it with these weights, to within its own certificate.
        """
        shape = self.model.horizon, self.model.states, self.model.actions
        roots = _not_negative("w", w, shape[1:], shape).reshape(-1, *shape[1:])
        visits = _not_negative("visits", visits, shape)
        (policy, occupancy, weights), values = np.empty((3, *shape)), np.empty(shape[:2])
        given = *self.model.raw, roots, visits, self.tolerance, ENOUGH, ROUNDS
        gap, rounds, gamma = frank_wolfe.explore(*given, policy, occupancy, weights, values)
        return Decision(
            policy=policy,
            model=self.model,
            gamma=gamma,
            weights=weights,
            occupancy=occupancy,
            values=values,
            certificate=gamma * gap,
            iterations=rounds,
            regulariser="root",
        )

    def least_weight(self, floor: float) -> float:
        """Return floor/√(n·t): over T episodes it costs at most 2·floor·√(nT)."""
        return positive_number("floor", floor) / math.sqrt(self.tuples * self.episode)

    def _solve(self, gamma: float | None = None, **options: Any) -> Solution:
        """Return the plan within the budgets, for the model's rewards less what is charged.

        Rewards after charges are moved and scaled to [0, 1]; the plan is the same if the regulariser is scaled too.
        """
        if self.charges is None:
            return plan(self.model, gamma, budgets=self.limits, **options)
        left = self.model.raw[1] - self.charges
        low, high = left[:, self.model.admissible].min(), left[:, self.model.admissible].max()
        width = max(high - low, 1e-300)
        rewards = np.clip((left - low) / width, 0.0, 1.0)
        transitions = self.model.transitions
        model = self.model.space.mdp(transitions=transitions, rewards=rewards[0] if len(rewards) == 1 else rewards)
        if gamma is None:
            options |= {name: options[name] / width**power for name, power in (("uncertainty", 2), ("floor", 1))}
            options["tolerance"] /= width
        found = plan(model, None if gamma is None else gamma * width, budgets=self.limits, **options)
        steps = np.arange(model.horizon, 0, -1.0)[:, None]
        proven = found.certificate * (width if gamma is None else 1.0)
        return dataclasses.replace(found, values=width * found.values + low * steps, certificate=proven)

    def _decision(self, solution: Solution, gamma: float, weights: FloatArray | None, certificate: float) -> Decision:
        return Decision(
            policy=solution.policy,
            model=self.model,
            gamma=gamma,
            weights=weights,
            occupancy=solution.occupancy,
            values=solution.values,
            certificate=certificate,
            iterations=solution.iterations,
            regulariser=self._regulariser,
            limits=self.limits,
            prices=None if self.limits is None else solution.prices,
            status=None if self.limits is None else solution.status,
        )

    @property
    def _regulariser(self) -> str:
        if self.charges is not None:
            return "log after charges"
        return "log" if self.limits is None else "log within budgets"

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


def likely_weight(u: FloatArray, floor: float) -> float:
    """Return a tenth of the mean of ½·√(q·u) + floor for q = 1/(SA): how large the weights of a plan will be."""
    return 0.1 * (0.5 * _in_order(np.sqrt(u)) / (u.size * math.sqrt(u[0].size)) + floor)


def _in_order(table: FloatArray) -> float:
    """Return the sum of the entries, added one by one: numpy's own sums depend on how long its blocks are."""
    return float(np.cumsum(table)[-1])


def _not_negative(name: str, table: FloatArray, *shapes: tuple[int, ...]) -> FloatArray:
    """Return the table, of one of these shapes and without negative entries, as compiled code reads it."""
    if not (type(table) is np.ndarray and table.dtype == np.float64 and table.flags.carray):
        table = float_table(name, table)
    one_of_shapes(name, table, *shapes)
    if not compiled.is_within(table if table.ndim == 3 else table[None], 0.0, LARGEST_FLOAT):
        in_range(name, table, 0.0, math.inf)
    return table


class ExplorationRule(Made, abc.ABC):
    """A rule that chooses the weights of the barrier. One of your own needs the method `decide`.

    It often ends with `return situation.plan(gamma, weights)`.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> class Slowly(ExplorationRule):
    ...     def decide(self, situation):
    ...         return situation.plan(gamma=10.0 * situation.episode)
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> oracles = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
    >>> omg.OMG(omg.Space(**sizes), *oracles, gamma=Slowly()).decide(None).gamma
    10.0
    """

    @abc.abstractmethod
    def decide(self, situation: Situation) -> Decision:
        """Return what to play in the next episode. Pure: asking twice changes nothing."""

    def __str__(self) -> str:
        """The rule's settings: equal for rules that do the same."""
        own = [f"{name}={setting(value)}" for name, value in vars(self).items() if not name.startswith("_")]
        return f"{type(self).__name__}({', '.join(own)})"

    def __repr__(self) -> str:
        return str(self)
