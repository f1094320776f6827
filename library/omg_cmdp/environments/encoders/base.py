"""The contract of an encoder, which turns observations into cells, numbered from 0.

Limits. What happens next depends on where in a cell the environment is: the process of cells is not Markov, and no MDP
over them is the truth. The oracles learn an average over each cell as it was visited so far, which changes with the
policy; guarantees hold up to this misspecification.
More cells are closer to the truth and take longer to learn: transitions have S²·A entries. An encoder is fitted before
the first episode: once it is fitted again, its cells mean something else, and the agent must start over. Observations
beyond those it was fitted to go to cells at the edge: if random actions do not reach what a good policy reaches, fit it
to steps of a good one.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Iterable, Mapping
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.environments.encoders.steps import IntArray, Steps, matrix
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.persistence import AGENT_FILE, State, check_settings, part_of, read_arrays, read_state
from omg_cmdp.records import context_rows
from omg_cmdp.validation import FloatArray, file_path, instance_of, listed


class Encoder(abc.ABC):
    """A map from observations to cells, fitted to steps; `Bins` and `Clusters` are such maps.

    One of your own needs the four abstract methods, and a `repr` that tells its settings.

    Examples
    --------
    >>> class Signs(Encoder):
    ...     def _fit(self, steps):
    ...         return {}
    ...     def _load(self, arrays, dimension):
    ...         self.cells = 2
    ...     def _encode(self, observations):
    ...         return observations[:, 0] > 0.0
    ...     def __repr__(self):
    ...         return "Signs()"
    >>> steps = Steps(observations=[[0.5]], next_observations=[[1.0]], rewards=[0.0], terminated=[False], actions=[0],
    ...     episodes=[0], contexts=[0])
    >>> Signs().fit(steps).encode([[-3.0], [2.0]])
    array([0, 1])
    """

    dimension: int | None = None
    """The number of entries of an observation; None before `fit`."""
    cells: int
    """The number of cells, once it is fitted."""

    @abc.abstractmethod
    def _fit(self, steps: Steps) -> Mapping[str, FloatArray]:
        """Return the arrays that make the cells."""

    @abc.abstractmethod
    def _load(self, arrays: State, dimension: int) -> None:
        """Use these arrays; refuse what did not come from `_fit` before anything changes, and set `cells`."""

    @abc.abstractmethod
    def _encode(self, observations: FloatArray) -> NDArray[Any]:
        """Return the cells (n,) of checked observations (n, d)."""

    @abc.abstractmethod
    def __repr__(self) -> str: ...

    @final
    def fit(self, steps: Steps) -> Self:
        """Make the cells from `steps`, in the place of those it had; return the encoder itself."""
        instance_of("steps", steps, Steps)
        self._use(dict(self._fit(steps)), steps.observations.shape[1])
        return self

    @final
    def encode(self, observations: ArrayLike) -> IntArray:
        """Return the cells (n,) of `observations` (n, d)."""
        if self.dimension is None:
            raise ValueError(f"`encoder` must be fitted, got {self!r}: see `fit` and `environments.random_steps`")
        table = matrix("observations", observations)
        if table.shape[1] != self.dimension:
            raise ValueError(f"`observations` must have shape (n, {self.dimension}), got {table.shape}")
        return self._encode(table).astype(np.int64, copy=False)

    @final
    def encode_steps(self, steps: Steps) -> tuple[IntArray, IntArray]:
        """Return the cells before and after each of `steps`, (n,); after one that terminated, the number of cells."""
        instance_of("steps", steps, Steps)
        after = np.where(steps.terminated, self.cells, self.encode(steps.next_observations))
        return self.encode(steps.observations), after

    @final
    def episodes(self, steps: Steps, space: Space, contexts: Iterable[Context]) -> list[Episode]:
        """Return `steps` as episodes in these cells, which an agent can learn from.

        Parameters
        ----------
        steps : Steps
            The steps. An episode is left after H of them.
        space : Space
            The agent's, with a state for each cell and one for episodes that have ended: see `gymnasium_space`.
        contexts : iterable of contexts
            Those that `random_steps` was given.
        """
        instance_of("steps", steps, Steps)
        instance_of("space", space, Space)
        before, after = self.encode_steps(steps)
        actions, numbers = int(steps.actions.max()) + 1, int(steps.contexts.max()) + 1
        if space.states != self.cells + 1 or space.actions < actions:
            wanted, got = f"{self.cells} + 1 states and {actions} actions", f"{space.states} and {space.actions}"
            raise ValueError(f"`space` must have {wanted}, got {got}: `gymnasium_space` makes such a space")
        known = listed("contexts", context_rows("contexts", contexts))
        if len(known) < numbers:
            raise ValueError(f"`contexts` must hold the {numbers} of the steps, got {len(known)}")
        made = []
        for episode in np.unique(steps.episodes):
            # An agent's episode ends after H steps, wherever the environment would go on.
            seen = np.flatnonzero(steps.episodes == episode)[: space.horizon]
            end = seen[-1]
            last = None if steps.terminated[end] else int(after[end])
            played = before[seen], steps.actions[seen], steps.rewards[seen]
            made.append(Episode.of_steps(space, known[steps.contexts[end]], *played, last=last))
        return made

    @final
    def state(self) -> dict[str, NDArray[Any]]:
        """Return the cells as plain arrays. An agent that plays in them saves these with what it learned."""
        if self.dimension is None:
            raise ValueError(f"`encoder` must be fitted, got {self!r}")
        return {"settings": np.array(repr(self)), "dimension": np.array(self.dimension), **self._arrays}

    @final
    def load_state(self, state: State) -> None:
        """Load the cells of an encoder with the same settings; refuse any other state, and change nothing."""
        read = read_state(state)
        check_settings(read, repr(self))
        dimension = read.pop("dimension", np.array(0))
        if dimension.shape != () or dimension.dtype.kind not in "iu" or dimension < 1:
            raise ValueError(f"`state` must hold the length of an observation under 'dimension', got {dimension!r:.60}")
        del read["settings"]
        self._use(read, int(dimension))

    @final
    def restore(self, path: str | os.PathLike[str]) -> Self:
        """Load the cells from the file of a saved agent that played in them; return the encoder itself."""
        self.load_state(part_of(read_arrays(file_path(path), **AGENT_FILE), "encoder"))
        return self

    def _use(self, arrays: dict[str, NDArray[Any]], dimension: int) -> None:
        # It raises before anything changes.
        self._load(arrays, dimension)
        self._arrays, self.dimension = arrays, dimension
