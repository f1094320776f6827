"""Whether the episodes that an agent has seen contradict the classes of its oracles: a verdict in one sentence."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Keyed, alike
from omg_cmdp.misfit import evidence
from omg_cmdp.misfit.directions import Direction, DirectionKind, columns, products, repeated, scaled
from omg_cmdp.misfit.tangents import tangent
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.validation import FloatArray

LEVEL = 0.01
"""The probability of a false alarm over all time, for each of the two oracles."""
FEWEST_EXAMPLES = 50
"""The number of examples from which on there is a verdict."""
SIMPLE = 0.5
"""A direction is named before the context itself if it has this share of the evidence."""
UNSEEN = 1e-12
"""The probability below which a transition is one that the class excludes."""


class MisfitStatus(enum.Enum):
    """The verdicts on a fit; the value is the sentence shown to the user."""

    TOO_EARLY = "Too few episodes to say whether the oracles' classes fit."
    NONE_FOUND = "Nothing in the episodes contradicts the oracles' classes."
    FOUND = "The episodes contradict an oracle's class."


class Contradiction(NamedTuple):
    """One oracle, whose class the episodes contradict.

    >>> Contradiction("rewards", "age × ward=a", "add the cross age × ward=a to the features", 12.0).oracle
    'rewards'
    """

    oracle: str
    """The oracle: "rewards" or "dynamics"."""
    direction: str
    """The direction that the class lacks most, such as "age × ward=a"."""
    advice: str
    """The advice: what to change."""
    log_evidence: float
    """The logarithm of the e-value: if the class holds the truth, it ever exceeds x with probability at most e⁻ˣ."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Misfit:
    """Whether the data contradict the classes of an agent's oracles. `agent.misfit()` makes it; `str` is a sentence.

    Parameters
    ----------
    status : MisfitStatus
        Whether something was found.
    episodes : int
        The number of episodes that were looked at.
    findings : tuple of Contradiction
        What was found, at most one for each oracle.

    Examples
    --------
    >>> str(Misfit(status=MisfitStatus.NONE_FOUND, episodes=100))
    "Nothing in the episodes contradicts the oracles' classes."
    >>> finding = Contradiction("rewards", "a constant", "use `intercept=True`", 20.0)
    >>> print(Misfit(status=MisfitStatus.FOUND, episodes=100, findings=(finding,)))
    The model does not fit: rewards depend on a constant beyond their oracle's class; use `intercept=True`.
    """

    status: MisfitStatus
    episodes: int
    findings: tuple[Contradiction, ...] = ()

    def __str__(self) -> str:
        if not self.findings:
            return self.status.value
        said = [
            f"{each.oracle} depend on {each.direction} beyond their oracle's class; {each.advice}"
            for each in self.findings
        ]
        return f"The model does not fit: {'. Also, '.join(said)}."


def sentence(misfit: Misfit | None) -> str | None:
    """Return what to say of a misfit; None if there is nothing to say.

    >>> sentence(Misfit(status=MisfitStatus.NONE_FOUND, episodes=100))
    """
    return str(misfit) if misfit is not None and misfit.findings else None


class Taught(NamedTuple):
    """The examples of one episode that an oracle has learned."""

    known: Keyed
    steps: NDArray[np.int64]
    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    outcomes: NDArray[Any]


def find(name: str, oracle: RewardOracle | DynamicsOracle, seen: Sequence[Taught]) -> Contradiction | None:
    """Return the strongest finding against an oracle, whatever its evidence; None if there is nothing to judge by."""
    if sum(len(each.states) for each in seen) < FEWEST_EXAMPLES:
        return None
    examples = _Examples(oracle, seen)
    excluded = examples.excluded()
    if excluded is not None:
        return Contradiction(name, excluded, DirectionKind.SUPPORT.value.format(name=excluded), math.inf)
    contexts = [each.known.context for each in seen]
    own, labels = columns(contexts), repeated(contexts)
    constant = Direction("a constant", DirectionKind.CONSTANT, (), np.ones(len(seen)))
    step = scaled("the step", DirectionKind.STEP, (), examples.steps.astype(np.float64))
    of_contexts = [each._replace(values=each.values[examples.episodes]) for each in (constant, *own, *products(own))]
    directions = of_contexts if step is None else [*of_contexts, step]
    table = [each.values for each in directions] + [each.values[examples.episodes] for each in labels]
    logs = examples.log_evidence(np.column_stack(table), len(directions))
    if logs is None:
        return None
    best = int(np.argmax(logs[: len(directions)]))
    # A column or a cross says more than that contexts differ.
    simple = not labels or logs[best] >= SIMPLE * logs[-1]
    strongest = directions[best] if simple else labels[0]
    return Contradiction(name, strongest.name, examples.advice(strongest), float(evidence.log_mean(logs)))


