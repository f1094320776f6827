"""Budgets that are kept in every plausible model, and so in the truth, with probability 1 - δ in all episodes at once.

The models that the data have not refuted (`theory.ceiling`) bound what a policy costs: backward,

    W_h(s) = Σ_a π_h(a|s)·(c⁺_h(s, a) + max_P Σ_s' P(s'|s, a)·W_{h+1}(s')),

c⁺ the largest plausible cost, P any plausible row. The plan keeps the budgets for the costs c⁺ + max_P P·W - P̂·W of the
plan before it, whose cost in the mean model is W; after a few rounds it keeps them itself. If not, it is mixed with
the policy that is cheapest in this sense, as much as needed; if that does not keep them either, nothing is known to be
safe yet.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omg_cmdp.agents.budgets import BudgetedAgent
from omg_cmdp.contexts import Keyed
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.mdp.budgets import Budgets
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.persistence import Learned
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.solution import Status
from omg_cmdp.theory.ceiling.sets import Observed, PlausibleRows, VersionSpace
from omg_cmdp.theory.ceiling.spaces import is_known, version_space
from omg_cmdp.validation import FloatArray, unit_scaled

ROUNDS, HALVINGS = 3, 20
"""Plans that are tried, and halvings of the share of a plan that is mixed with the cheapest policy."""


class Caution(Learned):
    """What is plausible of dynamics and costs, and plans that keep the budgets in all of it. An agent keeps it."""

    def __init__(self, agent: BudgetedAgent, delta: float, safe_policy: FloatArray | None) -> None:
        self._agent, self._safe, self._delta = agent, safe_policy, delta
        oracles = agent.dynamics_oracle, *agent.cost_oracles
        learned = max(sum(not is_known(each) for each in oracles), 1)
        self._versions: list[VersionSpace] = []
        for each in oracles:
            versions = version_space(each, delta / learned)
            if versions is None:
                rule = "needs oracles of dynamics and costs that are known, finite or counts"
                raise ValueError(f"`cautious` {rule}: no set of plausible models is known for {type(each).__name__}")
            self._versions.append(versions)

    def __str__(self) -> str:
        """The settings that a saved agent must share."""
        kinds = " ".join(type(each).__name__ for each in self._versions)
        return f"cautious {self._delta}, {kinds}, safe policy {fingerprint(self._safe)}"

    def learn(self, trajectory: Trajectory, paid: FloatArray) -> None:
        """Take in an episode, and what its steps cost, (J, L)."""
        states, actions, _ = trajectory.raw
        moves = len(states) - 1
        steps, pairs = np.arange(len(actions)), states[: len(actions)] * self._agent.space.actions + actions
        if moves:
            seen = Observed(steps[:moves], pairs[:moves], states[1:])
            self._versions[0].learn(trajectory.known, seen)
        for versions, costs in zip(self._versions[1:], unit_scaled(paid, self._agent.cost_range), strict=False):
            versions.learn(trajectory.known, Observed(steps, pairs, costs))

    def keep(self, known: Keyed, model: TabularMDP, limits: Budgets, decide: Callable[[Budgets], Decision]) -> Decision:
        """Return a decision that keeps the budgets in every plausible model, if one is known."""
        decision = decide(limits)
        if any(versions.refuted for versions in self._versions):
            return self._give_up(decision, decision.policy)
        rows, costs = self._versions[0].plausible(known).rows, self._highest(known, model, limits)
        for _ in range(ROUNDS):
            worst, marked = _at_worst(model, rows, costs, decision.policy)
            if (worst <= limits.limits).all() and decision.status is not Status.INFEASIBLE:
                return decision
            decision = decide(limits._replace(costs=marked))
        cheapest = _cheapest(model, rows, costs)
        if not (_at_worst(model, rows, costs, cheapest)[0] <= limits.limits).all():
            return self._give_up(decision, cheapest)
        share, step = 0.0, 1.0
        for _ in range(HALVINGS):
            trial = (1.0 - share - step) * cheapest + (share + step) * decision.policy
            if share + step <= 1.0 and (_at_worst(model, rows, costs, trial)[0] <= limits.limits).all():
                share += step
            step /= 2.0
        policy = (1.0 - share) * cheapest + share * decision.policy
        return _instead(decision, policy, Status.SOLVED if share == 1.0 else Status.CAUTIOUS)

    def _highest(self, known: Keyed, model: TabularMDP, limits: Budgets) -> FloatArray:
        """Return the largest plausible costs, scaled as `limits` are, (J, H, S, A)."""
        shape = (len(limits.limits), model.horizon, *model.admissible.shape)
        if len(self._versions) == 1:
            return np.array(np.broadcast_to(limits.costs, shape))
        low, high = self._agent.cost_range
        tables = [np.broadcast_to(each.plausible(known).high, shape[1:]) for each in self._versions[1:]]
        scaled = (low + (high - low) * np.stack(tables)) / limits.scales[:, None, None, None]
        return np.where(model.admissible, scaled, 0.0)

    def _give_up(self, decision: Decision, otherwise: FloatArray) -> Decision:
        if self._safe is None:
            return _instead(decision, otherwise, Status.UNSAFE)
        return _instead(decision, self._safe.copy(), Status.SAFE_POLICY)

    def parts(self) -> dict[str, VersionSpace]:
        """Return what is plausible of each oracle."""
        return {str(number): each for number, each in enumerate(self._versions)}


def _at_worst(
    model: TabularMDP, rows: PlausibleRows, costs: FloatArray, policy: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the most that `policy` can cost, (J,), and costs (J, H, S, A) that make it cost this in the mean model."""
    after, marked = np.zeros((len(costs), model.states)), np.empty(costs.shape)
    means = model.transition_steps
    for h in reversed(range(model.horizon)):
        highest = rows.highest(h, after)
        marked[:, h] = costs[:, h] + highest - np.einsum("sai,ji->jsa", means[h % len(means)], after)
        after = (policy[h] * (costs[:, h] + highest)).sum(axis=2)
    return after @ model.start, marked


def _cheapest(model: TabularMDP, rows: PlausibleRows, costs: FloatArray) -> FloatArray:
    """Return the policy (H, S, A) whose sum of costs is least in its worst plausible model."""
    after, policy = np.zeros((1, model.states)), np.zeros(costs.shape[1:])
    for h in reversed(range(model.horizon)):
        worth = np.where(model.admissible, costs[:, h].sum(axis=0) + rows.highest(h, after)[0], np.inf)
        policy[h] = np.eye(model.actions)[worth.argmin(axis=1)]
        after = worth.min(axis=1)[None]
    return policy


def _instead(decision: Decision, policy: FloatArray, status: Status) -> Decision:
    """Return the decision to play another policy than the plan, of whose barrier nothing is claimed."""
    assert decision.model is not None
    return Decision(
        policy=policy,
        model=decision.model,
        limits=decision.limits,
        prices=decision.prices,
        status=status,
        regulariser="cautious",
    )
