"""OMG-CMDP! (Levy, Cohen, Cassel and Mansour, ICML 2023, Algorithm 1)."""

from __future__ import annotations

import functools
from typing import Any, Unpack, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.agents.base import Ranges
from omg_cmdp.agents.budgets import BudgetedAgent, Spending
from omg_cmdp.agents.caution import Caution
from omg_cmdp.agents.exploration.accounted import Account, Accounted
from omg_cmdp.agents.exploration.base import ExplorationRule, Situation
from omg_cmdp.agents.exploration.named import exploration_rule
from omg_cmdp.agents.exploration.schedules import Tuned
from omg_cmdp.agents.purse import Purse, least_costly
from omg_cmdp.contexts import Context, Keyed, keyed
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import Stateful
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.solution import Status
from omg_cmdp.theory.constants import most_tuples
from omg_cmdp.validation import FloatArray, instance_of, positive_integer, probability


@final
class OMG(BudgetedAgent):
    """Optimism-free exploration by a log barrier over occupancy measures.

    In every episode the plan maximises ⟨q, f̂⟩ + Σ m·log q over the occupancy measures q of the model (f̂, P̂), with
    m = w/γ as the exploration rule says; with the default rule, ⟨q, f̂⟩ + Σ √(w·Q), w what can be gained. Every plan
    of a barrier is certified to γ·gap <= 1/(16T), T = `episodes`; if that is None, to 1/(16t²). Plans of the default
    rule are certified to the gap that they have.

    Several episodes may be under way: ask for policies before earlier trajectories arrive, and update in any order.
    What this does to the bounds is in docs/theory.md: they hold for batches that are answered and learned together,
    with B·H in the place of H; for episodes that overlap freely with oracles made for as much delay, `delay=d`; with
    copies of oracles only if the delay is constant (docs/oracles.md, Theorems 6 to 8).

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_oracle : RewardOracle
        Learns the mean rewards; the model's f̂.
    dynamics_oracle : DynamicsOracle
        Learns the transitions; the model's P̂.
    gamma : str, float, callable or ExplorationRule, default "adaptive"
        How to explore. "adaptive": where plausible models expect to gain (`GainWeighted`), with nothing to tune, while
        what that may have lost is below a budget; then by a barrier with a proven bound (`Accounted`).
        "uncertainty": where the oracles are unsure (`UncertaintyWeighted`). "theory": the γ of the theorem, which needs
        `episodes`. "anytime": a γ_t that needs no T. A number, or a function of the episode t = 1, 2, ...
    episodes : int, optional
        T, if it is known.
    delta : float, default 0.05
        The failure probability of what is proven: for "adaptive", "theory" and "anytime".
    seed : int, default 0
        The seed of the models that the adaptive rule draws.
    reward_range : (float, float), default (0, 1)
        Between which numbers every reward lies, in the units in which rewards arrive.
    return_range : (float, float), optional
        Between which numbers the sum of an episode's rewards lies, in the same units; by default H times
        `reward_range`. A tighter range makes bonuses and plausible values tighter too.
    total_budget : array (J,) or float, optional
        What all `episodes` together may cost, in the place of `budgets`: prices that follow what was spent make it
        last (`Purse`). Where a policy costs nothing, it is never exceeded.
    cautious : bool, default False
        Whether budgets are kept in every plausible model, and so in the truth, with probability 1 - `delta` in all
        episodes at once, rather than in the mean model. It needs oracles of dynamics and costs that are known, finite
        or counts.
    safe_policy : array (H, S, A), optional
        What a cautious agent plays before it knows a policy that keeps the budgets; by default that of least excess.
    **spending
        `costs`, `budgets` and `cost_range`: what decisions cost, and what an episode may cost (`BudgetedAgent`).

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> sizes = {"states": 2, "actions": 2, "horizon": 3}
    >>> agent = OMG(Space(**sizes), omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> agent.policy("a patient").shape
    (3, 2, 2)
    >>> steps = {"states": [0, 1, 1, 0], "actions": [1, 0, 0], "rewards": [0.0, 1.0, 0.0]}
    >>> agent.update(omg.Trajectory(context="a patient", **steps))
    >>> agent.episodes_seen
    1

    References
    ----------
    Levy, Cohen, Cassel and Mansour, ICML 2023, Algorithm 1.
    """

    settings = ("gamma", "episodes")
    takes_keyed = True

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        gamma: str | Tuned | ExplorationRule = "adaptive",
        *,
        episodes: int | None = None,
        delta: float = 0.05,
        seed: int = 0,
        reward_range: tuple[float, float] = (0.0, 1.0),
        return_range: tuple[float, float] | None = None,
        total_budget: ArrayLike | None = None,
        cautious: bool = False,
        safe_policy: ArrayLike | None = None,
        **spending: Unpack[Spending],
    ) -> None:
        if total_budget is not None:
            if spending.get("budgets") is not None:
                raise ValueError("give `budgets` for each episode or a `total_budget` for all of them, not both")
            spending["budgets"] = np.reshape(total_budget, -1)  # no episode may cost more than all of them
        ranges: Ranges = {"reward_range": reward_range, "return_range": return_range}
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges, **spending)
        self.episodes = None if episodes is None else positive_integer("episodes", episodes)
        self.purse = None if total_budget is None else Purse(total_budget, self.episodes, self.value_bounds.span)
        """What is left of the total budget, and its prices; None without one."""
        self._caution = _caution(self, cautious, delta, safe_policy)
        self.gamma = exploration_rule(gamma, self.episodes, delta, seed)
        self._tuples = most_tuples(space)
        self.account: Account | None = None
        """What the adaptive rule may have lost so far, and how often its budget was used up; None for other rules."""
        if isinstance(self.gamma, Accounted) and self._limits is None:  # what it proves is proven without budgets
            self.account = Account(self.gamma, self)

    def decide(self, context: Context) -> Decision:
        """Return the policy of one round of Algorithm 1, within the budgets."""
        situation = self._situation(keyed(context))
        model, limits, purse = situation.model, situation.limits, self.purse
        if limits is not None and self._caution is not None:
            return self._caution.keep(
                situation.known, model, limits, lambda within: self.gamma.decide(situation._replace(limits=within))
            )
        if limits is None or purse is None:
            return self.gamma.decide(situation)
        prices = purse.prices.copy()
        if purse.suffices(model, limits, situation.episode):
            return self.gamma.decide(situation)._replace(prices=prices)
        told: dict[str, Any] = {"limits": limits, "prices": prices, "status": Status.SPENT, "regulariser": "spent"}
        return Decision(policy=least_costly(model, limits), model=model, **told)

    def _situation(self, known: Keyed) -> Situation:
        episode, limits = self.episodes_seen + 1, self.limits(known)
        return Situation(
            episode=episode,
            known=known,
            model=self.model(known),
            reward_oracle=self.reward_oracle,
            dynamics_oracle=self.dynamics_oracle,
            tuples=self._tuples,
            tolerance=1.0 / (16.0 * (self.episodes or episode**2)),
            bounds=self.value_bounds,
            account=self.account,
            limits=limits,
            charges=None if limits is None or self.purse is None else limits.charges(self.purse.prices),
        )

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        charge = None
        if self.account is not None:
            situation = functools.partial(self._situation, trajectory.known)
            charge = self.account.note(self.episodes_seen + 1, situation, trajectory)
        limits = self.limits(trajectory.known)
        paid = self.paid(trajectory) if self.purse is not None or self._caution is not None else None
        super()._learn(trajectory, rewards)
        if charge is not None:
            charge()
        if self.purse is not None and paid is not None and limits is not None:
            self.purse.charge(paid.sum(axis=1), limits, self.space.horizon)
        if self._caution is not None and paid is not None:
            self._caution.learn(trajectory, paid)

    def _learn_rewards(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        super()._learn_rewards(trajectory, rewards)
        if self.account is not None:
            self.account.note_rewards(trajectory)

    def _oracles(self) -> dict[str, Stateful]:
        own = {"memory": self.account, "purse": self.purse, "caution": self._caution}
        return {**super()._oracles(), **{name: part for name, part in own.items() if part is not None}}

    def _settings(self) -> str:
        caution = "" if self._caution is None else f", {self._caution}"
        return super()._settings() + (f", total, {self.episodes} episodes" if self.purse is not None else "") + caution


def _caution(agent: OMG, cautious: bool, delta: float, safe_policy: ArrayLike | None) -> Caution | None:
    """Return what keeps the budgets in every plausible model, if that is asked for."""
    instance_of("cautious", cautious, bool)
    if not cautious:
        if safe_policy is not None:
            raise ValueError("`safe_policy` is for an agent with `cautious=True`")
        return None
    if agent.purse is not None or agent._limits is None:
        raise ValueError("`cautious` needs `costs` and `budgets` of each episode")
    safe = None if safe_policy is None else np.array(agent.space.checked_policy(safe_policy))
    return Caution(agent, probability("delta", delta), safe)
