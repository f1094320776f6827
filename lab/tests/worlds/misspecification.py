"""How far the truth of a world lies from its class: the error that no oracle can remove, however long it learns."""

from typing import NamedTuple

import numpy as np


class Distance(NamedTuple):
    """The excess loss per step of the best member of the class; zero if and only if the truth is a member."""

    square: float
    """min_i mean (f_i - f*)², the excess in square loss."""
    log: float
    """min_j mean KL(P* ‖ P_j), the excess in log loss; infinite if every member excludes something that can happen."""


def distance_to_class(world):
    """Return how far the truth lies from the class, on average over contexts and admissible pairs."""
    square, log = [], []
    for context in world.contexts:
        truth = world.truth(context).mdp
        square.append((world.reward_functions(context) - truth.rewards) ** 2)
        log.append(divergence(truth.transitions, world.transition_functions(context)))
    admissible = world.space.admissible
    return Distance(*(smallest_mean(np.array(e), admissible, world.product_class) for e in (square, log)))


def divergence(p, q):
    """Return KL(p ‖ q) = Σ p·log(p/q) over the last axis, in [0, ∞]."""
    p, q = np.broadcast_arrays(p, q)
    ratio = np.divide(p, q, out=np.where(p > 0.0, np.inf, 1.0), where=(p > 0.0) & (q > 0.0))
    return np.maximum((p * np.log(ratio)).sum(axis=-1), 0.0)


def smallest_mean(errors, admissible, product):
    """Return the mean of `errors` (C, N, S, A) for the best of N: one for all, or one for each context and state."""
    errors = np.where(admissible, errors, 0.0)
    best = errors.sum(axis=3).min(axis=1).sum() if product else errors.sum(axis=(0, 2, 3)).min()
    return float(best / (len(errors) * admissible.sum()))
