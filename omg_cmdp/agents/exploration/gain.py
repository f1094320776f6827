"""The gain-weighted rule: pay only for what can change the decision.

Draw models M_k = (f_k, P_k) from the oracles' posteriors, k = 1..K. Each says what it would do, π_k with values V_k,
and by how much the mean model (f̂, P̂) underrates it: with q_k the occupancy measure of π_k in P̂,

    e_k = V_{k,h}(s) - f̂(s, a) - Σ P̂(s'|s, a)·V_{k,h+1}(s')  at a = π_k,     Σ q_k·e_k = V_k* - V̂^{π_k} =: G_k.

Where errors of both signs meet on the way of one model only their sum is a gain: ẽ_k = (e_k)₊·G_k/Σ q_k·(e_k)₊, and
nothing if G_k <= 0, so that Σ q_k·ẽ_k = (G_k)₊. For the plan q̂ of any barrier weights m, Σ m·q_k/q̂ <= Σ m - (V̂^{π_k} -
V̂^{q̂}), hence by ẽ <= m/q̂ + q̂·ẽ²/(4m), averaged over the draws,

    E V* - V̂^{q̂}  <=  Σ m + ¼·Σ q̂·v/m,     v = E[q_k·ẽ_k²].

This is smallest at m = ½·√(q̂·v), the weights of the root program max ⟨q, f̂⟩ + Σ √(v·q). v is 0 where no plausible model
would go; where plausible models agree with the plan it costs nothing. No constant is left to tune. The posteriors are
the oracles' own, and the statement holds on average over them, given the past and the context (docs/theory.md).
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from omg_cmdp.agents.exploration.base import ExplorationRule, Situation
from omg_cmdp.jit import Lazy
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_integer, positive_number, seed_number

kernels = Lazy("omg_cmdp.agents.kernels.weights")


LARGEST = 2**25
"""The most numbers that drawn tables hold in all: 256 MiB. A large model gets fewer draws, but two at least."""


@final
class GainWeighted(ExplorationRule):
    """m = ½·√(q̂·v) + floor/√(n·t), q̂ the plan: explore where plausible models expect to gain.

    v is estimated by `draws` models, a function of `seed`, the episode and the context. The floor costs at most
    2·floor·√(nT) over T episodes, and keeps ¼·Σ q̂·err²/m below √(nT)/(4·floor) times what the oracles' bounds allow,
    even if the posteriors are wrong.
    """

    def __init__(self, *, draws: int = 16, floor: float = 1e-4, seed: int = 0) -> None:
        self.draws = positive_integer("draws", draws)
        self.floor = positive_number("floor", floor)
        self.seed = seed_number(seed)

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with the weights of this episode."""
        gains = self.gains(situation)
        return situation.plan_roots(gains, self.floor / math.sqrt(situation.tuples * situation.episode))

    def gains(self, situation: Situation) -> FloatArray:
        """Return v (H, S, A)."""
        model, context = situation.model, situation.context
        generator = np.random.default_rng((self.seed, situation.episode))
        count = min(self.draws, max(2, LARGEST // model.transitions.size))
        rewards, transitions = (
            np.ascontiguousarray(oracle.draws(context, count, generator), dtype=np.float64)
            for oracle in (situation.reward_oracle, situation.dynamics_oracle)
        )
        steps = (count, -1, model.states, model.actions)
        gains = np.zeros((model.horizon, *steps[2:]))
        kernels.add_gains(
            *model.raw,
            rewards.reshape(steps),
            transitions.reshape(*steps, model.states),
            *situation.bounds,
            gains,
        )
        return gains
