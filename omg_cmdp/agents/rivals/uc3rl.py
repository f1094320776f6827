"""UC³RL: optimism by counterfactual bonuses (Levy, Cassel, Cohen and Mansour, ICML 2024), and its forerunner RM-UCDD.

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
(two arms, two contexts, two functions: `Twins` in tests/agents/rivals/test_uc3rl_regret.py).

RM-UCDD (Levy and Mansour, AAAI 2023), `counts="policy"`, counts how often π_i^c would have *chosen* a in (h, s), and
puts p_min·W in the place of W, p_min a lower bound on the probability of reaching any (h, s) under any policy. Its
first A rounds play one action each. It fits both models by least squares; here the dynamics are fitted as their oracle
does it.

What is not certain: the constants (`theoretical_scales`), that the occupancy of round i is taken under P̂_i and not the
latest P̂, and in RM-UCDD the exact place of p_min. β₀ is to be tuned: with the theoretical one, at S = 5, A = 3, H = 5,
b stays above 1, the range of a reward, until T = 10⁴.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Unpack, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.agents.rivals.counterfactual import EpochFits, History, ListedContexts, Round, Tables
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.episode import Trajectory
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory.constants import most_tuples
from omg_cmdp.validation import FloatArray, float_table, one_of, positive_integer, positive_number

COUNTS = ("occupancy", "policy")


@final
class UC3RL(ModelAgent):
    """Plan with a bonus for what would rarely have been visited in this context.

    With a list of all `contexts` that may come, each has its counts: one plan for each of them in an episode, with any
    oracles. Without it, the fits at the beginning of doubling epochs are kept, and the policy of a context changes only
    there; this needs `Offline` oracles, and O(log t) plans for a decision.

    `scale` is β₀, or one for the rewards and one for the dynamics, (0.03, 0) if these are known; β = β₀·√T, T =
    `episodes`, or β₀·√t in round t if that is None. `counts` is "occupancy", or "policy" for RM-UCDD, with its p_min as
    `reachability`.
    """

    settings = ("scales", "episodes", "counts", "reachability", "history")

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        *,
        contexts: Iterable[Context] | None = None,
        scale: float | tuple[float, float] = 0.03,
        episodes: int | None = None,
        counts: str = "occupancy",
        reachability: float = 1.0,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        self.scales = _scales(scale)
        self.episodes = None if episodes is None else positive_integer("episodes", episodes)
        one_of("counts", counts, COUNTS)
        self.counts = counts
        self.reachability = positive_number("reachability", reachability)
        if self.reachability > 1.0 or (self.reachability < 1.0 and counts == "occupancy"):
            raise ValueError(f"`reachability` must lie in (0, 1], and be 1 for occupancies, got {reachability!r}")
        self._round = Round(
            space=space,
            bounds=self.value_bounds,
            scales=self.scales,
            episodes=self.episodes,
            by_policy=counts == "policy",
            reachability=self.reachability,
        )
        oracles = (reward_oracle, dynamics_oracle)
        self.history: History = (
            EpochFits(self._round, oracles) if contexts is None else ListedContexts(self._round, oracles, contexts)
        )

    def decide(self, context: Context) -> Decision:
        """Return the policy of one round."""
        fits = self.history.tables(context)
        if self.episodes_seen < self._round.warm_up:
            return Decision(policy=self._round.warm_up_policy(self.episodes_seen), model=self._mdp(fits))
        policies, _ = self._round.plan(fits, self.history.visits(context), self.history.fitted)
        return Decision(policy=policies[0], model=self._mdp(fits))

    def model(self, context: Context) -> TabularMDP:
        """Return the fits of this round as an MDP."""
        return self._mdp(self.history.tables(context))

    def _mdp(self, fits: Tables) -> TabularMDP:
        rewards, transitions = (steps[0] if len(steps) == 1 else steps for (steps,) in fits)
        return self.space.mdp(transitions=transitions, rewards=rewards)

    def visits(self, context: Context) -> FloatArray:
        """Return W (H, S, A): 1 + how often (h, s, a) would have been visited, had `context` come in every round."""
        return np.asarray(self.history.visits(context)[0])

    def bonus(self, context: Context) -> FloatArray:
        """Return the bonus b (H, S, A)."""
        return np.asarray(self._round.bonus(self.history.visits(context), self.history.fitted)[0])

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles, and count a round for every context."""
        super()._learn(trajectory, rewards)
        self.history.advance()

    def _learned(self) -> dict[str, NDArray[Any]]:
        """Return what both oracles learned, and the counts or the kept fits."""
        return {**super()._learned(), **self.history.state()}

    def _load_learned(self, state: State, episodes: int) -> None:
        arrays = self.history.read(state, episodes)
        super()._load_learned(state, episodes)
        self.history.resume(arrays, episodes)


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


def _scales(scale: Any) -> tuple[float, float]:
    """Return β₀ of the rewards and of the dynamics: two finite numbers, none negative."""
    given = float_table("scale", scale)
    if given.shape not in ((), (2,)) or not (np.isfinite(given).all() and given.min() >= 0.0):
        raise ValueError(f"`scale` must be a number or two, finite and not negative, got {scale!r}")
    rewards, dynamics = np.broadcast_to(given, 2).tolist()
    return rewards, dynamics
