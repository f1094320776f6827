"""No plan is further from optimal than its certificate says, in exact arithmetic, however extreme the problem.

γ from 1e-6 to 1e12, weights and uncertainties over many orders of magnitude, probabilities down to 1e-300, horizons up
to 40, equal rewards, deterministic kernels. The gap is that of weak duality, from the returned policy and values, with
60 digits; what `omg_cmdp.certificate` says of the pair is checked as well. Effort 1 is 5 000 problems.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np

import omg_cmdp as omg
from library.tests.random_mdps import KERNELS, by_step, random_mask
from omg_cmdp.mdp import reachable_states
from tests.attack.outcome import Outcome

DIGITS = 60
PROBLEMS = 5000
"""At effort 1."""
REGULARISERS = ("gamma", "weights", "uncertainty", "floor")


def attack(effort, seed):
    """Plan extreme problems, and compare every certificate with the exact gap."""
    outcome = Outcome()
    for number in range(math.ceil(PROBLEMS * effort)):
        problem = extreme_problem(np.random.default_rng([seed, number]))
        solution = problem.plan()
        policy, values = solution.policy, solution.values
        chosen = {name: getattr(problem, name) for name in REGULARISERS}
        claims = {
            "plan": solution.certificate,
            "certificate": omg.certificate(problem.mdp, policy, values, **chosen),
        }
        with mpmath.workdps(DIGITS):
            gap = exact_gap(problem, policy, values)
            for name, claim in claims.items():
                outcome.tried += 1
                if not gap <= claim:
                    line = f"{name} {number} of seed {seed}: {claim:.3e} claimed, {float(gap):.3e} exact"
                    outcome.broken.append(f"{line}, {solution.status.name}, tolerance {problem.tolerance:.0e}")
    return outcome


def extreme_problem(rng):
    """Return a problem at the edge of what doubles can do."""
    states, actions, horizon = rng.integers([1, 1, 1], [7, 5, 9]).tolist()
    if rng.random() < 0.1:
        states, actions, horizon = 2, 2, 40
    table = (states, actions)
    shape = (horizon, *table) if rng.random() < 0.3 else table
    transitions = KERNELS[str(rng.choice(list(KERNELS)))](rng, shape, states)
    if rng.random() < 0.4:
        transitions = transitions * 10.0 ** -rng.choice([3, 10, 40, 300], size=transitions.shape)
    totals = transitions.sum(axis=-1, keepdims=True)
    transitions = np.where(totals > 0.0, transitions / np.where(totals > 0.0, totals, 1.0), 1.0 / states)
    rewards = rng.random(table) if rng.random() < 0.6 else np.full(table, rng.choice([0.0, 1.0, 0.1]))
    mdp = omg.TabularMDP(
        transitions=transitions,
        rewards=rewards,
        horizon=horizon,
        start=int(rng.integers(states)) if rng.random() < 0.6 else rng.dirichlet(np.ones(states)),
        admissible=random_mask(rng, states, actions) if rng.random() < 0.3 else None,
    )
    spread = rng.choice([0.0, 3.0, 8.0])
    orders = 10.0 ** rng.uniform(-spread, spread, table)
    gamma, tolerance = 10.0 ** rng.uniform(-6, 12), 10.0 ** rng.uniform(-12, -6)
    kind = rng.integers(4)
    if kind < 2:
        return omg.Problem(mdp=mdp, gamma=gamma, weights=orders if kind else None, tolerance=tolerance)
    u = orders / gamma * (rng.random(table) < rng.choice([1.0, 0.7, 0.0]))
    return omg.Problem(mdp=mdp, uncertainty=u, floor=1.0 / gamma if kind == 3 else 0.0, tolerance=tolerance)


def exact_gap(problem, policy, values):
    """Return the gap Σ max_y (φ(y) - z·y) + z·q - φ(q) of a pair, times γ for the barrier; inf if it proves nothing.

    The policy is the one with rows that sum to 1 exactly.
    """
    mdp, number = problem.mdp, mpmath.mpf
    kernel, rewards = by_step(mdp)
    reached, admissible = reachable_states(mdp), mdp.admissible
    marginal, gap = [number(float(p)) for p in mdp.start], number(0)
    for h in range(mdp.horizon):
        after = [number(0)] * mdp.states
        for s in np.flatnonzero(reached[h]).tolist():
            actions = np.flatnonzero(admissible[s]).tolist()
            row = [number(float(policy[h, s, a])) for a in actions]
            for a, share in zip(actions, row, strict=True):
                q = marginal[s] * share / sum(row)
                z = number(float(values[h, s])) - number(float(rewards[h, s, a]))
                if h + 1 < mdp.horizon:
                    for j in np.flatnonzero(kernel[h, s, a]).tolist():
                        p = number(float(kernel[h, s, a, j]))
                        after[j] += q * p
                        z -= p * number(float(values[h + 1, j])) if reached[h + 1, j] else 0
                if not (q > 0 and z > 0):
                    return mpmath.inf
                gap += exact_term(problem, s, a, q, z)
        marginal = after
    return gap


def exact_term(problem, s, a, q, z):
    """Return one summand."""
    if problem.gamma is not None:
        w = mpmath.mpf(1 if problem.weights is None else float(problem.weights[s, a]))
        x = mpmath.mpf(problem.gamma) * q * z / w
        return w * (x - 1 - mpmath.log(x))
    u, m = mpmath.mpf(float(problem.uncertainty[s, a])), mpmath.mpf(problem.floor)
    if m == 0:
        return (mpmath.sqrt(z * q) - mpmath.sqrt(u / z) / 2) ** 2
    root = (mpmath.sqrt(u) + mpmath.sqrt(u + 16 * z * m)) / (4 * z)  # of the y that maximises √(u·y) + m·log y - z·y
    best = mpmath.sqrt(u) * root + 2 * m * mpmath.log(root) - z * root**2
    return best + z * q - mpmath.sqrt(u * q) - m * mpmath.log(q)
