"""`python -m lab.benchmarks.digits [SET ...]`: classification as a contextual bandit, beside Vowpal Wabbit's learners.

The examples of a data set that comes with scikit-learn, one after another in a shuffled order: say which class it is,
and learn only whether that was right (reward 1) or not (0). What counts is the mean reward over the whole stream, from
the first example on. All learners see the same orders, draw actions from the same uniform numbers, and have the same
features: scaled to [0, 1], and a constant, linear for each action. Ours are OMG at H = 1 with its default γ, its
oracle `LinearRewards` with its default ridge, and, beside it, other agents on the same oracle, whose γ = 100·√t was
chosen by looking at the digits; the comparison is with the default. Vowpal Wabbit runs with its defaults, and each of
its methods with the best of its grid in hindsight, on these same orders. It takes gradient steps, O(d) an example; our
oracle is exact least squares, O(A·d²).
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from threadpoolctl import threadpool_limits

from omg_cmdp import OMG, Space, Trajectory, oracles
from omg_cmdp.agents import Agent, Greedy, PosteriorSampling, Power
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray
from omg_lab.rivals import SquareCB

from .report import Report, Row, show
from .vw_peer import METHODS, Peer, Settings, available, grid, written

ROOT = Power(100.0, 0.5)
DEFAULT = "OMG, adaptive γ (the default)"
PEER = "Vowpal Wabbit, --squarecb"
SETS = {"digits": 1, "iris": 4, "wine": 4, "breast_cancer": 1}
"""The data sets, and how often a stream has all of their examples."""


class Learner(Protocol):
    """What plays the stream."""

    def probabilities(self, example: int) -> FloatArray:
        """Return the probabilities of the actions."""

    def learn(self, example: int, action: int, probability: float, reward: float) -> None:
        """Learn from one action."""


class Ours:
    """An agent of this package, on the features (n, d)."""

    def __init__(self, make: Callable[..., Agent], features: FloatArray, actions: int) -> None:
        dimension = features.shape[1]
        space = Space(states=1, actions=actions, horizon=1)
        rewards = oracles.LinearRewards(
            states=1, actions=actions, dimension=dimension, horizon=1, feature_norm=math.sqrt(dimension)
        )
        self._agent = make(space, rewards, oracles.KnownDynamics(np.ones((1, actions, 1)), horizon=1))
        self._features = features

    def probabilities(self, example: int) -> FloatArray:
        """Return the probabilities of the actions."""
        return np.asarray(self._agent.policy(self._features[example])[0, 0])

    def learn(self, example: int, action: int, probability: float, reward: float) -> None:
        """Learn from one action."""
        context = self._features[example]
        self._agent.update(Trajectory(context=context, states=[0, 0], actions=[action], rewards=[reward]))


class Score(NamedTuple):
    """What a learner achieved on one stream."""

    reward: float
    """The mean."""
    seconds: float
    """Per example."""


def play(learner: Learner, order: NDArray[np.int64], labels: NDArray[np.int64], uniforms: FloatArray) -> Score:
    """Let the learner see the examples in `order`, one at a time."""
    total, began = 0.0, time.perf_counter()
    for example, uniform in zip(order.tolist(), uniforms.tolist(), strict=True):
        chances = learner.probabilities(example)
        action = draw_index(chances, uniform)
        reward = float(action == labels[example])
        learner.learn(example, action, float(chances[action]), reward)
        total += reward
    return Score(total / len(order), (time.perf_counter() - began) / len(order))


def digits(*, quick: bool) -> Report:
    """Measure on the handwritten digits."""
    return classification("digits", quick=quick)


def classification(name: str, *, quick: bool) -> Report:
    """Measure mean rewards, and times per example: medians of streams that are played in turns, on one core."""
    shuffles = 2 if quick else 10
    scaled, labels = _examples(name)
    features, texts = np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1), written(scaled)
    actions = int(labels.max()) + 1
    ours: dict[str, Callable[..., Agent]] = {
        DEFAULT: OMG,
        "OMG, γ = 100·√t": functools.partial(OMG, gamma=ROOT),
        "SquareCB, γ = 100·√t": functools.partial(SquareCB, gamma=ROOT),
        "posterior sampling": PosteriorSampling,
        "greedy": Greedy,
    }
    makers: dict[str, Callable[[], Learner]] = {
        each: functools.partial(Ours, make, features, actions) for each, make in ours.items()
    }
    if available():
        makers[PEER] = functools.partial(Peer, texts, actions, Settings())

    def stream(make: Callable[[], Learner], seed: int) -> Score:
        generator = np.random.default_rng(seed)
        order = np.concatenate([generator.permutation(len(labels)) for _ in range(SETS[name])])
        return play(make(), order, labels, generator.random(len(order)))

    with threadpool_limits(1):
        stream(makers[DEFAULT], 0)  # compiles
        scores: dict[str, list[Score]] = {each: [] for each in makers}
        for seed in range(shuffles):
            for each, make in makers.items():
                scores[each].append(stream(make, seed))
        tuning = {
            method: {
                str(settings): [stream(functools.partial(Peer, texts, actions, settings), s) for s in range(shuffles)]
                for settings in grid(method)
            }
            for method in (METHODS if available() else ())
        }
    rows = [Row(f"{each}: reward", _reward(found)) for each, found in scores.items()]
    best = 0.0
    for method, found in tuning.items():
        chosen = max(found, key=lambda settings: _reward(found[settings]))
        best = max(best, _reward(found[chosen]))
        rows.append(Row(f"Vowpal Wabbit, {method}, best of {len(found)} ({chosen}): reward", _reward(found[chosen])))
    rows += [Row(f"{each}: an example", 1e6 * _seconds(found), "µs") for each, found in scores.items()]
    if tuning:
        rows.append(Row("reward, OMG - the best of Vowpal Wabbit's", _reward(scores[DEFAULT]) - best, at_least=0.0))
        ratio = _seconds(scores[DEFAULT]) / _seconds(scores[PEER])
        rows.append(Row("time, OMG / Vowpal Wabbit", ratio, at_most=10.0))
    title = f"{name}, {shuffles} orders" + ("" if available() else "; Vowpal Wabbit is not installed")
    return Report(title=title, rows=rows, details={"scores": scores, "tuning": tuning})


def _examples(name: str) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return features in [0, 1], pixels all scaled alike and others each by itself, and classes."""
    raw, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    axis = None if name == "digits" else 0
    low, high = raw.min(axis=axis), raw.max(axis=axis)
    return (raw - low) / (high - low), labels


def _reward(scores: list[Score]) -> float:
    return statistics.fmean(score.reward for score in scores)


def _seconds(scores: list[Score]) -> float:
    return statistics.median(score.seconds for score in scores)


def main() -> None:
    """Show the tables."""
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.digits", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"any of {', '.join(SETS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="two orders instead of ten")
    asked = parser.parse_args()
    if unknown := set(asked.sets) - set(SETS):
        parser.error(f"no such set: {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    for name in asked.sets or SETS:
        show(classification(name, quick=asked.quick))
    if not available():
        print("Vowpal Wabbit is not installed (pip install vowpalwabbit): there is nothing to compare with.")


if __name__ == "__main__":
    main()
