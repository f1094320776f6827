"""Product classes: in every state of every context, a different function of a finite class may be best.

N functions in each of C contexts and S states make a class of N^{CS} functions, too many to list; but their losses add
up over (context, state), so that Vovk's algorithm keeps N weights for each. Regret (docs/oracles.md, Theorem 1):

    (H/2)·C·S·log N     and (H/2)·log 2 more if guarded.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import final

import numpy as np

from omg_cmdp.contexts import Context, Listing
from omg_cmdp.oracles.draws import Streams, resample
from omg_cmdp.oracles.finite.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.frame import RewardFrame
from omg_cmdp.oracles.losses import SQUARE, Examples, exponential_weights
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.validation import FloatArray, positive_integer


class _Product(Forecasters):
    """N functions in each of C contexts and S states, and the loss of each there."""

    learned = ("class_losses",)
    rate: Rate
    contexts: tuple[Hashable, ...]

    def __init__(
        self, functions: FunctionClass, contexts: Iterable[Hashable], states: int, count: int, rate: Rate
    ) -> None:
        super().__init__(rate.horizon, rate)
        self._functions = self.source = functions
        self.sizes = functions.sizes
        self._listing = Listing(contexts)
        self.contexts = self._listing.contexts
        self.settings = (f"contexts {self._listing}",)
        self.class_losses = np.zeros((len(self.contexts), states, count))

    def prepare(self, context: Context) -> tuple[int, Functions]:
        index, functions = self._listing.number(context), self._functions(context)
        _, states, count = self.class_losses.shape
        if functions.tables.ndim != 3 or functions.tables.shape[:2] != (count, states):
            wanted = f"({count}, {states}, A)"
            raise ValueError(f"`predictions` must return shape {wanted}, got {functions.tables.shape}")
        return index, functions

    def _posteriors(self, index: int, rates: FloatArray) -> FloatArray:
        """Return (rates, S, N): the weights of the functions in each state."""
        return exponential_weights(self.class_losses[index], rates[:, None, None])

    def forecasts(self, prepared: tuple[int, Functions]) -> FloatArray:
        index, functions = prepared
        posteriors = self._posteriors(index, SQUARE.rate / self.rate.tempers)
        # Both exponentials of Vovk's substitution, mixed for all tempers and states at once.
        halves = functions.exponentials.reshape(2, *functions.shape, -1)
        at_zero, at_one = np.einsum("ksn,ysan->yksa", posteriors, halves)
        return np.asarray(np.clip(0.5 + 0.25 * np.log(at_one / at_zero), 0.0, 1.0))

    def learn(self, prepared: tuple[int, Functions], episode: Examples) -> None:
        index, functions = prepared
        errors = functions.columns[episode.cells] - episode.outcomes[:, None]
        # Losses add up over states: each state chooses its own best function.
        np.add.at(self.class_losses[index], episode.states, errors**2)

    def expected_divergence(self, prepared: tuple[int, Functions], prediction: FloatArray) -> FloatArray:
        """Return E(f - f̂)² under the textbook's posterior of each state."""
        index, functions = prepared
        (posterior,) = self._posteriors(index, np.array([SQUARE.rate]))
        return np.asarray(np.einsum("sn,nsa->sa", posterior, (functions.tables - prediction) ** 2))

    def draws(self, prepared: tuple[int, Functions], streams: Streams) -> FloatArray:
        """Return, for every state, some of the N functions, each as often as its posterior weight there says."""
        index, functions = prepared
        (posterior,) = self._posteriors(index, np.array([SQUARE.rate]))
        drawn = resample(posterior, streams.of(index))
        # Independent draws in each state, as the product class has it.
        return np.asarray(functions.tables[drawn.T, np.arange(len(drawn))])

    def listed(self, prepared: tuple[int, Functions]) -> FloatArray:
        """Return the tables of the N functions that every state chooses from."""
        return prepared[1].tables

    def best_loss(self) -> float:
        """Return the sum of the smallest losses of all (context, state)."""
        return float(self.class_losses.min(axis=-1).sum())

    def bound(self, episodes: int, horizon: int) -> float:
        labels, states, count = self.class_losses.shape
        return self.rate.frozen_bound(labels * states * math.log(count) / SQUARE.rate)


@final
class ProductRewards(RewardFrame[_Product]):
    """Rewards from a product class: each of C contexts and S states has a best function of its own among N.

    The N^(C·S) functions need not be listed, because losses add up over (context, state). Regret: (H/2)·C·S·log N, and
    (H/2)·log 2 more if guarded.

    Parameters
    ----------
    predictions : callable or mapping
        context -> (N, S, A), in [0, 1]: the tables of all N functions at once. They must not change.
    contexts : iterable of labels
        The contexts that may come; any other is refused.
    states : int
        The number of states, S.
    functions : int
        The number of functions, N.
    horizon : int
        The largest number of steps of an episode, H.
    rate : {"guarded", "proven", "realizable"}, default "guarded"
        "proven" is safe against any adversary, "realizable" faster on benign data and without a bound; "guarded"
        aggregates both.

    Examples
    --------
    >>> arms = np.eye(2)[:, None]  # in each state one of two arms pays
    >>> oracle = ProductRewards(lambda context: arms, contexts=["a", "b"], states=1, functions=2, horizon=1)
    >>> oracle.update("a", states=[0], actions=[0], rewards=[1.0])
    >>> oracle.predict("a").round(2), oracle.predict("b")
    (array([[0.83, 0.17]]), array([[0.5, 0.5]]))

    References
    ----------
    docs/oracles.md, Theorem 1.
    """

    product_class = True

    def __init__(
        self,
        predictions: Predictions,
        *,
        contexts: Iterable[Hashable],
        states: int,
        functions: int,
        horizon: int,
        rate: str = "guarded",
    ) -> None:
        sizes = positive_integer("states", states), positive_integer("functions", functions)
        chosen = Rate(rate, horizon, tempered=True)
        super().__init__(_Product(FunctionClass(predictions, SQUARE), contexts, *sizes, chosen))
