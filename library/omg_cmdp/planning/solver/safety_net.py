"""The slow but sure method: centre on the path by the dual alone.

With θ·log q added to every tuple's regulariser, θ > 0, the program has an unconstrained, smooth, strictly convex dual

    min_V  start·V_0 + Σ φ*_θ(z),   φ*_θ(z) = max_q φ(q) + θ·log q - z·q,

(times 1/θ self-concordant for a barrier), so damped Newton converges from any start, and quickly if θ is lowered
gradually.
"""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import leaf
from omg_cmdp.planning.solver import blocks
from omg_cmdp.planning.solver.program import copy_pair, make_occupancy, make_slacks


@leaf
def best_response(u, m, theta, z):
    """Return q̂ = argmax φ(q) + θ·log q - z·q, the maximum φ*_θ(z), and the curvature D = -dq̂/dz."""
    weight = m + theta
    if u == 0.0:
        q = weight / z
        return q, weight * np.log(q) - weight, q / z
    # With s = √q:  2z·s² - √u·s - 2·weight = 0.
    discriminant = np.sqrt(u + 16.0 * z * weight)
    root = (np.sqrt(u) + discriminant) / (4.0 * z)
    q = root * root
    return q, np.sqrt(u) * root + 2.0 * weight * np.log(root) - z * q, 4.0 * q * root / discriminant


@leaf
def dual_objective(program, pair, theta):
    """Return start·V_0 + Σ φ*_θ(z); +∞ outside the interior."""
    total = 0.0
    for s in range(program.start.size):
        total += program.start[s] * pair.values[0, s]
    for i in range(pair.z.size):
        if not pair.z[i] > 0.0:
            return np.inf
        total += best_response(program.roots[i], program.barrier[i], theta, pair.z[i])[1]
    return total


@leaf
def centre_dual(program, pair, theta, limit, newton, trial):
    """Bring the dual to the path at θ by damped Newton steps, and q to the best response; return the iterations.

    The dual starts, and stays, feasible. `newton` and `trial` are work space.
    """
    make_slacks(program, pair)
    objective = dual_objective(program, pair, theta)
    iteration = 0
    for iteration in range(limit):  # noqa: B007 (returned)
        for i in range(pair.z.size):
            pair.q[i], _, newton.weights[i] = best_response(program.roots[i], program.barrier[i], theta, pair.z[i])
        if not blocks.factorise(program.transitions, program.tuples, newton.weights, newton.factor):
            break
        # The gradient is start - B·q̂.
        blocks.flow(program.transitions, program.tuples, pair.q, newton.dvalues)
        for s in range(program.start.size):
            newton.dvalues[0, s] -= program.start[s]
        blocks.solve(program.tuples, newton.factor, newton.dvalues)
        blocks.flow_adjoint(program.transitions, program.tuples, newton.dvalues, newton.dz)
        decrement = 0.0
        relative = 0.0
        for i in range(pair.z.size):
            decrement += newton.weights[i] * newton.dz[i] ** 2
            relative = max(relative, abs(newton.dz[i]) / pair.z[i])
        if relative < 0.1:
            # Newton's own primal: it satisfies the flow constraints, and is positive this close to the centre.
            for i in range(pair.z.size):
                pair.q[i] -= newton.weights[i] * newton.dz[i]
            break
        step = 1.0
        while step > 1e-10:
            for h in range(pair.values.shape[0]):
                for s in range(pair.values.shape[1]):
                    trial.values[h, s] = pair.values[h, s] + step * newton.dvalues[h, s]
            make_slacks(program, trial)
            reached = dual_objective(program, trial, theta)
            if reached <= objective - 0.1 * step * decrement:
                break
            step *= 0.5
        if step <= 1e-10:
            break
        objective = reached
        for i in range(pair.z.size):
            trial.q[i] = pair.q[i]
        copy_pair(trial, pair)
    make_occupancy(program, pair.q, newton.dvalues)
    return iteration
