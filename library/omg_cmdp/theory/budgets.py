"""What is proven of plans within budgets: Theorem H of docs/budgets.md, for one episode."""

from __future__ import annotations

import numpy as np

from omg_cmdp.mdp.bellman import policy_values
from omg_cmdp.mdp.budgets import Budgets
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray


def priced_round(
    truth: tuple[TabularMDP, Budgets],
    model: tuple[TabularMDP, Budgets],
    prices: FloatArray,
    weights: FloatArray,
    policy: FloatArray,
    comparator: FloatArray,
) -> float:
    """Return the right side of Theorem H, which V^π* - V^π does not exceed in the truth, for any comparator π*.

    With g = f - λ·c in the truth, ĝ = f̂ - λ·ĉ in the model, L values of g in the truth, q̂ and d the occupancies of π
    and π* in the model, and err = g - ĝ + (P - P̂)·L^π*:

        Σ m·(1 + q̂ - 2d) + ¼·Σ q̂·err²/m + Σ q̂·(P - P̂)(L^π* - L^π) + λ·(cost of π* - cost of π).

    `weights` (H, S, A) are m on the tuples of the barrier, and 0 elsewhere. π is the plan of these weights within the
    model's budgets, and λ (J,) are its prices.
    """
    (mdp, paid), guess = truth, model[0]
    real, mean = (_after(each, costs, prices) for each, costs in (truth, model))
    best, own = (policy_values(mdp, each, real)[0] for each in (comparator, policy))
    q, d = (flow(guess, each)[0] for each in (policy, comparator))
    gap = _steps(mdp.transition_steps, mdp.horizon) - _steps(guess.transition_steps, mdp.horizon)
    errors = real - mean + np.einsum("hsai,hi->hsa", gap, best[1:])
    third = float((q * np.einsum("hsai,hi->hsa", gap, (best - own)[1:])).sum())
    held = weights > 0.0
    m, q, d, squares = weights[held], q[held], d[held], errors[held] ** 2
    saved = prices @ (paid.charged(flow(mdp, comparator)[0]) - paid.charged(flow(mdp, policy)[0]))
    return float((m * (1.0 + q - 2.0 * d) + 0.25 * q * squares / m).sum()) + third + float(saved)


def _after(mdp: TabularMDP, costs: Budgets, prices: FloatArray) -> FloatArray:
    """Return the rewards after charges, (H, S, A)."""
    charged = costs.charges(prices)
    return _steps(mdp.reward_steps, mdp.horizon) - (0.0 if charged is None else charged)


def _steps(table: FloatArray, horizon: int) -> FloatArray:
    return np.broadcast_to(table, (horizon, *table.shape[1:]))
