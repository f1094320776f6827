"""The journal of a run: which episodes have a row in the log, exact running totals, and the rows as a table.

Every episode up to 10 000 has a row, then every 10th up to 100 000, then every 100th, and the last. The running totals
count all episodes. They are summed one episode after another, so they are the same bit for bit wherever a log is cut
into parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import ContextCache, context_to_json
from omg_cmdp.persistence import State
from omg_cmdp.runs.ledger import COLUMNS, Ledger
from omg_cmdp.theory.rounds import Round
from omg_cmdp.validation import FloatArray

if TYPE_CHECKING:
    import pyarrow

SUMMED = (
    *("regret", "reward_loss", "dynamics_loss", "reward_error", "dynamics_error"),
    *("optimum_error", "plan_gap", "policy_error", "exploration", "best_policy_regret", "return", "optimal_value"),
    *("seconds_deciding", "seconds_playing", "seconds_learning", "seconds_accounting"),
)
"""The columns that are summed."""

TEXTS = ("world", "adversary", "agent", "context")
"""The columns of text."""

LISTS = ("states", "actions", "rewards", "propensities")
"""The columns of lists, which a log of propensities has."""

LOGGED_TOTALS = SUMMED[:10]
"""The columns whose running totals are in the log, as `cumulative_...`."""

_PLACES = [COLUMNS.index(name) for name in SUMMED]


def kept(episode: int, last: int) -> bool:
    """Return whether an episode has a row in the log of a run of `last` episodes.

    >>> [episode for episode in (9_999, 10_001, 10_010, 100_010, 100_100, 100_101) if kept(episode, 100_101)]
    [9999, 10010, 100100, 100101]
    """
    every = 1 if episode <= 10_000 else 10 if episode <= 100_000 else 100
    return episode % every == 0 or episode == last


class Journal:
    """The rows since the last checkpoint, and the totals of all episodes so far."""

    def __init__(self, labels: Mapping[str, str | int], *, episodes: int, trajectories: bool) -> None:
        self.labels = labels
        self.episodes = episodes
        self.totals = np.zeros(len(SUMMED))
        self.half = 0.0
        """The regret of the first half of all episodes."""
        self._trajectories = trajectories
        self._tables: list[pyarrow.Table] = []
        self._rounds: list[tuple[Any, ...]] = []
        self._texts: ContextCache[str] = ContextCache()

    def observe(self, played: Round) -> None:
        """Note the trajectory of an episode that has a row."""
        if kept(played.episode, self.episodes):
            episode = played.played
            self._rounds.append((episode.states, episode.actions, episode.rewards, episode.propensities))

    def add(self, ledger: Ledger) -> None:
        """Add the episodes of a drained ledger."""
        rows = ledger.rows()
        if not len(rows):
            return
        first = ledger.episodes - len(rows) + 1
        sums = np.cumsum(np.vstack([self.totals, rows[:, _PLACES]]), axis=0)[1:]
        self.totals = sums[-1].copy()
        middle = self.episodes // 2 - first
        if 0 <= middle < len(rows):
            self.half = float(sums[middle, 0])
        chosen = [place for place in range(len(rows)) if kept(first + place, self.episodes)]
        if chosen:
            contexts = [self._texts.get(ledger.contexts[place], context_to_json) for place in chosen]
            self._tables.append(self._table(np.array(chosen) + first, contexts, rows[chosen], sums[chosen]))
            self._rounds.clear()

    def _table(self, episodes: NDArray[np.int64], contexts: list[str], rows: FloatArray, sums: FloatArray) -> Any:
        import pyarrow

        columns: dict[str, Any] = {"episode": episodes}
        columns |= {name: [value] * len(episodes) for name, value in self.labels.items()}
        columns["context"] = contexts
        columns |= {name: np.ascontiguousarray(rows[:, place]) for place, name in enumerate(COLUMNS)}
        columns |= {f"cumulative_{name}": np.ascontiguousarray(sums[:, i]) for i, name in enumerate(LOGGED_TOTALS)}
        if self._trajectories:
            columns |= zip(LISTS, map(list, zip(*self._rounds, strict=True)), strict=True)
        return pyarrow.table(columns)

    def total(self, name: str) -> float:
        """Return the total of a column so far."""
        return float(self.totals[SUMMED.index(name)])

    def table(self) -> pyarrow.Table | None:
        """Return the rows since the last checkpoint; None if there are none."""
        import pyarrow

        return pyarrow.concat_tables(self._tables).combine_chunks() if self._tables else None

    def clear(self) -> None:
        """Forget the rows, once they are stored; the totals stay."""
        self._tables.clear()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the totals, for a checkpoint."""
        return {"totals": self.totals.copy(), "half": np.array(self.half)}

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        self.totals, self.half = np.array(state["totals"]), float(state["half"])
