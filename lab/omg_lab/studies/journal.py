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
    *("seconds_deciding", "seconds_playing", "seconds_learning", "seconds_accounting", "ceiling"),
    *("cost", "budget", "violation"),
)
"""The columns that are summed."""

TEXTS = ("world", "adversary", "agent", "context")
"""The columns of text."""

MOST_TIMES, FEW_BYTES = 1000, 2**24
"""The most that a part of a log may take in memory: this many times its size, and a few bytes."""

LISTS = ("states", "actions", "rewards", "propensities")
"""The columns of lists, which a log of propensities has."""

LOGGED_TOTALS = (*SUMMED[:10], "ceiling", "violation")
"""The columns whose running totals are in the log, as `cumulative_...`."""

_PLACES = [COLUMNS.index(name) for name in SUMMED]


def kept(episode: int, last: int) -> bool:
    """Return whether an episode has a row in the log of a run of `last` episodes.

    >>> [episode for episode in (9_999, 10_001, 10_010, 100_010, 100_100, 100_101) if kept(episode, 100_101)]
    [9999, 10010, 100100, 100101]
    """
    every = 1 if episode <= 10_000 else 10 if episode <= 100_000 else 100
    return episode % every == 0 or episode == last


def schema(*, trajectories: bool) -> pyarrow.Schema:
    """Return the columns of a log, and their types."""
    import pyarrow

    text, number = pyarrow.string(), pyarrow.int64()
    fields = {"episode": number, **dict.fromkeys(TEXTS[:3], text), "seed": number, "context": text}
    fields |= dict.fromkeys((*COLUMNS, *(f"cumulative_{name}" for name in LOGGED_TOTALS)), pyarrow.float64())
    whole, real = pyarrow.list_(number), pyarrow.list_(pyarrow.float64())
    lists = dict(zip(LISTS, (whole, whole, real, real), strict=True)) if trajectories else {}
    return pyarrow.schema({**fields, **lists})


def read_part(content: bytes, *, trajectories: bool, columns: list[str] | None = None) -> pyarrow.Table:
    """Return the rows of a part of a log; refuse anything else before it is unpacked.

    A few bytes can stand for any number of equal rows, or for a long text in each of them. A log is never as regular.
    """
    import pyarrow
    from pyarrow import compute, parquet

    file = parquet.ParquetFile(pyarrow.BufferReader(content), read_dictionary=list(TEXTS))
    wanted = schema(trajectories=trajectories)
    for field in file.schema_arrow:
        plain = field.type.value_type if pyarrow.types.is_dictionary(field.type) else field.type
        if field.name not in wanted.names or plain != wanted.field(field.name).type:
            raise ValueError(f"it must have the columns of a log, got {field.name!r:.60} of type {plain!s:.60}")
    if missing := [name for name in columns or wanted.names if name not in file.schema_arrow.names]:
        raise ValueError(f"it must have the column {missing[0]!r} of a log")
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
    most = MOST_TIMES * len(content) + FEW_BYTES
    if sum(8 * chunk.num_values + chunk.total_uncompressed_size for chunk in chunks) > most:
        raise ValueError(f"its {len(content)} bytes must not stand for more than {most}")
    table = file.read(columns)
    for place, name in enumerate(table.column_names):
        if name in TEXTS:
            texts = table[name].combine_chunks()
            lengths = compute.take(compute.binary_length(texts.dictionary), texts.indices)
            if (compute.sum(lengths).as_py() or 0) > most:
                raise ValueError(f"its {len(content)} bytes must not stand for more than {most}")
            table = table.set_column(place, name, texts.cast(pyarrow.string()))
    return table


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
        for name in LOGGED_TOTALS:
            columns[f"cumulative_{name}"] = np.ascontiguousarray(sums[:, SUMMED.index(name)])
        if self._trajectories:
            columns |= zip(LISTS, map(list, zip(*self._rounds, strict=True)), strict=True)
        return pyarrow.table(columns, schema=schema(trajectories=self._trajectories))

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
