"""The claims of oracles: their charges, their regrets, and whether their classes hold the truth.

An oracle is asked for two things only: its bound, which is what it claims, and the functions of its class, where these
are listed. Its loss is that of the models that were played; the best loss of its class, and the distance of the class
from the truth, are computed here from the functions and the episodes. What it says of these itself is no evidence.

Where a class is not listed, its best loss is at least that of the best function of context, step, state and action,
since this has one value for every such tuple, the mean reward or the observed frequencies. If the loss exceeds even
that by no more than the bound, the regret is within the bound, whatever the class. Otherwise nothing is shown.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import Oracle
from omg_cmdp.oracles.counts.dynamics import CountDynamics
from omg_cmdp.oracles.counts.rewards import CountRewards
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY
from omg_cmdp.theory.lateness import Lateness
from omg_cmdp.theory.rounds import Round
from omg_cmdp.validation import BoolArray, FloatArray
from omg_lab.audit.rows import at_most
from omg_lab.audit.statements import Sides

NAMES = ("rewards", "dynamics")


def step_losses(k: int, tables: FloatArray, path: Episode) -> FloatArray:
    """Return (..., L): what every step costs tables (..., steps, S, A) of rewards, k = 0, or of transitions, k = 1."""
    steps = np.arange(len(path.actions))
    if k == 0:
        means = tables[..., steps % tables.shape[-3], path.states[:-1], path.actions]
        return np.asarray((means - path.rewards) ** 2)
    chances = tables[..., steps % tables.shape[-4], path.states[:-1], path.actions, path.states[1:]]
    return np.asarray(-np.log(chances + SMALLEST_PROBABILITY))


def losses(mdp: TabularMDP, this: Round) -> tuple[float, float]:
    """Return the square loss and the log loss of the tables of `mdp` on the episode played, as oracles are charged."""
    tables = mdp.reward_steps, mdp.transition_steps
    return float(step_losses(0, tables[0], this.played).sum()), float(step_losses(1, tables[1], this.played).sum())


def of_the_charges(this: Round, model: TabularMDP) -> Iterator[Sides]:
    """Yield whether the oracles were charged the loss of the model; a late outcome is charged to a later model."""
    if this.arrived != (this.episode,):
        return
    for oracle, name, own, charged in zip(this.oracles, NAMES, losses(model, this), this.charged, strict=True):
        if oracle is not None:
            yield f"charge, {name}", abs(own - charged), 0.0


class _Place(NamedTuple):
    """What is known of the N functions of a class at one context."""

    fingerprint: str
    losses: FloatArray
    """Their losses, (N, S)."""
    gaps: FloatArray
    """Their distances from the truth, (N, S): the largest over actions that count, steps and next states."""


class ClassRecord:
    """The class of one oracle, of rewards if k = 0 or of dynamics, beside the truth and the episodes of a run."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.is_listed = self.is_fixed = True
        """Whether the functions are listed, and whether they have never changed."""
        self._places: dict[Hashable, _Place] = {}
        self._free: collections.defaultdict[Hashable, list[float]] = collections.defaultdict(list)
        """The outcomes of every context, step, state and action, for a class that is not listed."""

    def meet(self, oracle: Oracle, this: Round) -> None:
        """Note the functions of the class in the context of an episode, and their distances from the truth."""
        mdp = this.truth.mdp
        truth = (mdp.reward_steps, mdp.transition_steps)[self.k]
        tables = self._listed(oracle, this)
        self.is_listed = tables is not None
        tables = _nearest_table(oracle, this, truth) if tables is None else tables
        if tables is None:
            self._places = {}  # not a class, or one of which nothing can be said
            return
        found = _Place(fingerprint(tables), np.zeros((len(tables), mdp.states)), gaps(tables, truth, mdp.admissible))
        before = self._places.setdefault(_key(this), found)
        if before.fingerprint != found.fingerprint or before.gaps.shape != next(iter(self._places.values())).gaps.shape:
            self.is_listed, self.is_fixed, self._places = False, False, {}  # functions that change are no class

    def learn(self, oracle: Oracle, this: Round) -> None:
        """Charge every function of the class the loss of an episode; or keep the outcomes, if it is not listed."""
        path, key, tables = this.played, _key(this), self._listed(oracle, this)
        if tables is not None:
            np.add.at(self._places[key].losses.T, path.states[:-1], step_losses(self.k, tables, path).T)
            return
        outcomes = (path.rewards, path.states[1:])[self.k].tolist()
        pairs = zip(path.states.tolist(), path.actions.tolist(), outcomes, strict=False)
        for step, (state, action, outcome) in enumerate(pairs):
            self._free[key, step, state, action].append(outcome)

    def _listed(self, oracle: Oracle, this: Round) -> FloatArray | None:
        """Return the functions of the class in the context of an episode, (N, steps, S, A, ...)."""
        mdp = this.truth.mdp
        shape = (mdp.rewards.shape[-2:], mdp.transitions.shape[-3:])[self.k]
        tables = oracle.functions(this.context) if self.is_listed else None
        if tables is None or tables.shape[-len(shape) :] != shape:
            return None
        return tables.reshape(len(tables), -1, *shape)

    def best_loss(self, product: bool) -> float:
        """Return the least loss of the class; of one that is not listed, that of all functions of context and tuple."""
        if not self.is_fixed:
            return math.nan
        if not self.is_listed:
            return math.fsum(map((_square_spread, _log_spread)[self.k], self._free.values()))
        found = np.array([place.losses for place in self._places.values()])  # contexts, functions, states
        return float(found.min(axis=1).sum() if product else found.sum(axis=(0, 2)).min())

    def distance(self, product: bool) -> float:
        """Return how far the class is from the truth; nan if that is not known."""
        if not self._places:
            return math.nan
        found = np.array([place.gaps for place in self._places.values()])
        return float(found.min(axis=1).max() if product else found.max(axis=(0, 2)).min())


