"""OMG-CMDP! (Levy, Cohen, Cassel and Mansour, ICML 2023, Algorithm 1)."""

from __future__ import annotations

import functools
from typing import Unpack, final

from omg_cmdp.agents.base import Ranges
from omg_cmdp.agents.budgets import BudgetedAgent, Spending
from omg_cmdp.agents.exploration.accounted import Account
from omg_cmdp.agents.exploration.base import ExplorationRule, Situation
from omg_cmdp.agents.exploration.named import exploration_rule
from omg_cmdp.agents.exploration.schedules import Tuned
from omg_cmdp.contexts import Context, Keyed, keyed
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import Stateful
from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory.constants import most_tuples
from omg_cmdp.validation import FloatArray, positive_integer


@final
class OMG(BudgetedAgent):
    """Optimism-free exploration by a log barrier over occupancy measures.

    In every episode the plan maximises ⟨q, f̂⟩ + Σ m·log q over the occupancy measures q of the model (f̂, P̂), with
    m = w/γ as the exploration rule says. Every plan is certified to γ·gap <= 1/(16T), T = `episodes`; if that is None,
    to 1/(16t²).

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
    **spending
        `costs` and `budgets`: what decisions cost, and what an episode may cost (`BudgetedAgent`).

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
        **spending: Unpack[Spending],
    ) -> None:
        ranges: Ranges = {"reward_range": reward_range, "return_range": return_range}
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges, **spending)
        self.episodes = None if episodes is None else positive_integer("episodes", episodes)
        self.gamma = exploration_rule(gamma, self.episodes, delta, seed)
        self._tuples = most_tuples(space)
        # What an account proves is proven without budgets.
        self._memory = self.gamma.memory(self) if self._limits is None else None

    @property
    def account(self) -> Account | None:
        """What the adaptive rule may have lost so far, and how often its budget was used up; None for other rules."""
        return self._memory if isinstance(self._memory, Account) else None

    def decide(self, context: Context) -> Decision:
        """Return the policy of one round of Algorithm 1."""
        return self.gamma.decide(self._situation(keyed(context)))

    def _situation(self, known: Keyed) -> Situation:
        episode = self.episodes_seen + 1
        return Situation(
            episode=episode,
            known=known,
            model=self.model(known),
            reward_oracle=self.reward_oracle,
            dynamics_oracle=self.dynamics_oracle,
            tuples=self._tuples,
            tolerance=1.0 / (16.0 * (self.episodes or episode**2)),
            bounds=self.value_bounds,
            memory=self._memory,
            limits=self.limits(known),
        )

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        memory = self._memory
        situation = functools.partial(self._situation, trajectory.known)
        remember = None if memory is None else memory.note(self.episodes_seen + 1, situation, trajectory)
        super()._learn(trajectory, rewards)
        if remember is not None:
            remember()

    def _learn_rewards(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        super()._learn_rewards(trajectory, rewards)
        if self._memory is not None:
            self._memory.note_rewards(trajectory)

    def _oracles(self) -> dict[str, Stateful]:
        return super()._oracles() if self._memory is None else {**super()._oracles(), "memory": self._memory}
