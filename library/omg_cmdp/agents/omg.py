"""OMG-CMDP! (Levy, Cohen, Cassel and Mansour, ICML 2023, Algorithm 1)."""

from __future__ import annotations

from typing import final

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.agents.exploration import ExplorationRule, Situation, Tuned, exploration_rule
from omg_cmdp.contexts import Context, keyed
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory.constants import most_tuples
from omg_cmdp.validation import positive_integer


@final
class OMG(ModelAgent):
    """Optimism-free exploration by a log barrier over occupancy measures.

    `gamma` is "adaptive" (explore where plausible models expect to gain, `GainWeighted`), "uncertainty" (where the
    oracles are unsure, `UncertaintyWeighted`), "theory" (needs `episodes`), "anytime", a number, a function of the
    episode t = 1, 2, ..., or an `ExplorationRule`. Every plan is certified to γ·gap <= 1/(16T), T = `episodes`; if that
    is None, to 1/(16t²). `delta` is the failure probability of the theorem, `seed` that of the models drawn by the
    adaptive rule. Rewards lie in `reward_range`, and their sum over an episode in `return_range`, by default H times
    that.

    Several episodes may be under way: ask for policies before earlier trajectories arrive, and update in any order.
    What this does to the bounds is in docs/theory.md: they hold for batches that are answered and learned together,
    with B·H in the place of H; for episodes that overlap freely they need B copies of each oracle.
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
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, reward_range=reward_range, return_range=return_range)
        self.episodes = None if episodes is None else positive_integer("episodes", episodes)
        self.gamma = exploration_rule(gamma, self.episodes, delta, seed)
        self._tuples = most_tuples(space)

    def decide(self, context: Context) -> Decision:
        """Return the policy of one round of Algorithm 1."""
        episode, known = self.episodes_seen + 1, keyed(context)
        situation = Situation(
            episode=episode,
            known=known,
            model=self.model(known),
            reward_oracle=self.reward_oracle,
            dynamics_oracle=self.dynamics_oracle,
            tuples=self._tuples,
            tolerance=1.0 / (16.0 * (self.episodes or episode**2)),
            bounds=self.value_bounds,
        )
        return self.gamma.decide(situation)
