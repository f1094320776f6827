"""How well a fit predicts what it has not seen, by cross-validation."""

import numpy as np

from omg_lab.data.multinomial import fit
from omg_lab.worlds.base import softmax


def held_out_losses(design, outcomes, penalties, *, folds=10, seed=0):
    """Return -log p of each outcome, (n,), by the fit to the other folds."""
    fold = np.random.default_rng(seed).permutation(len(design)) % folds
    losses = np.empty(len(design))
    coefficients = np.zeros((design.shape[1], int(outcomes.max()) + 1))
    for held in range(folds):
        inside, outside = fold != held, fold == held
        coefficients = fit(design[inside], outcomes[inside], penalties, start=coefficients)
        p = softmax(design[outside] @ coefficients)
        losses[outside] = -np.log(p[np.arange(len(p)), outcomes[outside]])
    return losses
