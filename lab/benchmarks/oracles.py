"""The oracles, an episode at a time: one `predict` and one `update`, beside River, scikit-learn, or a bare contraction.

Contexts of the parametric oracles are new in every episode; a finite class meets a few in turn, whose tables together
do not fit the inner caches. BLAS is held to one thread on all sides.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import threadpoolctl

from omg_cmdp.contexts import Context
from omg_cmdp.oracles import DynamicsOracle, FiniteDynamics, FiniteRewards, LinearRewards, RewardOracle, SoftmaxDynamics
from omg_cmdp.validation import FloatArray

from . import oracle_peers as peers
from .oracle_peers import ACTIONS, DIMENSION, HORIZON, PAIRS, STATES, Data, Learner
from .report import Report, Row
from .timing import clock, interleave, medians

EPISODES = 200
FUNCTIONS, CONTEXTS = 1000, 8
SIZES: dict[str, Any] = {"states": STATES, "actions": ACTIONS, "dimension": DIMENSION, "horizon": HORIZON}

Sides = dict[str, Callable[[], object]]
"""Each runs its next episode when called."""


@dataclasses.dataclass(frozen=True)
class Ratio:
    """How many times longer one side takes than the other, and the target."""

    numerator: str
    denominator: str
    _: dataclasses.KW_ONLY
    at_least: float | None = None
    at_most: float | None = None


def oracles(*, quick: bool) -> Report:
    """Measure every oracle beside its peers; a ratio is the median over rounds in which the sides took turns."""
    rows, details = [], {}
    for compare in (_linear, _softmax, _finite):
        sides, ratios = compare()
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            clocks = [clock(name, side) for name, side in sides.items()]
            times = interleave(5 if quick else 25, *clocks)
        rows += [Row(f"{name}, an episode", 1e6 * time, "µs") for name, time in medians(times).items()]
        rows += [_row(ratio, times) for ratio in ratios]
        details[compare.__name__.strip("_")] = times
    size = f"d = {DIMENSION}, S = {STATES}, A = {ACTIONS}, H = {HORIZON}"
    return Report(title=f"Oracles beside their peers ({size}; N = {FUNCTIONS})", rows=rows, details=details)


def _row(ratio: Ratio, times: dict[str, list[float]]) -> Row:
    pairs = zip(times[ratio.numerator], times[ratio.denominator], strict=True)
    value = statistics.median(one / other for one, other in pairs)
    name = f"{ratio.numerator} / {ratio.denominator}"
    return Row(name, value, at_least=ratio.at_least, at_most=ratio.at_most)


def _linear() -> tuple[Sides, list[Ratio]]:
    learners = {
        "LinearRewards": _rewards(LinearRewards(**SIZES)),
        "LinearRewards, realizable": _rewards(LinearRewards(**SIZES, rate="realizable")),
        "River LinearRegression": peers.river_rewards(),
        "sklearn SGDRegressor": peers.sklearn_rewards(),
        "sklearn SGDRegressor, stacked": peers.stacked_rewards(),
    }
    ratios = [
        Ratio("River LinearRegression", "LinearRewards", at_least=2),
        Ratio("River LinearRegression", "LinearRewards, realizable"),
        Ratio("sklearn SGDRegressor", "LinearRewards", at_least=50),
        Ratio("sklearn SGDRegressor, stacked", "LinearRewards"),
    ]
    return _sides(learners, _parametric_data()), ratios


def _softmax() -> tuple[Sides, list[Ratio]]:
    learners = {
        "SoftmaxDynamics": _dynamics(SoftmaxDynamics(**SIZES)),
        "River SoftmaxRegression": peers.river_dynamics(),
        "sklearn SGDClassifier": peers.sklearn_dynamics(),
        "sklearn SGDClassifier, stacked": peers.stacked_dynamics(),
    }
    ratios = [
        Ratio("River SoftmaxRegression", "SoftmaxDynamics", at_least=15),
        Ratio("sklearn SGDClassifier", "SoftmaxDynamics", at_least=50),
        Ratio("sklearn SGDClassifier, stacked", "SoftmaxDynamics"),
    ]
    return _sides(learners, _parametric_data()), ratios


def _finite() -> tuple[Sides, list[Ratio]]:
    generator = np.random.default_rng(2)
    rewards = generator.random((CONTEXTS, FUNCTIONS, STATES, ACTIONS))
    transitions = generator.dirichlet(np.ones(STATES), rewards.shape)
    # Vovk's substitution mixes exp(-2f²) and exp(-2(1-f)²), not f; "guarded" mixes with two posteriors.
    exponentials = np.concatenate([np.exp(-2.0 * rewards**2), np.exp(-2.0 * (1.0 - rewards) ** 2)], axis=2)
    one, two = generator.dirichlet(np.ones(FUNCTIONS)), generator.dirichlet(np.ones(FUNCTIONS), 2)
    learners = {
        "FiniteRewards": _rewards(FiniteRewards(lambda context: rewards[context], horizon=HORIZON)),
        "w @ exponentials": _contraction(one, exponentials),
        "two w @ exponentials": _contraction(two, exponentials),
        "w @ rewards": _contraction(one, rewards),
        "FiniteDynamics": _dynamics(FiniteDynamics(lambda context: transitions[context], horizon=HORIZON)),
        "w @ transitions": _contraction(one, transitions),
        "two w @ transitions": _contraction(two, transitions),
    }
    ratios = [
        Ratio("FiniteRewards", "w @ exponentials", at_most=2),
        Ratio("FiniteRewards", "two w @ exponentials"),
        Ratio("FiniteRewards", "w @ rewards"),
        Ratio("FiniteDynamics", "w @ transitions", at_most=2),
        Ratio("FiniteDynamics", "two w @ transitions"),
    ]
    return _sides(learners, _finite_data(rewards[:, 0], transitions[:, 0])), ratios


def _rewards(oracle: RewardOracle) -> Learner:
    def learn(data: Data) -> object:
        table = oracle.predict(data.context)
        oracle.update(data.context, data.states, data.actions, data.rewards)
        return table

    return learn


def _dynamics(oracle: DynamicsOracle) -> Learner:
    def learn(data: Data) -> object:
        table = oracle.predict(data.context)
        oracle.update(data.context, data.states, data.actions, data.next_states)
        return table

    return learn


def _contraction(weights: FloatArray, tables: FloatArray) -> Learner:
    flat = tables.reshape(CONTEXTS, FUNCTIONS, -1)
    return lambda data: weights @ flat[data.context]


def _sides(learners: dict[str, Learner], data: list[Data]) -> Sides:
    """Let every learner see all the data once, so that what can be computed beforehand is."""
    for learner, episode in itertools.product(learners.values(), data):
        learner(episode)
    return {name: _next_episode(learner, itertools.cycle(data)) for name, learner in learners.items()}


def _next_episode(learner: Learner, data: Iterable[Data]) -> Callable[[], object]:
    episodes = iter(data)
    return lambda: learner(next(episodes))


def _parametric_data() -> list[Data]:
    """Rewards that are linear, and transitions that are softmax, in contexts on the unit sphere."""
    generator = np.random.default_rng(1)
    contexts, slopes = (_on_sphere(generator, count) for count in (EPISODES, PAIRS))
    weights = generator.standard_normal((PAIRS, STATES, DIMENSION))
    episodes = []
    for context in contexts:
        kernel = np.exp(weights @ context)
        kernel /= kernel.sum(axis=1, keepdims=True)
        episodes.append(_episode(generator, context, 0.5 + 0.5 * slopes @ context, kernel))
    return episodes


def _on_sphere(generator: np.random.Generator, count: int) -> FloatArray:
    points = generator.standard_normal((count, DIMENSION))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def _finite_data(rewards: FloatArray, transitions: FloatArray) -> list[Data]:
    """Episodes of one function of the class, in contexts 0, 1, 2, ... in turn."""
    generator = np.random.default_rng(3)
    turns = itertools.islice(itertools.cycle(range(CONTEXTS)), EPISODES)
    return [_episode(generator, c, rewards[c].reshape(-1), transitions[c].reshape(PAIRS, -1)) for c in turns]


def _episode(generator: np.random.Generator, context: Context, means: FloatArray, kernel: FloatArray) -> Data:
    """Walk from state 0 with uniform actions; rewards are 0 or 1."""
    actions = generator.integers(ACTIONS, size=HORIZON)
    path, pairs = [0], []
    for action in actions:
        pairs.append(path[-1] * ACTIONS + action)
        path.append(int(generator.choice(STATES, p=kernel[pairs[-1]])))
    return Data(
        context=context,
        states=np.array(path[:-1]),
        actions=actions,
        rewards=(generator.random(HORIZON) < means[pairs]).astype(np.float64),
        next_states=np.array(path[1:]),
    )
