"""Means by cell with slopes: ridge regression, one cell at a time."""

import numpy as np

from omg_cmdp.logs.off_policy.regression import RIDGE, CellRegression


def test_each_cell_has_the_ridge_regression_of_its_examples(rng):
    """β = (X'X + λI)⁻¹·X'y for centred X and y; a cell without examples has the mean of all."""
    cells, features, targets = rng.integers(3, size=40), rng.normal(size=(40, 2)) + 5.0, rng.normal(size=40)
    made, query = CellRegression(cells, features, 4), rng.normal(size=2)
    found = made.predict(made.fit(targets), np.arange(4), np.tile(query, (4, 1)))
    for cell in range(3):
        x, y = features[cells == cell], targets[cells == cell]
        centred = x - x.mean(axis=0)
        slopes = np.linalg.solve(centred.T @ centred + RIDGE * np.eye(2), centred.T @ (y - y.mean()))
        assert np.isclose(found[cell], y.mean() + (query - x.mean(axis=0)) @ slopes)
    assert np.isclose(found[3], targets.mean())
