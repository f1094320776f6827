"""RM-UCDD: optimism where every state is reached anyway (Levy and Mansour, AAAI 2023), the forerunner of UC³RL.

It assumes that every policy reaches every state at every step but the first, in every context, with probability p_min
or more, and asks in a context c how often its policies *would have chosen* a in s at step h:

    N_h(s, a; c) = 1 + Σ_{i<t} π_i^c(a|h, s),    b = min(1, β_R/(2·p_min·N)) + H·min(2, β_P/(2·p_min·N)),   β = β₀·√T

π_i^c is optimal for f̂_i(c) + b in P̂_i(c), at the N of that round; both models are least-squares fits, the dynamics of
indicators of the next state (`OfflineLeastSquaresDynamics`, `OfflineLinearDynamics`). The 1 is for the first A rounds,
in which one action is played everywhere.

Reachability makes choices as good as visits: q_h(s, a|π, P*) >= p_min·π(a|h, s), and so p_min·N is at most the sum of
the true occupancies q of all policies of the rounds so far, those of the warm-up among them. By AM-GM and d* <= 1,

    V*(c) - Ṽ(c) <= Σ d*·p_min·N·[(f* - f̂)²/(2β_R) + H·‖P* - P̂‖₁²/(2β_P)]
                 <= Σ_{i<t} Σ q(π_i^c, P*)·[(f* - f̂)²/(2β_R) + H·‖P* - P̂‖₁²/(2β_P)]:

*optimism in expectation*, because the mean over c of the right side is what the fits would lose, in expectation, on the
data that they were made of, and no more than the class is large: 2·log(|F|/δ) in-sample for the rewards, 4S·log(|P|/δ)
for the dynamics (`oracles.offline`). At the first step only start states are reached, and only they count in d*.

The paper proves Õ((H + 1/p_min)·H·S^(3/2)·√(A·T·log(max(|F|, |P|)/δ))) for i.i.d. contexts. What is not certain: the
constants, which are β₀ here, and the exact place of p_min. Contexts are listed or not, as for UC³RL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack, final

import numpy as np

from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_number
from omg_lab.rivals.counterfactual import playing
from omg_lab.rivals.counterfactual.rounds import Bonus, Round, Tables


@final
class _Choices(Round):
    """Plan with the bonus, and add the choices to N."""

    def __init__(self, space: Space, bounds: ValueBounds, bonus: Bonus, reachability: float) -> None:
        super().__init__(space, bounds)
        self._bonus, self._reachability = bonus, reachability
        self.warm_up = int(space.admissible.sum(axis=1).max())

    def play(self, tables: Tables, memory: FloatArray, fitted: int, rounds: int) -> tuple[FloatArray, FloatArray]:
        policies, _ = self.plan(tables, self._bonus(self._reachability * memory[:, 0], fitted))
        return policies, memory + rounds * policies[:, None]

    def opening(self, number: int) -> FloatArray:
        """Return the policy (H, S, A) that plays, in every state, its admissible action of this `number`."""
        policy = np.zeros(self.sizes)
        for state, allowed in enumerate(self.space.admissible):
            actions = np.flatnonzero(allowed)
            policy[:, state, actions[number % len(actions)]] = 1.0
        return policy


@final
class RMUCDD(ModelAgent):
    """Plan with a bonus for what would rarely have been chosen in this context; all states must be easy to reach.

    `reachability` is p_min; 1 leaves it to `scale`, which is β₀. The other arguments are those of `UC3RL`.
    """

    settings = ("scales", "episodes", "reachability", "history")
    model, visits = playing.model, playing.visits
    _learn, _learned, _load_learned = playing.learn, playing.learned, playing.load_learned

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        *,
        contexts: Iterable[Context] | None = None,
        scale: float | tuple[float, float] = 0.03,
        episodes: int | None = None,
        reachability: float = 1.0,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        self._bonus = Bonus.of(scale, episodes, self.value_bounds)
        self.scales, self.episodes = self._bonus.scales, self._bonus.episodes
        self.reachability = positive_number("reachability", reachability)
        if self.reachability > 1.0:
            raise ValueError(f"`reachability` must lie in (0, 1], got {reachability!r}")
        self._round = _Choices(space, self.value_bounds, self._bonus, self.reachability)
        self.history = playing.history_of(self, self._round, contexts)

    def decide(self, context: Context) -> Decision:
        """Return one action everywhere in the first A rounds, and then a plan."""
        if self.episodes_seen < self._round.warm_up:
            return Decision(policy=self._round.opening(self.episodes_seen), model=self.model(context))
        return playing.decide(self, context)

    def bonus(self, context: Context) -> FloatArray:
        """Return the bonus b (H, S, A)."""
        return self._bonus(self.reachability * self.visits(context), self.history.fitted)
