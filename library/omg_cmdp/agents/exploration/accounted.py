"""The rule with an account: play the gain-weighted plan while what it may have lost is below a budget.

Before each episode the models that the data have not refuted say what the gain-weighted plan loses at most, w_t
(`RegretCeiling`). These losses are added up in an account a. With Ē the oracles' concentration constant, n the number
of tuples, and B_t = 3·√(Ē·(n - H)·t):

    a + w_t <= B_t                                       the gain-weighted plan
    else, if the model's optimum loses at most 1/√t      that optimum
    else                                                 the barrier at γ = √(4N/Ē), restricted to actions that are
                                                         optimal in some plausible model

where N = Σ (n_i - H) over the episodes in which the barrier was played, this one included, n_i its tuples. With
probability 1 - δ, for all T at once,

    regret <= 9/2·√(Ē·(n - H)·T) + 2·√T      known dynamics, and a class of rewards whose Ē does not grow with T

(docs/theory.md, Theorem G, which also has other classes and unknown dynamics). While even H·t is far below B_t nothing
is computed: an episode counts as if all of it had been lost.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.exploration.base import ExplorationRule, Situation
from omg_cmdp.agents.exploration.gain import GainWeighted
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.occupancy import flow, reachable_states
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.finite.known import KnownDynamics
from omg_cmdp.persistence import State, joint_state, load_parts, numbers
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.plan import plan
from omg_cmdp.theory.bounds import BUDGET
from omg_cmdp.theory.ceiling.ceiling import Decider, RegretCeiling
from omg_cmdp.theory.ceiling.largest import Loss
from omg_cmdp.theory.errors import reward_error
from omg_cmdp.validation import FloatArray, instance_of, probability

inf = math.inf

EARLY = 8.0
"""The account is kept from the first episode on in which the budget is at most this times what can have been lost."""


@final
class Accounted(ExplorationRule):
    """The gain-weighted rule with a guarantee: a proven barrier takes over when it may have lost too much.

    While the account stays below the budget the policies are those of `rule`, to the bit. The guarantee holds whoever
    chooses the contexts, with probability 1 - δ, if the truth is in the oracles' classes and outcomes are learned
    before the next decision. Where no set of plausible models or no regret bound of the oracles is known, or the data
    refute the class, `rule` alone is played, nothing is proven, and `agent.account.reason` says why.

    Parameters
    ----------
    rule : GainWeighted, optional
        The rule that is played while the budget lasts; by default `GainWeighted()`.
    delta : float, default 0.05
        The failure probability δ.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> oracles = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
    >>> agent = omg.OMG(omg.Space(**sizes), *oracles)
    >>> for reward in (1.0, 0.0, 1.0):
    ...     agent.update(omg.Trajectory(context=None, states=[0, 0], actions=[1], rewards=[reward]))
    >>> 0.0 < agent.account.risked <= 3.0, agent.account.touched
    (True, 0)
    """

    def __init__(self, rule: GainWeighted | None = None, *, delta: float = 0.05) -> None:
        self.rule = GainWeighted() if rule is None else rule
        instance_of("rule", self.rule, GainWeighted)
        self.delta = probability("delta", delta)

    def decide(self, situation: Situation) -> Decision:
        """Return the gain-weighted plan, or what the account allows in its place."""
        account = situation.account
        return self.rule.decide(situation) if account is None else account.choice(situation).decision


class _Choice(NamedTuple):
    """What is played, and what it is charged."""

    decision: Decision
    risk: float
    """Added to the account, in the units of the rewards."""
    tuples: float = 0.0
    """Added to N."""
    barred: bool = False
    """Whether the gain-weighted plan was not allowed."""


class Account:
    """What the gain-weighted plan may have lost so far, and how often it was not allowed. An agent keeps it.

    Decisions are weighed with what is known when the agent learns of their outcome. If that is later than the next
    decision, the account says what the rule does and proves nothing.
    """

    def __init__(self, rule: Accounted, agent: Decider) -> None:
        self.risked = 0.0
        """What the episodes of the gain-weighted plan have cost at most, in the units of the rewards."""
        self.touched = 0
        """Number of episodes in which something else was played, because the budget was used up."""
        self.kept = False
        """Whether losses are computed; before, an episode counts as if all of it had been lost."""
        self._tuples = 0.0  # N
        self._rule, self._agent = rule, agent
        low, high = agent.reward_range or (0.0, 1.0)
        self._width = high - low
        self._known = agent.space.horizon == 1 or isinstance(agent.dynamics_oracle, KnownDynamics)
        self._last: tuple[int, Hashable, _Choice] | None = None
        self._wakes = 1.0  # the first episode in which the account may be kept

    @functools.cached_property
    def ceiling(self) -> RegretCeiling:
        """What is plausible; it learns from the time on at which the account is kept."""
        # δ/2 for the sets, and δ/2 for the concentration of the losses.
        return RegretCeiling(self._agent, delta=0.5 * self._rule.delta)

    @property
    def reason(self) -> str:
        """Why nothing is proven; empty if something is."""
        oracles = self._agent.reward_oracle, None if self._known else self._agent.dynamics_oracle
        for oracle in oracles:
            if oracle is not None and not math.isfinite(oracle.regret_bound(1, self._agent.space.horizon)):
                return f"no regret bound is proven for {type(oracle).__name__}"
        return self.ceiling.reason

    def budget(self, situation: Situation) -> float:
        """Return B_t, in the units of the rewards; inf if no regret bound is proven."""
        tuples = situation.tuples - situation.model.horizon * self._known
        return BUDGET * self._width * math.sqrt(self._error(situation) * tuples * situation.episode)

    def _error(self, situation: Situation) -> float:
        """Return Ē: of known dynamics Ē_sq, else 4·C, with which Theorem B has the form of Theorem A."""
        horizon, episode, delta = situation.model.horizon, situation.episode, self._rule.delta
        regrets = [each.regret_bound(episode, horizon) for each in (situation.reward_oracle, situation.dynamics_oracle)]
        if self._known:
            return reward_error(horizon=horizon, delta=delta, reward_regret=regrets[0]) if regrets[0] < inf else inf
        return 4.0 * situation.assumptions(episode, delta).estimation if max(regrets) < inf else inf

    def is_kept(self, situation: Situation) -> bool:
        """Return whether the account is kept by now."""
        if self.kept or situation.episode < self._wakes:
            return self.kept
        # Ē does not fall with t, so that B_t grows like √t at least: nothing changes before this ratio is 1.
        ratio = self.budget(situation) / (EARLY * self._width * situation.model.horizon * situation.episode)
        if ratio <= 1.0 and not self.ceiling.reason:
            return True
        self._wakes = situation.episode * ratio**2 if ratio > 1.0 else inf
        return False

    def choice(self, situation: Situation) -> _Choice:
        """Return what to play in the place of the gain-weighted plan, often that itself."""
        if not self.is_kept(situation):
            return _Choice(self._rule.rule.decide(situation), self._width * situation.model.horizon)
        last, key = self._last, situation.known.key
        if last is not None and key is not None and last[:2] == (situation.episode, key):
            return last[2]
        found = self._weigh(situation, self._rule.rule.decide(situation))
        self._last = situation.episode, key, found
        return found

    def _weigh(self, situation: Situation, own: Decision) -> _Choice:
        if self.ceiling.reason:
            return _Choice(own, 0.0)
        lost = self.ceiling.loss(situation.known, own.policy)
        if self.risked + lost.most <= self.budget(situation):
            return _Choice(own, lost.most)
        greedy = optimal_policy(situation.model)[0]
        if self.ceiling.loss(situation.known, greedy).most <= self._width / math.sqrt(situation.episode):
            return _Choice(_instead(own, greedy), 0.0, barred=True)
        return self._restricted(situation, own, lost)

    def _restricted(self, situation: Situation, own: Decision, lost: Loss) -> _Choice:
        """Return the barrier over the actions of plausible optima, at its proven γ."""
        model = situation.model
        allowed = model.admissible & lost.plausible.any(axis=0)
        smaller = TabularMDP(
            transitions=model.transitions,
            rewards=model.rewards,
            horizon=model.horizon,
            start=model.start,
            admissible=allowed,
        )
        tuples = float((reachable_states(smaller)[:, :, None] & allowed).sum() - model.horizon * self._known)
        if tuples <= 0.0:
            return _Choice(_instead(own, optimal_policy(smaller)[0]), 0.0, barred=True)
        gamma = math.sqrt(4.0 * (self._tuples + tuples) / self._error(situation))
        solution = plan(smaller, gamma, tolerance=situation.tolerance)
        made = _instead(own, solution.policy)._replace(gamma=gamma, certificate=solution.certificate)
        return _Choice(made, 0.0, tuples, barred=True)

    def note(self, episode: int, situation: Callable[[], Situation], trajectory: Trajectory) -> Callable[[], None]:
        """Return a call that charges the episode, and learns from it."""
        decided = None if episode < self._wakes and not self.kept else situation()
        if decided is None or not self.is_kept(decided):
            return self._charge_whole
        made = self.choice(decided)

        def charge() -> None:
            self.kept, self._last = True, None
            self.risked += made.risk
            self._tuples += made.tuples
            self.touched += made.barred
            self.ceiling.learn(trajectory)

        return charge

    def _charge_whole(self) -> None:
        self.risked += self._width * self._agent.space.horizon

    def note_rewards(self, trajectory: Trajectory) -> None:
        """Learn rewards that came after their episode."""
        if self.kept:
            self._last = None
            self.ceiling.learn(trajectory, late=True)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the account, and what is plausible if it is kept."""
        sums = np.array([self.risked, self._tuples, float(self.touched), float(self.kept)])
        return {"account": sums, **joint_state({"ceiling": self.ceiling} if self.kept else {})}

    def load_state(self, state: State) -> None:
        """Load the account of an agent with the same settings."""
        risked, tuples, touched, kept = numbers("account", state, (4,)).tolist()
        if kept:
            load_parts(state, {"ceiling": self.ceiling})
        elif self.kept:
            del self.ceiling
        self.risked, self._tuples, self.touched, self.kept = risked, tuples, int(touched), bool(kept)
        self._last, self._wakes = None, 1.0


def _instead(own: Decision, policy: FloatArray) -> Decision:
    """Return the decision to play `policy`, an optimum or the plan of a barrier that leaves out tuples."""
    assert own.model is not None
    occupancy = flow(own.model, policy)[0]
    return Decision(policy=policy, model=own.model, occupancy=occupancy, certificate=0.0, regulariser="restricted")
