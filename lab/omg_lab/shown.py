"""What a report shows of a world's policies: which contexts, which steps and states, and what these are called.

All agents meet the same world, and are shown in the same places for all contexts: those that the best policies and the
uniform one visit most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.environment import NAMED, Environment, checked_names
from omg_cmdp.mdp.occupancy import uniform_policy
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.truth import Truth
from omg_cmdp.runs.advice import choices

CANDIDATES = 6
"""Contexts that are kept: a report chooses among them."""
MOST_STEPS, MOST_STATES = 6, 6


class Names(NamedTuple):
    """What states, actions and the features of contexts are called; () if they have only numbers."""

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


def names_of(world: Environment) -> Names:
    """Return the `state_names`, `action_names` and `feature_names` of a world, where it has some."""
    named = {kind: names for kind in NAMED if (names := getattr(world, kind))}
    found = checked_names(world, **named)
    return Names(*(found.get(kind, ()) for kind in NAMED))


def shown_contexts(contexts: Sequence[Context]) -> list[Context]:
    """Return up to six of `contexts`, evenly spread."""
    places = np.linspace(0, len(contexts) - 1, min(CANDIDATES, len(contexts)))
    return [contexts[place] for place in places.round().astype(int)]


def shown_cells(space: Space, truths: Iterable[Truth]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the steps, evenly spread, and the states, those visited most, in which policies are shown.

    A state that is never visited, as one in which episodes end, is not shown. Where the truth is not known, the first
    states are.
    """
    steps = np.unique(np.linspace(0, space.horizon - 1, min(MOST_STEPS, space.horizon)).round().astype(np.int64))
    visits, known = np.zeros(space.states), False
    for truth in truths:
        for policy in (truth.best[0], uniform_policy(space)):
            visits += truth.occupancy(policy).sum(axis=(0, 2))
            known = True
    states = choices(space)
    states = states[visits[states] > 0.0] if known else states
    most = states[np.argsort(-visits[states], kind="stable")][:MOST_STATES]
    return steps, np.sort(most)
