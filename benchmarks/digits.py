"""`python -m benchmarks.digits`: handwritten digits as a contextual bandit, beside Vowpal Wabbit's SquareCB.

The 1 797 digits that come with scikit-learn, 8 × 8 pixels, one after another in a shuffled order: say which of ten it
is, and learn only whether that was right (reward 1) or not (0). What counts is the mean reward over the whole stream,
from the first digit on. All learners see the same orders, draw actions from the same uniform numbers, and have the same
features: 64 pixels in [0, 1] and a constant, linear for each action. Ours are OMG at H = 1 with its default γ, its
oracle `LinearRewards` with its default ridge, and, beside it, other agents on the same oracle, whose γ = 100·√t was
chosen by looking at these data; the comparison is with the default. Vowpal Wabbit runs with its defaults, and with the
best of 60 settings in hindsight, on these same orders. It takes gradient steps, O(d) an example; our oracle is exact
least squares, O(A·d²).
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
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from benchmarks.report import Report, Row, show
from benchmarks.vw_peer import Settings, SquareCBPeer, available, grid, written
from omg_cmdp import OMG, Space, Trajectory, oracles
from omg_cmdp.agents import Agent, Greedy, PosteriorSampling, Power, SquareCB
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray

ACTIONS = 10
ROOT = Power(100.0, 0.5)
DEFAULT = "OMG, adaptive γ (the default)"
PEER, TUNED = "Vowpal Wabbit, --squarecb", "Vowpal Wabbit, best of 60"


class Learner(Protocol):
    """What plays the stream."""

    def probabilities(self, example: int) -> FloatArray:
        """Return the probabilities of the ten actions."""

    def learn(self, example: int, action: int, probability: float, reward: float) -> None:
        """Learn from one action."""


class Ours:
    """An agent of this package, on the features (n, d)."""

    def __init__(self, make: Callable[..., Agent], features: FloatArray) -> None:
        dimension = features.shape[1]
        space = Space(states=1, actions=ACTIONS, horizon=1)
        rewards = oracles.LinearRewards(
            states=1, actions=ACTIONS, dimension=dimension, horizon=1, feature_norm=math.sqrt(dimension)
        )
        self._agent = make(space, rewards, oracles.KnownDynamics(np.ones((1, ACTIONS, 1)), horizon=1))
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
    """Measure mean rewards, and times per example: medians of streams that are played in turns, on one core."""
    shuffles = 2 if quick else 10
    images, labels = load_digits(return_X_y=True)
    pixels = images / 16.0
    features, texts = np.concatenate([pixels, np.ones((len(pixels), 1))], axis=1), written(pixels)
    makers: dict[str, Callable[[], Learner]] = {
        DEFAULT: lambda: Ours(OMG, features),
        "OMG, γ = 100·√t": lambda: Ours(functools.partial(OMG, gamma=ROOT), features),
        "SquareCB, γ = 100·√t": lambda: Ours(functools.partial(SquareCB, gamma=ROOT), features),
        "posterior sampling": lambda: Ours(PosteriorSampling, features),
        "greedy": lambda: Ours(Greedy, features),
    }
    peers = {}
    if available():
        makers[PEER] = functools.partial(SquareCBPeer, texts, ACTIONS, Settings())
        peers = {str(settings): settings for settings in grid()}

    def stream(make: Callable[[], Learner], seed: int) -> Score:
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(labels))
        return play(make(), order, labels, generator.random(len(order)))

    with threadpool_limits(1):
        stream(makers[DEFAULT], 0)  # compiles
        scores: dict[str, list[Score]] = {name: [] for name in makers}
        for seed in range(shuffles):
            for name, make in makers.items():
                scores[name].append(stream(make, seed))
        tuning = {
            name: [stream(functools.partial(SquareCBPeer, texts, ACTIONS, settings), seed) for seed in range(shuffles)]
            for name, settings in peers.items()
        }
    best = max(tuning, key=lambda name: _reward(tuning[name]), default=None)
    if best is not None:
        scores[f"{TUNED}: {best}"] = tuning[best]
    rows = [Row(f"{name}: reward", _reward(found)) for name, found in scores.items()]
    rows += [Row(f"{name}: an example", 1e6 * _seconds(found), "µs") for name, found in scores.items()]
    if best is not None:
        ours, theirs = scores[DEFAULT], scores[PEER]
        rows.append(Row(f"reward, OMG - {TUNED}", _reward(ours) - _reward(tuning[best]), at_least=0.0))
        rows.append(Row("time, OMG / Vowpal Wabbit", _seconds(ours) / _seconds(theirs), at_most=10.0))
    return Report(title=f"Digits, {shuffles} orders", rows=rows, details={"scores": scores, "tuning": tuning})


def _reward(scores: list[Score]) -> float:
    return statistics.fmean(score.reward for score in scores)


def _seconds(scores: list[Score]) -> float:
    return statistics.median(score.seconds for score in scores)


def main() -> None:
    """Show the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digits", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two orders instead of ten")
    report = digits(quick=parser.parse_args().quick)
    show(report)
    if not available():
        print("Vowpal Wabbit is not installed (pip install vowpalwabbit): there is nothing to compare with.")


if __name__ == "__main__":
    main()
