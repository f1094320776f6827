"""All contexts that may come: for agents that ask in each of them what they would have done."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import ClassVar, final

import numpy as np

from omg_cmdp.contexts import Context, table_label, unchanging
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import State
from omg_cmdp.records import context_rows
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.declared import ModelRival, Option


@final
class Listed:
    """C contexts, each with a place."""

    def __init__(self, contexts: Iterable[Context]) -> None:
        try:
            kept = {table_label(each): unchanging(each) for each in context_rows("contexts", contexts)}
        except TypeError:
            raise ValueError(f"`contexts` must be a list of vectors or hashable labels, got {contexts!r:.60}") from None
        if not kept:
            raise ValueError("`contexts` must list at least one context, got none")
        self.contexts = tuple(kept.values())
        self._places = {label: place for place, label in enumerate(kept)}

    def __len__(self) -> int:
        return len(self.contexts)

    def __iter__(self) -> Iterator[Context]:
        return iter(self.contexts)

    def __str__(self) -> str:
        return f"{len(self)} contexts {fingerprint(self.contexts)}"

    def place(self, context: Context) -> int:
        """Return the place of a context, or refuse it."""
        try:
            return self._places[table_label(context)]
        except (KeyError, TypeError):
            raise ValueError(f"`context` must be one of the {len(self)} in `contexts`, got {context!r:.80}") from None


def listed(name: str, contexts: Iterable[Context]) -> Listed:
    """Return the contexts of an argument."""
    return Listed(contexts)


def opening_actions(space: Space, number: int) -> FloatArray:
    """Return (S, A), one-hot: in every state the admissible action of this `number`, again from the first after all.

    >>> opening_actions(Space(states=2, actions=2, horizon=1, admissible=[[True, True], [False, True]]), 0)
    array([[1., 0.],
           [0., 1.]])
    """
    order = np.argsort(~space.admissible, axis=1, kind="stable")  # the admissible ones first
    chosen = order[np.arange(space.states), number % space.admissible.sum(axis=1)]
    return np.asarray(np.eye(space.actions)[chosen])


class Counterfactual(ModelRival):
    """A rival that counts, for each of the listed contexts, what it would have done had that context always come."""

    _: dataclasses.KW_ONLY
    contexts: Option[Iterable[Context], Listed] = Option(listed)

    usual_oracles = "offline"
    learned: ClassVar[tuple[str, ...]] = ("counts",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._counts = np.empty(0)  # (C, ...), 1 before the first round that counts
        for context in self.contexts:
            self.model(context)  # refuses one that the oracles do not know

    def _predicted(self, oracle: RewardOracle | DynamicsOracle, here: slice, *tail: int) -> FloatArray:
        """Return what an oracle predicts for these contexts, (C, K, *tail), K = 1 if it has no steps."""
        tables = np.stack([oracle.predict(each) for each in self.contexts.contexts[here]])
        return tables.reshape(len(tables), -1, *tail)

    def _read(self, state: State, episodes: int) -> dict[str, FloatArray]:
        arrays = super()._read(state, episodes)
        if (least := arrays["counts"].min()) < 1.0:
            raise ValueError(f"`state` must hold counts of at least 1, got {least}")
        return arrays
