"""Cells by the leaves of a regression tree that predicts what follows.

Clusters spend cells on whatever varies; leaves spend them on what matters for the rewards to come. For each action the
tree predicts two things, each of variance about 1,

    r + γ·V(next cell),   and which cell is next,

where V(cell) is the mean of r + γ·V(next cell) over the steps in the cell: what random actions earn from there. The
next cell is one of the clusters at first, then one of the leaves before: the tree is fitted a few times. (The reward
and the next cell alone are not enough: where nothing is earned or lost for many steps, no split helps to predict it.)
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.environments.encoders.base import Encoder
from omg_cmdp.environments.encoders.clusters import Clusters
from omg_cmdp.environments.encoders.steps import IntArray, Steps
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray, positive_integer

DISCOUNT, SWEEPS = 0.95, 60
"""Rewards count for some twenty steps ahead; 0.95⁶⁰ is less than one in twenty, so that sixty sweeps are enough."""
ROUNDS = 3
FEWEST = 20
"""The smallest number of steps in a leaf."""


@final
class Leaves(Encoder):
    """Cells by the leaves of a regression tree that predicts the next cell and the rewards to come.

    Where clusters spend cells on whatever varies, leaves spend them on what matters for the rewards. Fitting needs
    scikit-learn.

    Parameters
    ----------
    most : int
        The largest number of leaves; each holds at least 20 steps.
    seed : int, default 0
        The seed of the clusters with which fitting begins.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> places = generator.random((200, 2))
    >>> steps = Steps(observations=places, next_observations=generator.random((200, 2)), rewards=places[:, 0] > 0.5,
    ...     terminated=np.zeros(200, dtype=bool), actions=np.zeros(200, dtype=int), episodes=np.arange(200),
    ...     contexts=np.zeros(200, dtype=int))
    >>> leaves = Leaves(2).fit(steps)
    >>> leaves.encode([[0.2, 0.1], [0.2, 0.9], [0.8, 0.1]])  # the second number does not matter
    array([0, 0, 1])
    """

    def __init__(self, most: int, *, seed: int = 0) -> None:
        self.most = positive_integer("most", most)
        self._first = Clusters(most, seed=seed)

    def __repr__(self) -> str:
        return f"Leaves({self.most}, seed={self._first.seed})"

    def _fit(self, steps: Steps) -> dict[str, FloatArray]:
        encoder: Encoder = self._first.fit(steps)
        # A tree of one leaf, which scikit-learn would refuse to grow.
        nodes = np.array([[-1.0, 0.0, 0.0, 0.0]])
        for _ in range(ROUNDS if self.most > 1 else 0):
            nodes = _grown(steps, self.most, encoder)
            encoder = Leaves(self.most)
            encoder._use({"nodes": nodes}, steps.observations.shape[1])
        return {"nodes": nodes}

    def _load(self, arrays: State, dimension: int) -> None:
        nodes = numbers("nodes", arrays, (None, 4))
        feature, children, leaves = nodes[:, 0], nodes[:, 2:], nodes[:, 0] < 0
        own = np.arange(len(nodes))[:, None]
        inside = (children > own) & (children < len(nodes))  # children come later, so that every descent ends
        sound = (nodes[:, [0, 2, 3]] % 1 == 0).all() and (feature >= -1).all() and (feature < dimension).all()
        if not sound or not inside[~leaves].all() or not 0 < leaves.sum() <= self.most:
            raise ValueError(f"`state` must hold a tree of at most {self.most} leaves, got {nodes!r:.80}")
        self._feature, self._children = feature.astype(int), children.astype(int)
        self._threshold, self._number = nodes[:, 1], np.cumsum(leaves) - 1
        self.cells = int(leaves.sum())

    def _encode(self, observations: FloatArray) -> NDArray[Any]:
        seen = observations.astype(np.float32)  # in which scikit-learn compares
        node, row = np.zeros(len(seen), dtype=int), np.arange(len(seen))
        # All observations descend together, one level in each round.
        while (inner := self._feature[node] >= 0).any():
            right = seen[row, self._feature[node]] > self._threshold[node]
            node = np.where(inner, self._children[node, right.astype(int)], node)
        return np.asarray(self._number[node])


def _grown(steps: Steps, most: int, encoder: Encoder) -> FloatArray:
    """Return the nodes (feature or -1, threshold, left, right) of a tree that predicts what follows, by these cells."""
    from sklearn.tree import DecisionTreeRegressor

    cell, following = encoder.encode_steps(steps)
    earned = earned_from(cell, following, steps.rewards, encoder.cells)
    outcomes = np.column_stack([earned / max(earned.std(), 1e-300), np.eye(encoder.cells + 1)[following]])
    # A column for each action, 0 where another was taken: the tree then predicts all actions at once.
    codes = np.unique(steps.actions, return_inverse=True)[1]
    targets = np.zeros((len(steps), codes.max() + 1, outcomes.shape[1]))
    for action in range(codes.max() + 1):
        targets[codes == action, action] = outcomes[codes == action] - outcomes[codes == action].mean(axis=0)
    tree = DecisionTreeRegressor(max_leaf_nodes=most, min_samples_leaf=FEWEST, random_state=0)
    grown = tree.fit(steps.observations, targets.reshape(len(steps), -1)).tree_
    feature = np.where(grown.children_left < 0, -1, grown.feature)
    return np.column_stack([feature, grown.threshold, grown.children_left, grown.children_right]).astype(np.float64)


def earned_from(cell: IntArray, following: IntArray, rewards: FloatArray, cells: int) -> FloatArray:
    """Return r + γ·V(next cell) of each step (n,)."""
    visits = np.maximum(np.bincount(cell, minlength=cells), 1)
    values = np.zeros(cells + 1)  # 0 at the end
    # Repeated evaluation of the random policy: a contraction by 0.95, with no model to invert.
    for _ in range(SWEEPS):
        values[:-1] = np.bincount(cell, rewards + DISCOUNT * values[following], minlength=cells) / visits
    return np.asarray(rewards + DISCOUNT * values[following])
