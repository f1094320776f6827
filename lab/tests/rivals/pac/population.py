"""Elimination with exact expectations: what the theorems say before any sample is drawn.

Let E_h be the matrices of Bellman errors, a row for each policy π_f and a column for each hypothesis g, and W_h those
of misfits, W_h >= |E_h|. Each round takes the f of the largest value that is left. It ends if Σ_h E_h(π_f, f) <= ε, a
sum that is V_f - V^{π_f}, and else drops all g with W_h(π_f, g) > 0 at the step h of the largest E_h(π_f, f).

Proven here. (i) The truth f* is never dropped: its misfit is zero. (ii) So V_f >= V* in every round, and the policy
that is put out has V* - V^π <= V_f - V^π <= ε. (iii) There are at most Σ_h rank E_h rounds. For if f leads in a round
at step h, column f of E_h is zero in the rows of all former leaders at step h, since f was not dropped, and not in the
row of π_f: that row is no combination of theirs. So the rows of the leaders at step h are independent. ∎

With samples, an ellipsoid takes the place of the last step, and the logarithm of the papers appears.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import BoolArray, FloatArray
from omg_lab.rivals.pac.elimination import Elimination, Step


class Outcome(NamedTuple):
    """How an elimination ended."""

    hypothesis: int
    """Whose policy is put out."""
    alive: BoolArray
    """Which are left, (K,)."""
    leaders: tuple[tuple[int, int], ...]
    """The leader and the step of every round."""


def exact_misfits(agent: Elimination, truths: Sequence[tuple[Context, TabularMDP]]) -> FloatArray:
    """Return the expected misfits (H, K, K, D) of an agent, by step, leader and hypothesis; contexts equally likely."""
    parts = [agent.hypotheses(context) for context, _ in truths]
    count, space = parts[0].count, agent.space
    ways = agent.misfits(parts[0], np.arange(1), Step(0, 0, 0, 0.0, 0)).shape[1]
    found = np.zeros((space.horizon, count, count, ways))
    for hypotheses, (_, mdp) in zip(parts, truths, strict=True):
        reach = np.array([flow(mdp, hypotheses.policy(leader))[0].sum(axis=2) for leader in range(count)])
        for step, state, action in np.ndindex(space.horizon, space.states, space.actions):
            row = mdp.transition_steps[step % len(mdp.transition_steps), state, action]
            mean = mdp.reward_steps[step % len(mdp.reward_steps), state, action]
            own = np.flatnonzero(hypotheses.actions[:, step, state] == action)
            for next_state in np.flatnonzero(row):
                misfits = agent.misfits(hypotheses, own, Step(step, state, action, float(mean), int(next_state)))
                found[step][:, own] += row[next_state] * np.multiply.outer(reach[:, step, state], misfits)
    return found / len(truths)


def exact_elimination(
    values: FloatArray, errors: FloatArray, misfits: FloatArray, *, epsilon: float, rounding: float = 1e-9
) -> Outcome:
    """Return how elimination ends, by `values` (K,), Bellman `errors` (H, K, K) and `misfits` (H, K, K, D)."""
    alive, leaders = np.ones(len(values), dtype=np.bool_), list[tuple[int, int]]()
    while alive.any():
        leader = int(np.where(alive, values, -np.inf).argmax())
        own = errors[:, leader, leader]
        step = int(own.argmax())
        if own.sum() <= epsilon:
            return Outcome(leader, alive, tuple(leaders))
        leaders.append((leader, step))
        alive &= np.abs(misfits[step, leader]).max(axis=1) <= rounding
        alive[leader] = False  # its misfit is at least its error
    raise ValueError("`misfits` must be zero for one hypothesis, the truth, got none")
