"""From examples to a model: always the same one, whatever was learned before; and what it must pass to be published."""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.contexts import context_from_json
from omg_cmdp.live.state import Dataset, Learning
from omg_cmdp.live.trial import Trial
from omg_cmdp.persistence import State as Arrays

TRIED = 5
"""A model must have a certified plan for so many of the contexts that came last."""


class Lesson(NamedTuple):
    """What came of learning."""

    agent: ModelAgent
    model: str
    """A digest of all that was learned."""
    refusal: str | None
    """Why it must not be published."""


class Trainer:
    """Learns examples in their order, always from the first one on.

    A prefix that was learned before is not learned again: the result is the same to the bit.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._known: tuple[Dataset, Arrays | None] = (), None

    def train(self, dataset: Dataset, settled: int = 0) -> ModelAgent:
        """Return an agent that has learned these examples; the first `settled` are not likely to change any more."""
        agent = self.trial.agent()
        known, arrays = self._known
        done = len(known)
        if arrays is not None and dataset[:done] == known:
            agent.load_state(arrays)
        else:
            done = 0
        for place, example in enumerate(dataset[done:], start=done):
            if place == settled > 0:
                self._known = dataset[:settled], agent.state()
            agent.update(example.trajectory())
        if settled == len(dataset) > done:
            self._known = dataset, agent.state()
        return agent

    def remember(self, dataset: Dataset, arrays: Arrays) -> None:
        """Begin with what was learned from `dataset` before, by another process say."""
        self._known = dataset, arrays

    def learn(self, learning: Learning) -> Lesson:
        """Return what came of it: an agent, and whether it may be published."""
        try:
            agent = self.train(learning.dataset, learning.settled)
            return Lesson(agent, model_digest(agent), refusal(agent, learning.dataset))
        except Exception as error:  # whatever a model may raise: the one in use stays
            return Lesson(self.trial.agent(), "", f"it could not be learned: {type(error).__name__}: {error}")


def model_digest(agent: ModelAgent) -> str:
    """Return a digest of all that was learned: equal for agents that are equal to the bit."""
    whole = hashlib.sha256()
    for name, array in sorted(agent.state().items()):
        whole.update(f"{name} {array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()


def refusal(agent: ModelAgent, dataset: Dataset) -> str | None:
    """Return why a model must not be published; None if it may.

    Its tables are finite and its plans certified for the contexts that came last, and no oracle has lost more than its
    proven bound allows.
    """
    if not all(np.isfinite(array).all() for array in agent.state().values() if array.dtype.kind == "f"):
        return "the model has numbers that are not finite"
    for name, oracle in (("reward", agent.reward_oracle), ("dynamics", agent.dynamics_oracle)):
        bound = oracle.regret_bound(max(len(dataset), 1), agent.space.horizon)
        lost = oracle.loss - oracle.best_loss()
        if math.isfinite(bound) and lost > bound * (1.0 + 1e-6) + 1e-6:
            return f"the {name} oracle lost {lost:.4g} more than the best of its class, and its bound is {bound:.4g}"
    for text in list(dict.fromkeys(example.context for example in reversed(dataset)))[:TRIED]:
        try:
            decision = agent.decide(context_from_json(text))
        except (ArithmeticError, ValueError) as error:
            return f"there is no certified plan for a context: {error}"
        if not math.isfinite(decision.certificate):
            return "a plan has no certificate"
    return None
