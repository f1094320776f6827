"""UC³RL: optimism by counterfactual bonuses (Levy, Cassel, Cohen and Mansour, ICML 2024).

A general class knows no counts: two contexts may have nothing in common. UC³RL asks instead what it *would* have done
in every earlier round i, with the model (f̂_i, P̂_i) of that round, had the present context c come, and counts where
that would have led:

    W_h(s, a; c) = 1 + Σ_{i<t} q_h(s, a | π_i^c, P̂_i^c),   π_i^c optimal for f̂_i(c) + b,  at the W of that round
    b = min(1, β_R/(2W)) + H·min(2, β_P/(2W)),   β = β₀·√T

Values with m steps to go are clipped at m; with a `return_range` also to what it leaves, and H is the range of values.
By AM-GM, x <= β/(2W) + W·x²/(2β), the plan's value Ṽ is nearly optimistic:

    V*(c) - Ṽ(c) <= Σ d*·W·[(f* - f̂)²/(2β_R) + H·‖P* - P̂‖₁²/(2β_P)],

whose mean over c is small because the offline fit f̂ is good in-sample: W(c) is, on average over i.i.d. contexts, where
the data are. Hence the guarantee for *stochastic* contexts, Õ(H³·√(T·S·A·d·log(|F||P|/δ))), d the Eluder dimension of
the dynamics class. It fails for adversarial contexts: W(c) grows whether or not c is ever shown, and an adversary that
shows c only in the rounds when the agent would not explore it takes .4 in every round, forever, whatever β₀ is
(two arms, two contexts, two functions: `Twins` in tests/agents/counterfactual/test_uc3rl_regret.py).

What is not certain: the constants (`theoretical_scales`), and that the occupancy of round i is taken under P̂_i and not
the latest P̂. β₀ is to be tuned: with the theoretical one, at S = 5, A = 3, H = 5, b stays above 1, the range of a
reward, until T = 10⁴.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Unpack, final

from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.theory.constants import most_tuples
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.counterfactual import playing
from omg_lab.rivals.counterfactual.rounds import Bonus, Round, Tables


@final
class _Plan(Round):
    """Plan with the bonus, and add where that leads to W."""

    def __init__(self, space: Space, bounds: ValueBounds, bonus: Bonus) -> None:
        super().__init__(space, bounds)
        self._bonus = bonus

    def play(self, tables: Tables, memory: FloatArray, fitted: int, rounds: int) -> tuple[FloatArray, FloatArray]:
        policies, occupancies = self.plan(tables, self._bonus(memory[:, 0], fitted))
        return policies, memory + rounds * occupancies[:, None]


@final
class UC3RL(ModelAgent):
    """Plan with a bonus for what would rarely have been visited in this context.

    With a list of all `contexts` that may come, each has its counts: one plan for each of them in an episode, with any
    oracles. Without it, the fits at the beginning of doubling epochs are kept, and the policy of a context changes only
    there; this needs `Offline` oracles, and O(log t) plans for a decision.

    `scale` is β₀, or one for the rewards and one for the dynamics, (0.03, 0) if these are known; β = β₀·√T, T =
    `episodes`, or β₀·√t in round t if that is None.
    """

    settings = ("scales", "episodes", "history")
    decide, model, visits = playing.decide, playing.model, playing.visits
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
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        self._bonus = Bonus.of(scale, episodes, self.value_bounds)
        self.scales, self.episodes = self._bonus.scales, self._bonus.episodes
        self._round = _Plan(space, self.value_bounds, self._bonus)
        self.history = playing.history_of(self, self._round, contexts)

    def bonus(self, context: Context) -> FloatArray:
        """Return the bonus b (H, S, A)."""
        return self._bonus(self.visits(context), self.history.fitted)


def theoretical_scales(
    space: Space,
    *,
    episodes: int,
    reward_functions: int,
    dynamics_functions: int,
    eluder_dimension: float = 1.0,
    delta: float = 0.05,
    reward_constant: float = 68.0,
    dynamics_constant: float = 2.0,
) -> tuple[float, float]:
    """Return β_R/√T and β_P/√T as the analysis would choose them; not certain, least of all the two constants.

    β = √(T·Γ/(2n·log(1+T))) with Γ_R = 3G_F + 9H²Ψ + n, Γ_P = 48H²Ψ + 4n, G_F = 68H·log(2T³|F|/δ),
    G_P = 2H·log(TH|P|/δ) and Ψ = d·G_P·log T, d the Eluder dimension.
    """
    horizon, tuples = space.horizon, most_tuples(space)
    rewards = reward_constant * horizon * math.log(2.0 * episodes**3 * reward_functions / delta)
    dynamics = dynamics_constant * horizon * math.log(episodes * horizon * dynamics_functions / delta)
    drift = eluder_dimension * dynamics * math.log(episodes)
    share = 2.0 * tuples * math.log1p(episodes)
    for_rewards = 3.0 * rewards + 9.0 * horizon**2 * drift + tuples
    for_dynamics = 48.0 * horizon**2 * drift + 4.0 * tuples
    return math.sqrt(for_rewards / share), math.sqrt(for_dynamics / share)
