"""OPO-CMDP: optimistic policy optimisation with counterfactual bonuses (Levy, Rosenberg, Cohen and Mansour, 2026).

UC³RL plans anew in every round; OPO-CMDP improves a policy step by step. Had the context c come in every round, its
policy would have taken one step of mirror descent (exponential weights) in each, along its own action values Q̃ in the
optimistic model of that round, the fits with UC³RL's bonus b at the W of that round:

    π_t^c(a|h, s) ∝ π_{t-1}^c(a|h, s)·exp(η·Q̃_t(h, s, a)),   Q̃_t = those of π_{t-1}^c for f̂_t(c) + b in P̂_t(c),
    W_h(s, a; c) = 1 + Σ_{i<t} q_h(s, a|π_i^c, P̂_i^c),       η = η₀·√(8·log A/T)/H

The paper (arXiv 2602.13706) proves Õ(H⁴·√(T·S·A·log(|F||P|))) for i.i.d. contexts and offline oracles, without UC³RL's
Eluder dimension. We know its abstract only. That the step is mirror descent with counterfactual bonuses is said of its
sister for bandits, OPO-CMAB (arXiv 2602.13700); the bonus, W and the order of the steps are ours, and so are β₀ and η₀.

What is proven here, for one context, any fits, T rounds with one η, and no `return_range`; d* is the occupancy of the
optimal policy:

    Σ_t V* - Ṽ_t(π_t) <= H·(log A/η + η·T·H²/8) + Σ_t Σ d*·W_t·[(f* - f̂_t)²/(2β_R) + H·‖P* - P̂_t‖₁²/(2β_P)].

Proof. Q̃ is clipped to [0, H - h], Ṽ_h = ⟨π, Q̃_h⟩. By induction over the steps (the extended value difference),

    V* - Ṽ_t(π_{t-1}) = Σ d*(s)·⟨Q̃_t, π* - π_{t-1}⟩ + Σ d*·[f* + P*Ṽ_t - Q̃_t].

The last bracket is at most (f* - f̂_t) + (P* - P̂_t)·Ṽ_t - b where Q̃ is not clipped from above, and else at most 0; by
AM-GM, as for UC³RL, it is at most W_t·[...]. For each (h, s) the first term, summed over t, is the regret of
exponential weights with gains in [0, H]: at most log A/η + η·T·H²/8 (Hoeffding's lemma), and the d*(s) of a step sum to
one. Last, π_t is not worse than π_{t-1} in model t: ⟨π_t, Q̃_t⟩ >= ⟨π_{t-1}, Q̃_t⟩ = Ṽ_t in every state, and backward
induction is monotone. ∎ At η₀ = 1 the first term is H²·√(T·log A/2).

Without a list of contexts an epoch of L rounds is one step of size η·L: on models that do not change, steps of any size
improve the policy, by the end of the proof. A decision then takes O(log t) evaluations; all rounds anew would take t.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Unpack, final

import numpy as np

from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.agents.counterfactual import playing
from omg_cmdp.agents.counterfactual.rounds import Bonus, Round, Tables, kernels
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.validation import FloatArray, positive_number


@final
class _Step(Round):
    """One step of mirror descent: remembered are W, and the logarithms of the weights, up to constants."""

    def __init__(self, space: Space, bounds: ValueBounds, bonus: Bonus, rate: float) -> None:
        super().__init__(space, bounds)
        self._bonus = bonus
        most = int(space.admissible.sum(axis=1).max())
        self._rate = rate * math.sqrt(8.0 * math.log(most)) / max(bounds.span, 1e-300)

    def nothing(self) -> FloatArray:
        """Return W = 1, and weights that are all alike."""
        return np.stack([np.ones(self.sizes), np.zeros(self.sizes)])[None]

    def play(self, tables: Tables, memory: FloatArray, fitted: int, rounds: int) -> tuple[FloatArray, FloatArray]:
        step = rounds * self._rate / math.sqrt(self._bonus.episodes or fitted + 1)
        optimistic = tables.rewards + self._bonus(memory[:, 0], fitted)
        logits = memory[:, 1].copy()
        policies, occupancies = np.empty((2, *optimistic.shape))
        kernels.improve_round(tables.kernels, optimistic, *self._known, step, logits, policies, occupancies)
        return policies, np.stack([memory[:, 0] + rounds * occupancies, logits], axis=1)


@final
class OPOCMDP(ModelAgent):
    """Improve a policy by mirror descent in models with a bonus for what would rarely have been visited.

    `learning_rate` is η₀, 1 as in the analysis; it may be much larger. With T = `episodes` unknown, η and β are those
    of t in round t, and nothing is proven. The other arguments are those of `UC3RL`.
    """

    settings = ("scales", "learning_rate", "episodes", "history")
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
        learning_rate: float = 1.0,
        episodes: int | None = None,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        bonus = Bonus.of(scale, episodes, self.value_bounds)
        self.scales, self.episodes = bonus.scales, bonus.episodes
        self.learning_rate = positive_number("learning_rate", learning_rate)
        self._round = _Step(space, self.value_bounds, bonus, self.learning_rate)
        self.history = playing.history_of(self, self._round, contexts)
