"""The log holds episodes of one space, with the probability of each action that was taken."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, context_numbers
from omg_cmdp.logs.lines import episode_line, lines_path
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.persistence import whole_file
from omg_cmdp.recipes.recipe import episodes_in_words
from omg_cmdp.records import columns_of
from omg_cmdp.validation import FloatArray, instance_of, integer, interval, listed

if TYPE_CHECKING:
    import pandas


RECORD = "context."
"""The columns of records in a table begin with this."""


@final
class Log:
    """Episodes of one space in the order in which they were played.

    `play` returns a log, tables are read into one, estimators and `warm_start` take one. A slice of a log is a log:
    `log[:n]` to learn from, say, and `log[n:]` to judge by.

    Parameters
    ----------
    space : Space
        The states, actions and horizon of all episodes.
    episodes : iterable of Episode, default ()
        The episodes; `add` appends more.
    reward_range : pair of float, default (0, 1)
        An interval that holds all rewards.
    state_names, action_names : sequence, optional
        What the states and actions are called, in the order of their numbers: `read_table` keeps them here.

    Examples
    --------
    >>> episode = Episode(context="c", states=[0, 0], actions=[1], rewards=[1.0], propensities=[0.5])
    >>> log = Log(Space(states=1, actions=2, horizon=1), [episode] * 3)
    >>> len(log), len(log[:2]), log.returns.tolist()
    (3, 2, [1.0, 1.0, 1.0])
    """

    def __init__(
        self,
        space: Space,
        episodes: Iterable[Episode] = (),
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        state_names: Sequence[Any] | None = None,
        action_names: Sequence[Any] | None = None,
    ) -> None:
        instance_of("space", space, Space)
        self.space, self.reward_range = space, interval("reward_range", reward_range)
        self.state_names = _names("state_names", state_names, space.states)
        """The names of the states; their numbers by default."""
        self.action_names = _names("action_names", action_names, space.actions)
        """The names of the actions; their numbers by default."""
        self.overlap: Any = None
        """The overlap of estimated propensities (see `estimate_propensities`); None if they were logged."""
        self.episodes: list[Episode] = []
        self.interrupted = False
        """Whether Ctrl-C ended `play` before its last context."""
        for episode in listed("episodes", episodes):
            self.add(episode)

    def add(self, episode: Episode) -> None:
        """Append an episode; raise unless it is one of the space, with rewards in range."""
        instance_of("episode", episode, Episode)
        episode.check(self.space, self.reward_range)
        self.episodes.append(episode)

    def __len__(self) -> int:
        return len(self.episodes)

    def __repr__(self) -> str:
        if not self.episodes:
            return f"Log of {self.space!r} without episodes"
        earned, steps = self.returns, int(self.steps.sum())
        known = sum(episode.propensities is not None for episode in self.episodes)
        told = "no" if not known else "all" if known == len(self) else str(known)
        lines = [f"Log of {episodes_in_words(len(self))}, {steps} steps, in {self.space!r}"]
        lines.append(f"returns {np.nanmin(earned):.3g} to {np.nanmax(earned):.3g}, mean {np.nanmean(earned):.3g}")
        return "\n  ".join([*lines, f"propensities of {told} episodes"])

    def __getitem__(self, chosen: slice) -> Log:
        """Return some of the episodes as a log."""
        if not isinstance(chosen, slice):
            advice = "single ones are in `episodes`"
            raise TypeError(f"`log[...]` must be given a slice of episodes ({advice}), got {chosen!r:.60}")
        return self._of(self.episodes[chosen])

    def _of(self, episodes: list[Episode]) -> Log:
        """Return a log like this one with other episodes, which are not checked again."""
        part = copy.copy(self)
        part.episodes = episodes
        return part

    @property
    def contexts(self) -> list[Context]:
        """The context of each episode."""
        return [episode.context for episode in self.episodes]

    @property
    def returns(self) -> FloatArray:
        """The total reward of each episode, (n,): of the steps that were seen, if it was truncated."""
        return np.array([episode.rewards.sum() for episode in self.episodes])

    @property
    def steps(self) -> NDArray[np.int64]:
        """The number of steps seen of each episode, (n,): H, or fewer if it was truncated."""
        return np.array([len(episode.actions) for episode in self.episodes], dtype=np.int64)

    def whole(self) -> Log:
        """Return the log of the episodes that were seen to their end, with all rewards known."""
        horizon = self.space.horizon
        return self._of([e for e in self.episodes if len(e.actions) == horizon and np.isfinite(e.rewards).all()])

    def require_whole(self) -> None:
        """Raise unless all episodes were seen to their end, with all rewards known."""
        known, horizon = np.isfinite(self.rewards).sum(axis=1), self.space.horizon
        if (known < horizon).any():
            place = int(np.argmax(known < horizon))
            rule = "hold whole episodes with all rewards (`log.whole()` leaves others out)"
            raise ValueError(f"`log` must {rule}, got {known[place]} of {horizon} rewards in episode {place}")

    @property
    def states(self) -> NDArray[np.int64]:
        """The states, (n, H + 1); -1 where an episode was not seen, or nobody knows where its last action led."""
        return self._stacked((episode.states for episode in self.episodes), self.space.horizon + 1, -1)

    @property
    def actions(self) -> NDArray[np.int64]:
        """The actions, (n, H); -1 where an episode was not seen."""
        return self._stacked((episode.actions for episode in self.episodes), self.space.horizon, -1)

    @property
    def rewards(self) -> FloatArray:
        """The rewards, (n, H); nan where they are not known."""
        return self._stacked((episode.rewards for episode in self.episodes), self.space.horizon, np.nan)

    @property
    def propensities(self) -> FloatArray | None:
        """The probabilities of the actions taken, (n, H), in (0, 1], nan after the end; None if one is unknown."""
        known = [episode.propensities for episode in self.episodes if episode.propensities is not None]
        return self._stacked(known, self.space.horizon, np.nan) if len(known) == len(self) else None

    @property
    def costs(self) -> FloatArray | None:
        """What the steps cost, (J, n, H), nan after the end; None unless all episodes say so, of as many kinds."""
        told = [episode.costs for episode in self.episodes if episode.costs is not None]
        if len(told) < len(self) or len({len(each) for each in told}) != 1:
            return None
        kinds = range(len(told[0]))
        return np.array([self._stacked((each[j] for each in told), self.space.horizon, np.nan) for j in kinds])

    def of_costs(self, kind: int = 0) -> Log:
        """Return the log with costs of one kind in the place of rewards: what is estimated of it is what policies cost.

        >>> episode = Episode(context="c", states=[0, 0], actions=[1], rewards=[1.0], costs=[3.0], propensities=[0.5])
        >>> Log(Space(states=1, actions=2, horizon=1), [episode]).of_costs().returns
        array([3.])
        """
        costs = self.costs
        if costs is None or not 0 <= integer("kind", kind, 0) < len(costs):
            kinds = "no costs in all episodes" if costs is None else f"{len(costs)} kinds of cost"
            raise ValueError(f"`kind` must be the number of a cost; the log has {kinds}, got {kind}")
        made = self._of([each.with_rewards(each.costs[kind]) for each in self.episodes if each.costs is not None])
        made.reward_range = min(float(np.nanmin(costs[kind])), 0.0), max(float(np.nanmax(costs[kind])), 1.0)
        return made

    def _stacked(self, rows: Iterable[NDArray[Any]], width: int, missing: float) -> NDArray[Any]:
        """Return the rows as a table, of integers if `missing` is one."""
        # The dtype follows from `missing`: -1 makes integers, nan floats.
        stacked = np.full((len(self), width), missing)
        for line, row in zip(stacked, rows, strict=True):
            line[: len(row)] = row
        return stacked

    def table(self) -> pandas.DataFrame:
        """Return a data frame with a row for every step that was seen, as `read_table` takes it.

        A label is in the column `context`, a vector in `context_0`, `context_1`, ..., a record with the fields age and
        ward in `context.age` and `context.ward`. The rows of an episode that has terminated are in the last state, with
        reward 0 and propensity 1. Unknown propensities are missing, and have no column if all are unknown; a next state
        that nobody knows is missing. What steps cost is in `cost_0`, `cost_1`, ... States and actions are numbers,
        whatever their names.
        """
        import pandas

        steps = self.steps
        # Rows for steps that were seen: a truncated episode has fewer.
        seen = np.arange(self.space.horizon) < steps[:, None]
        columns: dict[str, Any] = {"episode": np.repeat(np.arange(len(self)), steps), "step": np.nonzero(seen)[1]}
        for name, values in _context_columns(self.contexts).items():
            # A series takes entries of any kind for what they are, tuples and vectors among them.
            repeated = (value for value, count in zip(values, steps.tolist(), strict=True) for _ in range(count))
            columns[name] = pandas.Series(list(repeated))
        states, none = self.states, np.empty(0)
        known = [none if episode.propensities is None else episode.propensities for episode in self.episodes]
        tables = {
            "state": states[:, :-1],
            "action": self.actions,
            "reward": self.rewards,
            "next_state": states[:, 1:],
            **({"propensity": self._stacked(known, self.space.horizon, np.nan)} if any(map(len, known)) else {}),
            **({} if self.costs is None else {f"cost_{kind}": each for kind, each in enumerate(self.costs)}),
        }
        frame = pandas.DataFrame(columns | {name: table[seen] for name, table in tables.items()})
        unknown = frame["next_state"] < 0
        return frame.assign(next_state=frame["next_state"].astype("Int64").mask(unknown)) if unknown.any() else frame

    def name_policy(self, policy: ArrayLike) -> pandas.DataFrame:
        """Return a policy (H, S, A) as a table with names: a row for each step and state, a column for each action.

        >>> log = Log(Space(states=1, actions=2, horizon=1), state_names=["ill"], action_names=["drug A", "drug B"])
        >>> log.name_policy([[[0.2, 0.8]]])
                    drug A  drug B
        step state
        0    ill       0.2     0.8
        """
        import pandas

        steps = range(self.space.horizon)
        index = pandas.MultiIndex.from_product([steps, self.state_names], names=["step", "state"])
        table = self.space.checked_policy(policy).reshape(len(index), -1)
        return pandas.DataFrame(table, index=index, columns=list(self.action_names))

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the log to a file, which replaces another of that name once the new one is whole; return its path.

        Parameters
        ----------
        path : path-like
            A name that ends in .jsonl: the file has a line for each episode, which `read_log` reads back equal in every
            bit. For other programs there is `table()`, with `to_csv` and `to_parquet` of pandas.
        """
        target = lines_path("path", path)
        # A reader must never see half a log.
        with whole_file(target) as file:
            file.write_text("".join(map(episode_line, self.episodes)), encoding="utf-8")
        return target


def _names(name: str, given: Sequence[Any] | None, count: int) -> tuple[Any, ...]:
    names = tuple(range(count) if given is None else listed(name, given))
    if len(names) != count or len(set(map(str, names))) < count:
        raise ValueError(f"`{name}` must be {count} distinct names, got {given!r:.80}")
    return names


def _context_columns(contexts: list[Context]) -> dict[str, Sequence[Any]]:
    """Return contexts as columns: the fields of records, the entries of vectors of one length, or labels."""
    if contexts and all(isinstance(context, dict) and context for context in contexts):
        return {f"{RECORD}{name}": values for name, values in columns_of("contexts", contexts).items()}
    vectors = [vector for each in contexts if not np.isscalar(each) and (vector := context_numbers(each)) is not None]
    if len(vectors) == len(contexts) and len(set(map(len, vectors))) == 1 and vectors[0].size:
        return {f"context_{place}": column.tolist() for place, column in enumerate(np.transpose(vectors))}
    return {"context": contexts}