def gaps(tables: FloatArray, truth: FloatArray, used: BoolArray) -> FloatArray:
    """Return the largest |f - f*| of functions (N, steps, S, A, ...) in every state, (N, S), where it counts."""
    apart = np.abs(tables - truth).max(axis=1)
    return np.asarray((apart.reshape(len(apart), *used.shape, -1).max(axis=-1) * used).max(axis=-1))


def _nearest_table(oracle: Oracle, this: Round, truth: FloatArray) -> FloatArray | None:
    """Return the table nearest to the truth, (1, 1, ...), if the class has every table for each context; or None.

    That is so by definition of counts for listed contexts, and needs no oracle's word. They predict 0 only outside of
    their support.
    """
    if not isinstance(oracle, (CountRewards, CountDynamics)) or oracle.contexts is None:
        return None
    middle = 0.5 * (truth.min(axis=0) + truth.max(axis=0))
    possible = oracle.predict(this.context) > 0.0 if isinstance(oracle, CountDynamics) else True
    return np.where(possible, middle, 0.0)[None, None]


def _square_spread(outcomes: list[float]) -> float:
    """Return Σ (r - mean)²."""
    mean = math.fsum(outcomes) / len(outcomes)
    return math.fsum((outcome - mean) ** 2 for outcome in outcomes)


def _log_spread(outcomes: list[float]) -> float:
    """Return -Σ n·log(n/N) over the frequencies n of the outcomes."""
    total = len(outcomes)
    return -math.fsum(count * math.log(count / total) for count in collections.Counter(outcomes).values())


def _key(this: Round) -> Hashable:
    """Return what tells contexts apart; one without a key is met only once."""
    key = this.played.known.key
    return ("episode", this.episode) if key is None else key


class Records:
    """The oracles of one run, beside the truth."""

    def __init__(self) -> None:
        self.oracles: tuple[Any, ...] = (None, None)
        self.classes = (ClassRecord(0), ClassRecord(1))
        self.lateness = Lateness()
        self.horizon = 0
        self._first: int | None = None
        self._spoken = [True, True]
        """Whether the models that were played are those of the oracles, as far as charges can tell."""
        self._waiting: dict[int, Round] = {}

    def add(self, this: Round, model: TabularMDP | None, planned: bool) -> None:
        """Note an episode, its model, whether that is said to be its oracles', and which feedback arrived."""
        self.oracles, self.horizon = this.oracles, this.truth.mdp.horizon
        self._first = this.episode if self._first is None else self._first
        played = (math.nan, math.nan) if model is None else losses(model, this)
        self.lateness.add(this.episode, played, this.arrived)
        self._waiting[this.episode] = this
        known = [self._waiting.pop(each) for each in this.arrived if each in self._waiting]
        for k, oracle in enumerate(this.oracles):
            if oracle is None:
                continue
            at_once = this.arrived == (this.episode,)
            self._spoken[k] &= at_most(abs(played[k] - this.charged[k]), 0.0) if at_once else planned
            self.classes[k].meet(oracle, this)
            for each in known:
                self.classes[k].learn(oracle, each)

    def proven(self) -> list[float]:
        """Return the bounds on the oracles' regrets; nan for one that was not seen to hold, inf where there is none."""
        found = [math.inf, math.inf]
        for k, oracle in enumerate(self.oracles):
            if oracle is not None:
                left, bound = self._regret(k, oracle)
                found[k] = bound if bound == math.inf or at_most(left, bound) else math.nan
        return found

    def sides(self) -> Iterator[Sides]:
        """Yield the regrets of the oracles, and the distances of their classes from the truth."""
        kind = "delayed" if self.lateness.is_late else "oracle"
        for k, (oracle, name) in enumerate(zip(self.oracles, NAMES, strict=True)):
            if oracle is not None:
                yield f"{kind} regret, {name}", *self._regret(k, oracle)
                yield f"realizability, {name}", self.classes[k].distance(oracle.product_class), 0.0

    def _regret(self, k: int, oracle: Oracle) -> tuple[float, float]:
        """Return the regret of an oracle, nan where it cannot be computed, and the bound that it claims."""
        late, record = self.lateness, self.classes[k]
        bound = oracle.regret_bound(late.updates, self.horizon) if late.updates else math.inf
        if late.is_late:
            delay, constant = late.delay()
            episodes = late.updates + len(self._waiting)
            bound = oracle.delayed_regret_bound(episodes, self.horizon, delay, constant=constant)
        # A bound is for the first T episodes that an oracle learns from, and this run must have all of them.
        if self._first != 1 or oracle.episodes not in (None, late.updates):
            return math.nan, bound
        regret = late.losses[k] - record.best_loss(oracle.product_class)
        said = oracle.loss - oracle.best_loss()
        if not late.is_late and not math.isnan(said) and not at_most(said, bound):
            return said, bound  # its own account breaks its bound
        shown = self._spoken[k] and (record.is_listed or at_most(regret, bound))
        return regret if shown else math.nan, bound
