"""The gain-weighted rule: pay only for what can change the decision.

Draw models M_k = (f_k, P_k) from the oracles' posteriors, k = 1..K. Each says what it would do, π_k with values V_k,
and by how much the mean model (f̂, P̂) underrates it: with q_k the occupancy measure of π_k in P̂,

    e_k = V_{k,h}(s) - f̂(s, a) - Σ P̂(s'|s, a)·V_{k,h+1}(s')  at a = π_k,     Σ q_k·e_k = V_k* - V̂^{π_k}.

b = E[q_k·e_k] is the gain that flows through a tuple. Where it is negative elsewhere only the sum counts: b̃ =
b₊·(Σb)₊/Σb₊ has Σ b̃ = (Σb)₊. For the plan q̂ of any barrier weights m, Σ m·q_k/q̂ = Σ m - (V̂^{π_k} - V̂^{q̂}).
Averaged over the draws, with c = E[q_k] and b̃ <= m·c/q̂ + q̂·b̃²/(4mc),

    E V* - V̂^{q̂}  <=  Σ m + ¼·Σ q̂·v/m,     v = b̃²/c:

the gain that plausible optima carry through a tuple, squared, per visit. v is 0 where no plausible model would go, and
where errors cancel. The bound is smallest at the weights m = ½·√(q̂·v) of the program max ⟨q, f̂⟩ + Σ √(v·q); half of
these weights raise it by a quarter, and are what is played. No constant is left to tune. The posteriors are the
oracles' own, and the statement holds on average over them, given the past and the context (docs/theory.md).

What is learned in one step mostly holds in all. Then b and c are sums over the steps, v is a number for each pair, and
the program is max ⟨q, f̂⟩ + Σ √(v·Q), Q = Σ_h q_h: it explores a pair in those steps where that costs least. The
plan mixes policies (`frank_wolfe`), beginning with the optimum and with what the draws would do; its gap to the maximum
is certified, and adds to the bound. Where budgets bind, the planner solves it, with v·θ_h in step h, Σ_h θ_h = 1: θ_h
is in proportion to c_h/(z_h + √v)², z_h the cost in the mean model.

With budgets all rewards are those after charges, f - λ·c, at the prices λ of the best policy of the mean model, and π_k
is the best mixture of policies that keeps the budgets in M_k (`feasible`). The statement holds for these comparators:
what a policy that is feasible in M_k is worth more in M_k than in the mean model, after charges, is Σ q_k·e_k.
"""

from __future__ import annotations

from collections import deque
from typing import final

import numpy as np

from omg_cmdp.agents.exploration.base import ExplorationRule, Situation
from omg_cmdp.agents.exploration.priced import Priced, charge
from omg_cmdp.contexts import Context, Keyed, keyed
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import Oracle
from omg_cmdp.oracles.draws import Cache, Streams, empty_cache, keys_of
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.solution import Status
from omg_cmdp.validation import FloatArray, integer, positive_number, seed_number

compiled = Lazy("omg_cmdp.agents.exploration.compiled")
feasible = Lazy("omg_cmdp.agents.exploration.feasible")

SHARE = 0.25
"""What the program is given of v: half the weights of the smallest bound, at 5/4 of it. Chosen on seeds above 200."""
LARGEST = 2**24
"""The most numbers that drawn tables hold in all: 128 MiB, and as much for what they are made of. A large model gets
fewer draws, but four at least."""


