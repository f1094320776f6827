"""Models drawn at random around a mean model, and the gains that they see in it, in plain numpy."""

from typing import NamedTuple

import numpy as np

from library.tests.random_mdps import by_step, random_mdp, with_tables
from omg_cmdp.agents.exploration import compiled
from omg_cmdp.mdp import TabularMDP, occupancy_measure
from omg_cmdp.planning import plan


class Draws(NamedTuple):
    """What K drawn models say of the mean model; tables have K as their first axis."""

    values: np.ndarray
    """V_k (K, H + 1, S), clipped."""
    occupancies: np.ndarray
    """q_k (K, H, S, A): of π_k, in the mean model."""
    errors: np.ndarray
    """e_k (K, H, S, A): V_{k,h}(s) - f̂ - P̂·V_{k,h+1}."""
    rewards: np.ndarray
    """V̂^{π_k} (K,)."""


def clipped_optimum(mdp, least=0.0, most=np.inf):
    """Return a greedy policy (H, S, A) and values (H + 1, S), clipped to [max(0, least - h), min(H - h, most)]."""
    kernel, rewards = by_step(mdp)
    values, policy = np.zeros((mdp.horizon + 1, mdp.states)), np.zeros((mdp.horizon, mdp.states, mdp.actions))
    for h in reversed(range(mdp.horizon)):
        action_values = np.where(mdp.admissible, rewards[h] + kernel[h] @ values[h + 1], -np.inf)
        best = action_values.argmax(axis=1)
        policy[h, np.arange(mdp.states), best] = 1.0
        values[h] = np.clip(action_values.max(axis=1), max(0.0, least - h), min(mdp.horizon - h, most))
    return policy, values


def random_draws(rng, model, count):
    """Return `count` models with the start and mask of `model`: near it or far away, in rewards and in dynamics."""
    near = rng.choice([0.01, 0.3, 1.0], size=2)
    return [_mixed(rng, model, *near) for _ in range(count)]


def _mixed(rng, model, rewards_apart, kernels_apart):
    kernel, rewards = by_step(model)
    other_kernel, other_rewards = by_step(random_mdp(rng, model.states, model.actions, model.horizon, masked=False))
    return with_tables(
        model,
        transitions=(1.0 - kernels_apart) * kernel + kernels_apart * other_kernel,
        rewards=(1.0 - rewards_apart) * rewards + rewards_apart * other_rewards,
    )


def chosen_by(model, paid, moves, bounds):
    """Return what is optimal in drawn models (K, steps, S, A, ...): actions (K, H, S), and values (K, H + 1, S)."""
    chosen = np.full((len(paid), model.horizon, model.states), -1)
    values = np.full((len(paid), model.horizon + 1, model.states), np.nan)
    compiled.choose(moves, paid, model.raw[3], *bounds, chosen, values)
    return chosen, values


def seen_by(model, drawn, least=0.0, most=np.inf):
    """Return what the models `drawn` say of the mean `model`."""
    kernel, rewards = by_step(model)
    optima = [clipped_optimum(each, least, most) for each in drawn]
    occupancies = np.array([occupancy_measure(model, policy) for policy, _ in optima])
    values = np.array([table for _, table in optima])
    errors = values[:, :-1, :, None] - rewards - np.einsum("hsaj,khj->khsa", kernel, values[:, 1:])
    return Draws(values, occupancies, errors, (occupancies * rewards).sum(axis=(1, 2, 3)))


def pooled(draws):
    """Return the same draws as if an episode had one step: what they visit, and their mean error there, (K, 1, S, A).

    What they carry, q·e, is then that of all steps.
    """
    visits = draws.occupancies.sum(axis=1, keepdims=True)
    through = (draws.occupancies * draws.errors).sum(axis=1, keepdims=True)
    errors = np.divide(through, visits, out=np.zeros_like(visits), where=visits > 0.0)
    return draws._replace(occupancies=visits, errors=errors)


def share(draws):
    """Return (Σb)₊/Σb₊, b = E[q·e]: what is left of the positive flows for their sum."""
    through = (draws.occupancies * draws.errors).mean(axis=0)
    hoped = np.maximum(through, 0.0).sum()
    return max(through.sum(), 0.0) / hoped if hoped > 0.0 else 0.0


def flow(draws):
    """Return b̃²/E[q], (H, S, A), b̃ = b₊·(Σb)₊/Σb₊ and b = E[q·e]."""
    through, visits = (draws.occupancies * draws.errors).mean(axis=0), draws.occupancies.mean(axis=0)
    gained = share(draws) * np.maximum(through, 0.0)
    return np.divide(gained**2, visits, out=np.zeros_like(visits), where=visits > 0.0)


def estimate(draws):
    """Return v̂: flow, without the noise of the draws that visit a tuple, share²·((Σx)² - Σ(x - r·q)²·n/(n-1))₊/(K·Σq).

    x = q·e, r = Σx/Σq, and n = (Σq)²/Σq² is how many draws visit; if it is one, nothing is known of the noise.
    """
    q, x = draws.occupancies, draws.occupancies * draws.errors
    with np.errstate(invalid="ignore", divide="ignore"):
        rate, number = x.sum(axis=0) / q.sum(axis=0), q.sum(axis=0) ** 2 / (q**2).sum(axis=0)
        noise = ((x - rate * q) ** 2).sum(axis=0) * number / (number - 1.0)
        noise = np.where(1.0 - 1.0 / number > 1e-3, noise, 0.0)
        found = share(draws) ** 2 * np.maximum(x.sum(axis=0) ** 2 - noise, 0.0) / (len(q) * q.sum(axis=0))
    return np.where(x.sum(axis=0) > 0.0, found, 0.0)


def promised(model, draws):
    """Return the mean over draws of the value that each promises at the start."""
    return float((draws.values[:, 0] @ model.start).mean())


def joint_plan(model, v, floor, rounds=60):
    """Return the plan of max ⟨q, f̂⟩ + Σ √(v·q) + floor·Σ log q, and its weights: barrier plans until they agree."""
    solution = plan(model, uncertainty=np.maximum(v, 4.0 * floor**2), tolerance=1e-6)
    q = solution.occupancy
    for _ in range(rounds):
        weights = 0.5 * np.sqrt(q * v) + floor
        solution = plan(model, 1.0, weights=weights, tolerance=1e-13)
        if np.abs(solution.occupancy - q).max() < 1e-12:
            break
        q = np.sqrt(q * solution.occupancy)  # halfway in logarithms
    return solution, weights


def single_step(rewards):
    """Return a bandit."""
    return TabularMDP(transitions=np.ones((1, len(rewards), 1)), rewards=np.array([rewards]), horizon=1)
