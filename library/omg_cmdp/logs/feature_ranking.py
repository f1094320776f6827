"""Which features, crosses and encodings would predict a log better: ranked by held-out loss, cross-fitted by episodes.

The base has weights for every state and action: a constant for columns, and a constant and all columns for squares,
crosses, contexts and steps. Added to it, a candidate w changes predictions along what the base leaves of it, by one
ridge step fitted on the other folds; its gain is by how much the loss of the held-out fold falls:

    rewards    Σ (r - f̂)²/(2σ²), σ² the mean square of the base      dynamics   Σ -log P̂(s')

Both are in nats per episode, so that they add up. A gain is negative if the candidate costs more than it tells.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.logs.feature_fits import Fit, MeanFit, SoftmaxFit
from omg_cmdp.logs.log import Log
from omg_cmdp.misfit.directions import Direction, DirectionKind, columns, products, repeated, scaled
from omg_cmdp.validation import FloatArray, IntArray, instance_of, positive_integer, seed_number

if TYPE_CHECKING:
    import pandas

FEWEST = 10
"""The number of episodes that a ranking needs for each fold."""


class Suggestion(NamedTuple):
    """A candidate, and what it gains in nats per episode.

    Parameters
    ----------
    feature : str
        Its name, such as "age × ward".
    kind : str
        What it is: "column", "missing", "square", "cross", "context" or "step".
    columns : tuple
        The columns of the contexts that it is made of.
    rewards, dynamics : float
        What it gains in predicting rewards, and next states.
    error : float
        The standard error of both together, over episodes.

    Examples
    --------
    >>> Suggestion("age × ward", "cross", ("age", "ward"), 0.2, 0.1, 0.05).gain
    0.30000000000000004
    """

    feature: str
    kind: str
    columns: tuple[Any, ...]
    rewards: float
    dynamics: float
    error: float

    @property
    def gain(self) -> float:
        """What it gains in all."""
        return self.rewards + self.dynamics


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class FeatureRanking:
    """Candidates for features, the best first. `suggest_features` makes it.

    Parameters
    ----------
    suggestions : tuple of Suggestion
        All candidates, by their gain.

    Examples
    --------
    >>> found = Suggestion("age × ward", "cross", ("age", "ward"), 0.2, 0.1, 0.05)
    >>> FeatureRanking(suggestions=(found,)).crosses
    [('age', 'ward')]
    """

    suggestions: tuple[Suggestion, ...]

    @property
    def crosses(self) -> list[tuple[Any, Any]]:
        """The pairs of columns that gain more than two standard errors, for `FeatureMap.fit(..., crosses=)`."""
        return [
            (each.columns[0], each.columns[1])
            for each in self.suggestions
            if each.kind == "cross" and each.gain > 2.0 * each.error
        ]

    def table(self) -> pandas.DataFrame:
        """Return a data frame with a row for each candidate, in nats per episode."""
        import pandas

        rows = [(each.feature, each.kind, each.gain, each.error, each.rewards, each.dynamics) for each in self]
        return pandas.DataFrame(rows, columns=["feature", "kind", "gain", "error", "rewards", "dynamics"])

    def __iter__(self) -> Iterator[Suggestion]:
        return iter(self.suggestions)

    def __str__(self) -> str:
        shown = [f"{each.feature} ({each.gain:+.3g} ± {2.0 * each.error:.2g})" for each in self.suggestions[:5]]
        return f"Gains in nats per episode, held out: {', '.join(shown)}." if shown else "There are no candidates."


def suggest_features(log: Log, *, folds: int = 5, seed: int = 0) -> FeatureRanking:
    """Return which columns, squares, crosses, indicators of missing values, contexts and steps predict the log better.

    Each candidate is added to a base with weights for every state and action, fitted on some episodes and judged on
    others (cross-fitted). Columns of records are numbers or one-hot categories, as in `FeatureMap`.

    Parameters
    ----------
    log : Log
        Logged episodes; how actions were chosen does not matter.
    folds : int, default 5
        The number of parts, each of which is held out once.
    seed : int, default 0
        The seed by which episodes are dealt to the parts.

    Returns
    -------
    FeatureRanking
        The candidates, the best first, with `table()` and `crosses`.

    Examples
    --------
    >>> import numpy as np
    >>> import omg_cmdp as omg
    >>> generator, log = np.random.default_rng(0), omg.Log(omg.Space(states=1, actions=1, horizon=1))
    >>> for _ in range(400):
    ...     age, dose, sex = generator.choice([-1.0, 1.0], size=3).tolist()
    ...     reward = float(generator.random() < 0.5 + 0.3 * age * dose)
    ...     log.add(omg.Episode(context={"age": age, "dose": dose, "sex": sex}, states=[0, 0], actions=[0],
    ...                         rewards=[reward], propensities=[1.0]))
    >>> found = suggest_features(log)
    >>> found.table()["feature"].iloc[0], found.crosses
    ('age × dose', [('age', 'dose')])
    """
    instance_of("log", log, Log)
    folds = positive_integer("folds", folds)
    generator = np.random.default_rng(seed_number(seed))
    if folds < 2 or len(log) < FEWEST * folds:
        got = f"{len(log)} episodes and {folds} folds"
        raise ValueError(f"`log` must hold at least {FEWEST} episodes for each of 2 or more `folds`, got {got}")
    part = generator.permutation(np.arange(len(log)) % folds)
    examples = _Examples(log, part)
    own = columns(log.contexts)
    first = _grouped(own, examples)
    second = _grouped([*products(own), *repeated(log.contexts)], examples)
    steps = scaled("the step", DirectionKind.STEP, (), examples.steps.astype(np.float64))
    second += [] if steps is None else [[steps]]
    base = np.ones((len(examples.steps), 1))
    richer = np.column_stack([base, *(each.values for group in first for each in group)])
    found = [*examples.gains(base, first), *examples.gains(richer, second)]
    return FeatureRanking(suggestions=tuple(sorted(found, key=lambda each: -each.gain)))


def _grouped(found: list[Direction], examples: _Examples) -> list[list[Direction]]:
    """Return the directions of the same kind and columns together, with a number for each example."""
    grouped: dict[tuple[DirectionKind, tuple[Any, ...]], list[Direction]] = {}
    for each in found:
        moved = each._replace(values=each.values[examples.episodes])
        grouped.setdefault((each.kind, each.columns), []).append(moved)
    return list(grouped.values())


def _name(group: list[Direction]) -> str:
    first, made_of = group[0], " × ".join(map(str, group[0].columns))
    if len(group) == 1 or not made_of:
        return first.name
    return f"{made_of}²" if first.kind is DirectionKind.SQUARE else made_of


class _Examples:
    """All steps of a log whose outcomes are known."""

    def __init__(self, log: Log, part: IntArray) -> None:
        seen = np.arange(log.space.horizon) < log.steps[:, None]
        self.episodes, self.steps = np.nonzero(seen)
        low, high = log.reward_range
        self.rewards = (log.rewards[seen] - low) / (high - low)
        states = log.states
        self.next_states = states[:, 1:][seen]  # -1: nobody saw where the last step led
        pairs = np.unique(states[:, :-1][seen] * log.space.actions + log.actions[seen], return_inverse=True)[1]
        order = np.argsort(pairs, kind="stable")
        self.pairs = np.split(order, np.flatnonzero(np.diff(pairs[order])) + 1)
        self.part, self.folds = part[self.episodes], int(part.max()) + 1

    def gains(self, base: FloatArray, candidates: list[list[Direction]]) -> list[Suggestion]:
        """Return what each group of directions adds to features `base` (n, d)."""
        added = [np.column_stack([each.values for each in group]) for group in candidates]
        noise, saved = 0.0, np.zeros((2, len(added), len(self.steps)))
        for pair, fold in itertools.product(self.pairs, range(self.folds)):
            held = self.part[pair] == fold
            told, arrived = ~np.isnan(self.rewards[pair]), self.next_states[pair] >= 0
            fits: list[tuple[int, IntArray, IntArray, Callable[..., Fit], NDArray[Any]]] = [
                (0, pair[~held & told], pair[held & told], MeanFit, self.rewards),
                (1, pair[~held & arrived], pair[held & arrived], SoftmaxFit, self.next_states),
            ]
            for row, train, test, fit, outcomes in fits:
                if not len(train) or not len(test):
                    continue
                fitted = fit(base[train], outcomes[train])
                before = fitted.loss(base[test], outcomes[test], None)
                noise += float(before.sum()) if row == 0 else 0.0
                for place, more in enumerate(added):
                    saved[row, place, test] = before - fitted.loss(
                        base[test], outcomes[test], fitted.step(base, more, train, test)
                    )
        count = self.episodes.max() + 1
        if noise > 0.0:
            saved[0] /= 2.0 * noise / np.count_nonzero(~np.isnan(self.rewards))
        found = []
        for place, group in enumerate(candidates):
            each = np.array([np.bincount(self.episodes, part[place], minlength=count) for part in saved])
            error = float(each.sum(axis=0).std(ddof=1)) / math.sqrt(count)
            kind, made_of = group[0].kind.name.lower(), group[0].columns
            rewards, dynamics = each.mean(axis=1).tolist()
            found.append(Suggestion(_name(group), kind, made_of, rewards, dynamics, error))
        return found
