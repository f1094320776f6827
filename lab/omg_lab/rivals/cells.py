"""What agents share that learn one table for each cell of contexts.

They may be told rewards or transitions, as functions of the context. What is known is planned with as it is, and no
bonus or noise is paid for it: `width` is the range of the part of r + V(s') that is not known.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.finite.function_class import FunctionClass
from omg_cmdp.oracles.losses import LOG, SQUARE, Loss
from omg_cmdp.oracles.witnesses import Source
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray, instance_of, one_of, one_of_shapes
from omg_lab.rivals.covers import Blind, Cover, PerBall, PerContext
from omg_lab.rivals.declared import Option, Rival


class Tally(NamedTuple):
    """The tables of a cell; those of some agents have further axes."""

    counts: FloatArray
    """N(s, a, s')."""
    rewards: FloatArray
    """The sums of rewards, (S, A)."""


def own_cover(name: str, cover: Cover) -> Cover:
    """Return a copy of a cover: agents with the same one do not open cells for each other."""
    instance_of(name, cover, Cover)
    return copy.deepcopy(cover)


class CellRival(Rival):
    """A rival with a tally for each cell of its own copy of `cover`, which says which contexts share one."""

    cover: Option[Cover, Cover] = Option(own_cover)
    _: dataclasses.KW_ONLY
    known_rewards: Callable[[Context], FloatArray] | None = None
    """From a context to the true (S, A), in [0, 1]; None: rewards are learned."""
    known_transitions: Callable[[Context], FloatArray] | None = None
    """From a context to the true (S, A, S); None: transitions are learned."""

    derived = ("known",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._tallies: list[Tally] = []
        given = {"known_rewards": self.known_rewards, "known_transitions": self.known_transitions}
        losses: dict[str, Loss] = {"known_rewards": SQUARE, "known_transitions": LOG}
        self._tables = {
            name: FunctionClass(functools.partial(_as_class, told), losses[name], name)
            for name, told in given.items()
            if told is not None
        }
        self.known = tuple(self._tables)
        self.learns_rewards, self.learns_transitions = (float(name not in self._tables) for name in given)

    @classmethod
    def for_world(
        cls,
        world: Environment,
        *,
        cover: str | Cover = "per_context",
        radius: float | None = None,
        known: Collection[str] = (),
        **options: Any,
    ) -> Self:
        """Return an agent with a cover of the world's contexts: see `cover_for`.

        It is told what `known` lists, "rewards" or "dynamics", if the world has tables.
        """
        for part in known:
            one_of("known", part, ("rewards", "dynamics"))
        told = {
            "known_rewards": functools.partial(true_rewards, world) if "rewards" in known else None,
            "known_transitions": functools.partial(true_transitions, world) if "dynamics" in known else None,
        }
        return super().for_world(world, cover=cover_for(world, cover, radius), **told | options)

    @property
    def width(self) -> float:
        """The range of what is not known of r + V_{h+1}(s'): 0 if rewards and transitions are known."""
        following = self.value_bounds.highs[1:] - self.value_bounds.lows[1:]
        widest = self.learns_rewards + self.learns_transitions * float(following.max())
        return min(widest, self.value_bounds.span)

    @property
    def hope(self) -> float:
        """What an untried pair may be worth at most beyond what is known of it."""
        return max(self.learns_rewards, self.learns_transitions * self.space.horizon)

    def model(self, context: Context) -> TabularMDP:
        """Return what is known, else the frequencies and means of the context's cell; uniform and 0 if untried."""
        return self._model(self.tally(context), context)

    def tally(self, context: Context) -> Tally:
        """Return copies of the tables of the context's cell; empty ones if it is not open."""
        cell = self.cover.cell(context)
        if cell >= len(self._tallies):
            return self._empty_tally()
        return Tally(*(table.copy() for table in self._tallies[cell]))

    def _empty_tally(self) -> Tally:
        """Return the tables with which a cell opens."""
        pairs = (self.space.states, self.space.actions)
        return Tally(counts=np.zeros((*pairs, self.space.states)), rewards=np.zeros(pairs))

    def _add(self, tally: Tally, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Add an episode to the tables of its cell."""
        states, actions = trajectory.states[:-1], trajectory.actions
        np.add.at(tally.counts, (states, actions, trajectory.next_states), 1.0)
        np.add.at(tally.rewards, (states, actions), rewards)

    def _told(self, name: str, context: Context, learned: FloatArray) -> FloatArray:
        """Return the table of this name if it is known, else the learned one."""
        if name not in self._tables:
            return learned
        table: FloatArray = self._tables[name](context).tables[0]
        one_of_shapes(name, table, learned.shape)
        return table

    def _model(self, tally: Tally, context: Context) -> TabularMDP:
        visits = tally.counts.sum(axis=2)
        tried = np.maximum(visits, 1.0)
        frequencies = tally.counts / tried[:, :, None]
        frequencies[visits == 0.0] = 1.0 / self.space.states
        return self.space.mdp(
            transitions=self._told("known_transitions", context, frequencies),
            rewards=self._told("known_rewards", context, tally.rewards / tried),
        )

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        self._witness(trajectory)
        cell = self.cover.open(trajectory.context)
        while len(self._tallies) <= cell:
            self._tallies.append(self._empty_tally())
        self._add(self._tallies[cell], trajectory, rewards)

    def _learned(self) -> dict[str, NDArray[Any]]:
        empty = self._empty_tally()
        counts, rewards = (
            np.array([tally[part] for tally in self._tallies]).reshape(-1, *empty[part].shape) for part in (0, 1)
        )
        return {"counts": counts, "rewards": rewards, **self.cover.state(), **super()._learned()}

    def _load_learned(self, state: State, episodes: int) -> None:
        empty = self._empty_tally()
        counts, rewards = (numbers(name, state, (None, *getattr(empty, name).shape)) for name in Tally._fields)
        cover = copy.deepcopy(self.cover)
        cover.load_state(state)
        if not len(counts) == len(rewards) <= len(cover):
            raise ValueError(f"`state` must hold tables for {len(cover)} cells, got {len(counts)} and {len(rewards)}")
        super()._load_learned(state, episodes)
        self.cover = cover
        self._tallies = [Tally(*tables) for tables in zip(counts, rewards, strict=True)]

    def _sources(self) -> dict[str, Source]:
        return dict(self._tables)


def _as_class(function: Callable[[Context], FloatArray], context: Context) -> FloatArray:
    """Return what a function says, as a class of one."""
    return np.asarray(function(context))[None]


def true_rewards(world: Any, context: Context) -> FloatArray:
    """Return the world's rewards in a context."""
    return np.asarray(world.mdp(context).rewards)


def true_transitions(world: Any, context: Context) -> FloatArray:
    """Return the world's transitions; forbidden actions, which have none, lead anywhere."""
    rows = world.space.admissible[..., None]
    return np.asarray(np.where(rows, world.mdp(context).transitions, 1.0 / world.space.states))


def cover_for(world: Environment, cover: str | Cover, radius: float | None = None) -> Cover:
    """Return a cover by its name: "blind", "per_context", or "per_ball" with a `radius`, 0.4 by default."""
    instance_of("world", world, Environment)
    if isinstance(cover, Cover):
        return cover
    one_of("cover", cover, ("blind", "per_context", "per_ball"))
    if cover != "per_ball":
        if radius is not None:
            raise ValueError(f"`radius` must be left out for cover = {cover!r}")
        return Blind() if cover == "blind" else PerContext()
    if not isinstance(world.contexts[0], np.ndarray):
        raise ValueError(f"`cover` must be 'blind' or 'per_context' where contexts are labels, got {cover!r}")
    return PerBall(0.4 if radius is None else radius)
