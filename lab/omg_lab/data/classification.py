"""Classification as a bandit: name the class of an example, and learn only whether that was right.

The data sets are those that scikit-learn ships: "digits" (1797 examples, 64 pixels, 10 classes), "iris" (150, 4, 3),
"wine" (178, 13, 3) and "breast_cancer" (569, 30, 2).

States, horizon   S = 1, H = 1.
Actions           The classes.
Contexts          The distinct examples as vectors: features scaled to [0, 1] over the data set (pixels all alike,
                  others each by itself), and a constant 1. With d features the norm is √(d + 1) at most.
Rewards           1 if the action is the example's class, else 0; without noise. Examples with the same features and
                  different classes are one context, with the share of the class as its mean, Bernoulli.
Transitions       None to speak of: a class of one.
Class             8 hypotheses on how the classes are numbered, one of them true: permutations, which repeat where
                  there are fewer than 8. So the finite class knows what belongs together, and asks for its name. The
                  data themselves are in no class of ours; `LinearRewards` on the vectors is the usual one.

A world has any of its examples again and again; a stream without repetition is the adversary `NeverTwice`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context, context_key
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, frozen, one_of
from omg_lab.worlds.base import OneState, streams, vector

if TYPE_CHECKING:
    from collections.abc import Callable

DATASETS = ("breast_cancer", "digits", "iris", "wine")


def examples(dataset: str) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the features (n, d + 1) of all examples, scaled, with a constant, and their classes (n,)."""
    one_of("dataset", dataset, DATASETS)
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError("this world needs scikit-learn: pip install scikit-learn") from error
    load: Callable[..., Any] = getattr(datasets, f"load_{dataset}")
    raw, classes = load(return_X_y=True)
    axis = None if dataset == "digits" else 0  # a pixel that is always dark is not to be stretched
    low, high = raw.min(axis=axis), raw.max(axis=axis)
    scaled = (raw - low) / (high - low)
    return np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1), np.asarray(classes, dtype=np.int64)


@final
@dataclass(kw_only=True, eq=False)
class Classification(OneState):
    """A data set of scikit-learn as a bandit: the actions are classes; needs the extra `sklearn`.

    Parameters
    ----------
    dataset : str
        "digits", the default, "iris", "wine" or "breast_cancer".
    reward_class_size : int
        Number N of numberings of the classes.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> world = Classification(dataset="iris")  # doctest: +SKIP
    >>> len(world.contexts), world.space.actions  # doctest: +SKIP
    (149, 3)
    """

    package = "scikit-learn"

    dataset: str = "digits"
    reward_class_size: int = 8

    def _draw(self) -> None:
        features, classes = examples(self.dataset)
        size, actions = self.reward_class_size, int(classes.max()) + 1
        distinct, which = np.unique(features, axis=0, return_inverse=True)
        self.contexts = contexts = tuple(frozen(row.copy()) for row in distinct)
        self.space = Space(states=1, actions=actions, horizon=1)
        (for_rewards,) = streams(self.seed, 1)
        self.reward_index = int(for_rewards.integers(size))
        self._numberings = for_rewards.permuted(np.tile(np.arange(actions), (size, 1)), axis=1)
        self._numberings[self.reward_index] = np.arange(actions)
        self._places = {context_key(context): place for place, context in enumerate(contexts)}
        self._shares = np.zeros((len(contexts), actions))
        np.add.at(self._shares, (which, classes), 1.0)
        self._shares /= self._shares.sum(axis=1, keepdims=True)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, 1, A) under every numbering of the classes."""
        return np.asarray(self._shares[self._place(context)][self._numberings][:, None])

    def _place(self, context: Context) -> int:
        found = self._places.get(context_key(vector(context, len(self.contexts[0]))))
        if found is None:
            raise ValueError(f"`context` must be the features of an example of {self.dataset!r}, got {context!r:.80}")
        return found