@final
class GainWeighted(ExplorationRule):
    """max ⟨q, f̂⟩ + ½·Σ √(v·Q), Q = Σ_h q_h: explore where plausible models expect to gain.

    If steps are learned apart, each has a root of its own. The plan falls short of the maximum by a certified gap
    (`Situation.plan_gains`). If it exceeds a budget, v is divided among the steps, by visits of the draws and by costs,
    and the planner solves max ⟨q, f̂⟩ + ½·Σ √(v_h·q_h) + floor/√(n·t)·Σ log q within the budgets.

    Parameters
    ----------
    draws : int, default 32
        Number of models that estimate v, at least 2. Large models get fewer, but at least four.
    floor : float, default 1e-4
        Where budgets bind, the least weight of the planner's barrier, times √(n·t).
    seed : int, default 0
        The seed of the draws; they are a function of it, the episode and what was learned.

    Examples
    --------
    >>> str(GainWeighted(draws=8))
    'GainWeighted(draws=8, floor=0.0001, seed=0)'
    """

    def __init__(self, *, draws: int = 32, floor: float = 1e-4, seed: int = 0) -> None:
        self.draws = integer("draws", draws, 2)
        self.floor = positive_number("floor", floor)
        self.seed = seed_number(seed)
        self._caches: deque[Cache] = deque(maxlen=1)  # no state: what is drawn is the same without it

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with the weights of this episode."""
        priced = charge(situation)
        v, visits = self._weighed(situation, priced)
        if priced.charges is None:
            free = situation.plan_gains(SHARE * v, visits)
            if situation.limits is None:
                return free
            if situation.limits.are_met(flow(situation.model, free.policy)[0]):
                zero = np.zeros(len(situation.limits.limits))
                return free._replace(limits=situation.limits, prices=zero, status=Status.SOLVED)
        if v.ndim == 2:
            transitions, _, _, admissible = situation.model.raw
            compiled.divide(transitions, priced.rewards, admissible, *priced.bounds, v, visits)
        return situation.plan_roots(SHARE * (v if v.ndim == 3 else visits), situation.least_weight(self.floor))

    def gains(self, situation: Situation) -> FloatArray:
        """Return v, (S, A) for all steps; or (H, S, A) if steps are learned apart: draws by step, and not all equal."""
        return self._weighed(situation, charge(situation))[0]

    def _weighed(self, situation: Situation, priced: Priced) -> tuple[FloatArray, FloatArray]:
        """Return v, and how often the draws come where, (H, S, A)."""
        model, count = situation.model, draw_count(situation.model, self.draws)
        # A cache changes in place: two threads that ask at once have one each, and the last one to end keeps its own.
        try:
            cache = self._caches.pop()
        except IndexError:
            cache = empty_cache()
        streams = Streams.lasting(self.seed, situation.episode, count, cache)
        # Rewards are drawn anew: that costs little, and a rare optimum is mostly a reward that few draws have.
        both = streams.of(0, keys_of(self.seed, situation.episode, count, 1)), streams.of(1)
        oracles = situation.reward_oracle, situation.dynamics_oracle
        rewards, transitions = _drawn_models(model, *oracles, situation.known, *both)
        by_step = any(drawn.shape[1] > 1 and (drawn != drawn[0]).any() for drawn in (rewards, transitions))
        visits = np.empty((model.horizon, *model.admissible.shape))
        gains = np.empty(visits.shape if by_step else (1, *visits.shape[1:]))
        table, _, start, admissible = model.raw
        mean, limits = (table, priced.rewards, start, admissible), situation.limits
        if limits is None or situation.charges is not None or priced.charges is None:
            told = rewards if priced.charges is None else rewards - priced.charges
            chosen = np.empty((count, *visits.shape[:2]), np.int64)
            values = np.empty((count, model.horizon + 1, model.states))
            choose = compiled.choose
            if transitions.strides[0] == transitions.itemsize:  # the draws of a table lie side by side
                choose = compiled.choose_side_by_side
                told, transitions = (each.transpose(*range(1, each.ndim), 0) for each in (told, transitions))
            drawn = (np.ascontiguousarray(each) for each in (transitions, told))
            choose(*drawn, admissible, *priced.bounds, chosen, values)
            compiled.fill_gains(*mean[:3], chosen, values, gains, visits)
        else:
            drawn = (np.ascontiguousarray(each) for each in (rewards, transitions))
            kept = limits.costs, limits.limits, priced.charges
            feasible.fill_gains(*mean, *drawn, *priced.bounds, *kept, gains, visits)
        self._caches.append(cache)
        return (gains if by_step else gains[0]), visits


def draw_count(model: TabularMDP, most: int) -> int:
    """Return the number of draws, `most` if they fit."""
    return min(most, max(4, LARGEST // model.raw[0].size))


def drawn_models(
    model: TabularMDP,
    reward_oracle: Oracle,
    dynamics_oracle: Oracle,
    context: Context,
    of_rewards: Streams,
    of_dynamics: Streams,
) -> tuple[FloatArray, FloatArray]:
    """Return rewards (K, steps, S, A) and transitions (K, steps, S, A, S) of K drawn models; not to be written to."""
    drawn = _drawn_models(model, reward_oracle, dynamics_oracle, context, of_rewards, of_dynamics)
    return np.ascontiguousarray(drawn[0]), np.ascontiguousarray(drawn[1])


def _drawn_models(
    model: TabularMDP,
    reward_oracle: Oracle,
    dynamics_oracle: Oracle,
    context: Context,
    of_rewards: Streams,
    of_dynamics: Streams,
) -> tuple[FloatArray, FloatArray]:
    """Return the same as it lies in memory."""
    known, table = keyed(context), model.admissible.shape
    rewards = _drawn(reward_oracle, known, of_rewards, table)
    return rewards, _drawn(dynamics_oracle, known, of_dynamics, (*table, model.states))


def _drawn(oracle: Oracle, known: Keyed, streams: Streams, table: tuple[int, ...]) -> FloatArray:
    """Return draws of a table, as (count, steps, ...) with the steps that they have."""
    drawn = np.asarray(oracle.draws_from(known.to(oracle), streams), dtype=np.float64)
    if drawn.shape[:1] != (streams.count,) or drawn.shape[-len(table) :] != table or drawn.ndim > len(table) + 2:
        raise ValueError(f"`draws` must return ({streams.count}, ...) tables of shape {table}, got {drawn.shape}")
    return drawn if drawn.ndim == len(table) + 2 else drawn[:, None]