class _Examples:
    """All examples of an oracle, with what it predicts for them now, in groups that share no parameters."""

    def __init__(self, oracle: RewardOracle | DynamicsOracle, seen: Sequence[Taught]) -> None:
        place = self.episodes = np.repeat(np.arange(len(seen)), [len(each.states) for each in seen])
        steps, states, actions, outcomes = (np.concatenate(parts) for parts in list(zip(*seen, strict=True))[1:])
        self.steps, self.outcomes = steps, outcomes
        predicted, tangents = [], []
        same = np.empty(len(seen), dtype=np.int64)
        for number, places in enumerate(alike([each.known.context for each in seen])):
            known = seen[places[0]].known
            same[places] = number
            predicted.append(oracle.predict(known.to(oracle)))
            tangents.append(tangent(oracle, known))
        self.is_reward = self.outcomes.dtype.kind == "f"
        tables, at = np.stack(predicted), same[place]
        with_steps = tables.ndim == (4 if self.is_reward else 5)
        where = (at, steps, states, actions) if with_steps else (at, states, actions)
        self.predictions = tables[where]
        pairs = states * tables.shape[3 if with_steps else 2] + actions  # A follows S
        self.shared = any(len(each.rows) > 1 for each in tangents)
        if self.shared:
            rows = np.stack([each.rows for each in tangents])
            self.tangents = rows[at, pairs]
        else:
            self.tangents = np.concatenate([each.rows for each in tangents])[at]
        self.pooled = bool(self.tangents.size and np.ptp(self.tangents, axis=0).max() == 0.0)
        labels: dict[Any, int] = {}
        numbers = np.array([labels.setdefault(each.table, len(labels)) for each in tangents])
        keys = np.column_stack([pairs, numbers[at], steps if with_steps else np.zeros_like(steps)])
        self.pairs = np.column_stack([states, actions])
        self.groups = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        self.slack = max(each.slack for each in tangents)

    def excluded(self) -> str | None:
        """Return the first transition that the oracle calls impossible after it was seen; None if there is none."""
        if self.is_reward:
            return None
        chances = self.predictions[np.arange(len(self.outcomes)), self.outcomes]
        places = np.flatnonzero(chances < UNSEEN)
        if not len(places):
            return None
        (state, action), arrived = self.pairs[places[0]], self.outcomes[places[0]]
        return f"the transition from state {state} with action {action} to state {arrived}"

    def advice(self, direction: Direction) -> str:
        """Return what to try."""
        if direction.kind is not DirectionKind.STEP and self.tangents.shape[1] == 0:
            return "use a larger class: counts, linear features, or boosting"
        if direction.kind is not DirectionKind.STEP and self.pooled:
            return "use oracles that look at the context: counts for each (`contexts=`), linear features, or boosting"
        return direction.kind.value.format(name=direction.name)

    def log_evidence(self, directions: FloatArray, plain: int) -> FloatArray | None:
        """Return the log e-value of each of the first `plain` directions, and one for all others together."""
        tangents = self.tangents
        residuals = self.outcomes - self.predictions if self.is_reward else self.outcomes
        if self.is_reward and self.shared:
            residuals = evidence.without_tangents(residuals[:, None], tangents, np.ones(len(residuals)))[:, 0]
            tangents = tangents[:, :0]
        precision = evidence.REWARD_PRECISION if self.is_reward else evidence.LOGIT_PRECISION
        cells, pooled = [], []
        order = np.argsort(self.groups, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(self.groups[order])) + 1):
            if len(own) < tangents.shape[1] + evidence.FEWEST:
                continue
            if self.is_reward:
                scores = [evidence.reward_scores(directions[own], tangents[own], residuals[own], self.slack)]
                pooled += scores
            else:
                arguments = directions[own], tangents[own], self.predictions[own], self.outcomes[own]
                scores = evidence.transition_scores(*arguments, self.slack)
            if scores:
                cells.append(evidence.log_mean(np.array([evidence.log_e(u, v, precision) for u, v in scores])))
        if not cells:
            return None
        table = np.array(cells)
        logs = evidence.over_groups(table[:, :plain])
        if pooled:
            u, v = (np.sum(each, axis=0)[:plain] for each in zip(*pooled, strict=True))
            logs = evidence.log_mean(np.array([logs, evidence.log_e(u, v, precision)]))
        if table.shape[1] > plain:
            # Different contexts have different examples: all of their cells make one product.
            logs = np.append(logs, evidence.over_groups(table[:, plain:].reshape(-1, 1)))
        return logs
