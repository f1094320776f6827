"""From examples to a model, always the same to the bit, and the checks that it must pass to be published."""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.misfit.judgement import sentence
from omg_cmdp.persistence import State as Arrays
from omg_trial.episodes import Dataset
from omg_trial.trial_file.trial import Trial
from omg_trial.versions import LearningTask

TRIED = 5
"""Number of contexts, the last that came, for which a model must have a certified plan."""


REMEMBERED, MOST_REMEMBERED = 100, 30
"""Examples between two states of the agent that are remembered, and the most states."""

NOT_LEARNED = "it could not be learned: "
NO_MEMORY = f"{NOT_LEARNED}MemoryError"
"""Says nothing of the model: where there is memory, it can be learned."""

MOST_JUDGED = 2048
"""Number of the last examples by which the model's class is judged."""


class Lesson(NamedTuple):
    """A trained agent, and whether it may be published."""

    agent: ModelAgent
    model: str
    """A digest of all that was learned."""
    refusal: str | None
    """Why it must not be published."""


class Trainer:
    """Learns examples in their order, always from the first one on.

    What was learned before is remembered here and there, and a prefix that has not changed since is not learned again:
    the result is the same to the bit. Outcomes that come late change examples, but seldom old ones.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._known: tuple[Dataset, dict[int, Arrays]] = (), {}

    def train(self, dataset: Dataset, settled: int | None = None) -> ModelAgent:
        """Return an agent that has learned these examples; the first `settled`, or all, will hardly change any more."""
        # Learning is a fold from the first example on: any state of a common prefix is a valid place to begin.
        agent = self.trial.agent()
        known, states = self._known
        same, settled = _common(known, dataset), len(dataset) if settled is None else settled
        states = {place: arrays for place, arrays in states.items() if place <= same}
        done = max(states, default=0)
        if done:
            agent.load_state(states[done])
        for place, example in enumerate(dataset[done:], start=done + 1):
            # No plan is for an episode that began elsewhere: `watching` reports it, and no agent learns from it.
            if self.trial.space.start[example.states[0]]:
                agent.update(example.trajectory(self.trial.context(example.context)))
            if place % REMEMBERED == 0 or place == settled:
                states[place] = agent.state()
        kept = sorted(place for place in states if place % REMEMBERED == 0 or place in (settled, done))
        self._known = dataset, {place: states[place] for place in kept[-MOST_REMEMBERED:]}
        return agent

    def remember(self, dataset: Dataset, arrays: Arrays) -> None:
        """Begin with what was learned from `dataset` before, by another process for example."""
        self._known = dataset, {len(dataset): arrays}

    def learn(self, task: LearningTask) -> Lesson:
        """Return a trained agent, and why it must not be published, if so."""
        try:
            agent = self.train(task.dataset, task.settled)
            return Lesson(agent, model_digest(agent), refusal(self.trial, agent, task.dataset))
        except Exception as error:  # whatever a model may raise: the one in use stays
            # Only its kind: what an error says may repeat a person's context, and incidents are for all to read.
            return Lesson(self.trial.agent(), "", f"{NOT_LEARNED}{type(error).__name__}")


def _common(first: Dataset, second: Dataset) -> int:
    """Return how many examples are the same from the first on."""
    pairs = zip(first, second, strict=False)
    ends = min(len(first), len(second))
    return next((place for place, (one, other) in enumerate(pairs) if one is not other and one != other), ends)


def model_digest(agent: ModelAgent) -> str:
    """Return a digest of all that was learned: equal for agents that are equal to the bit."""
    whole = hashlib.sha256()
    for name, array in sorted(agent.state().items()):
        whole.update(f"{name} {array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()


def misfit(trial: Trial, agent: ModelAgent, dataset: Dataset) -> str | None:
    """Return how the last episodes contradict the model's class, as a sentence; None if they do not."""
    known = [example for example in dataset[-MOST_JUDGED:] if trial.space.start[example.states[0]]]
    return sentence(agent.misfit(example.trajectory(trial.context(example.context)) for example in known))


def refusal(trial: Trial, agent: ModelAgent, dataset: Dataset) -> str | None:
    """Return why a model must not be published; None if it may.

    Its tables are finite and its plans certified for the contexts that came last, and no oracle has lost more than its
    proven bound allows.
    """
    if not all(np.isfinite(array).all() for array in agent.state().values() if array.dtype.kind == "f"):
        return "the model has numbers that are not finite"
    for name, oracle in (("reward", agent.reward_oracle), ("dynamics", agent.dynamics_oracle)):
        bound = oracle.regret_bound(max(len(dataset), 1), agent.space.horizon)
        lost = oracle.loss - oracle.best_loss()  # above its bound, something is wrong with the data or the code
        if math.isfinite(bound) and lost > bound * (1.0 + 1e-6) + 1e-6:
            return f"the {name} oracle lost {lost:.4g} more than the best of its class, and its bound is {bound:.4g}"
    for text in list(dict.fromkeys(example.context for example in reversed(dataset)))[:TRIED]:
        try:
            decision = agent.decide(trial.context(text))
        except (ArithmeticError, ValueError) as error:
            return f"there is no certified plan for a context: {type(error).__name__}"
        if not math.isfinite(decision.certificate):
            return "a plan has no certificate"
    return None
