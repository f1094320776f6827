"""The compiled loop of GLM-ORL and GLM-RLSVI: online Newton steps of a generalised linear model."""

import math

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def to_ball(weight, inverse, radius):
    """Move `weight` to ‖w‖ <= radius, the shortest way in the norm of Z: (I + μZ⁻¹)⁻¹w, `inverse` being Z⁻¹.

    1/‖w(μ)‖ is concave and increasing: Newton's method from μ = 0 climbs to the root without overshooting.
    """
    spectrum, basis = np.linalg.eigh(inverse)
    rotated, scales = basis.T @ weight, np.ones(len(weight))
    for _ in range(50):
        squares = (rotated / scales) ** 2
        excess = math.sqrt(squares.sum()) / radius - 1.0
        if excess <= 1e-14:
            break
        scales += excess * squares.sum() / (squares * spectrum / scales).sum() * spectrum
    weight[:] = basis @ (rotated / scales)


@compiled
def newton_steps(weights, inverses, growths, row, pairs, next_states, logit, curvature, radius):
    """Take, for each step of an episode, Z ← Z + ½α·xxᵀ and W ← Proj(W - (∇Φ(Wx) - e_{s'})xᵀZ⁻¹) at its pair.

    `inverses` holds Z⁻¹ and `growths` log(det Z/λᵈ).
    """
    for h in range(len(pairs)):
        weight, inverse = weights[pairs[h]], inverses[pairs[h]]
        direction = inverse @ row
        damped = 1.0 + 0.5 * curvature * (direction @ row)
        growths[pairs[h]] += math.log(damped)
        inverse -= 0.5 * curvature / damped * np.outer(direction, direction)
        gradient = weight @ row
        if logit:
            gradient = np.exp(gradient - gradient.max())
            gradient /= gradient.sum()
        gradient[next_states[h]] -= 1.0
        if logit:
            gradient[len(gradient) - 1] = 0.0  # scores matter up to a constant: the last one stays 0
        weight -= np.outer(gradient, direction / damped)
        for i in range(len(weight)):
            if (weight[i] * weight[i]).sum() > radius * radius:
                to_ball(weight[i], inverse, radius)
