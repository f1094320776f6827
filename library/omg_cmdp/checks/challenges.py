"""Outcomes that are chosen against the frozen predictions of an oracle."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.delays import AnyDelay, as_delay
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY, SQUARE, Loss, loss_of
from omg_cmdp.records import context_rows
from omg_cmdp.theory.lateness import Lateness
from omg_cmdp.validation import FloatArray, instance_of, listed, one_of, positive_integer, whole_number

OUTCOMES = ("against", "against in blocks", "correlated", "drifting", "alternating", "noise", "excluded")
"""How outcomes are chosen: see `_reward` and `_next_state`."""

VISITS = ("one pair", "all pairs")
"""Which pairs an episode visits: always the first one, or random ones."""


@dataclasses.dataclass(kw_only=True)
class Challenge:
    """What an oracle was challenged with, and the total loss of its predictions; see `challenge`."""

    contexts: list[Context] = dataclasses.field(default_factory=list)
    """The context of each episode."""
    outcomes: list[NDArray[Any]] = dataclasses.field(default_factory=list)
    """The rewards or next states of each episode, (H,)."""
    loss: float = 0.0
    """The total loss of the predictions."""
    late: tuple[int, bool] = (0, True)
    """The most other updates between a prediction and its own, and whether it was always this number."""


def challenge(
    oracle: RewardOracle | DynamicsOracle,
    contexts: Sequence[Context],
    *,
    episodes: int,
    horizon: int,
    outcomes: str,
    visits: str,
    generator: np.random.Generator,
    delay: AnyDelay = 0,
) -> Challenge:
    """Let an oracle predict and learn for some episodes, contexts in turn, with outcomes chosen against it.

    Parameters
    ----------
    oracle : RewardOracle or DynamicsOracle
        The oracle, which learns.
    contexts : list
        Contexts that it accepts.
    episodes, horizon : int
        The number of episodes, and of steps in each.
    outcomes : str
        How outcomes are chosen, one of `OUTCOMES`.
    visits : str
        Which pairs an episode visits, one of `VISITS`.
    generator : numpy.random.Generator
        The source of chance.
    delay : int, callable or Delay, default 0
        The oracle learns late, as an agent in `simulate`; what is under way at the end is learned in its order.

    Examples
    --------
    >>> from omg_cmdp.oracles import CountRewards
    >>> oracle = CountRewards(states=2, actions=2, horizon=5)
    >>> rng = np.random.default_rng(0)
    >>> record = challenge(oracle, [0], episodes=99, horizon=5, outcomes="against", visits="one pair", generator=rng)
    >>> record.loss - oracle.best_loss() <= oracle.regret_bound(episodes=99, horizon=5)
    True
    """
    loss, record = loss_of(oracle), Challenge()
    episodes, horizon = positive_integer("episodes", episodes), positive_integer("horizon", horizon)
    contexts = listed("contexts", context_rows("contexts", contexts))
    instance_of("generator", generator, np.random.Generator)
    one_of("outcomes", outcomes, OUTCOMES)
    one_of("visits", visits, VISITS)
    choose: Callable[..., Any] = _reward if loss is SQUARE else _next_state
    lateness, under_way, late = Lateness(), list[tuple[int, int, tuple[Any, ...]]](), as_delay(delay)
    for t, context in zip(range(episodes), itertools.cycle(contexts), strict=False):
        table = oracle.predict(context)
        stepwise = table if len(loss.pairs(table.shape)) == 3 else table[None]
        states, actions = np.zeros((2, horizon), dtype=np.int64)
        if visits == "all pairs":
            states = generator.integers(stepwise.shape[1], size=horizon)
            actions = generator.integers(stepwise.shape[2], size=horizon)
        forecasts = [stepwise[h % len(stepwise), states[h], actions[h]] for h in range(horizon)]
        coin, noise = generator.random(), generator.random(horizon)
        chosen = np.array(
            [choose(outcomes, f, t, t / episodes, coin, u) for f, u in zip(forecasts, noise, strict=True)]
        )
        chosen = accepted(oracle, states, actions, chosen, forecasts)
        record.contexts.append(context)
        record.outcomes.append(chosen)
        record.loss += sum(_loss(loss, f, outcome) for f, outcome in zip(forecasts, chosen, strict=True))
        due = t + whole_number("delay", late.late(t + 1, generator))
        heapq.heappush(under_way, (due, t, (context, states, actions, chosen)))
        arrived = []
        while under_way and (under_way[0][0] <= t or t == episodes - 1):
            _, place, example = heapq.heappop(under_way)
            oracle.update(*example)
            arrived.append(place)
        lateness.add(t, (0.0, 0.0), tuple(arrived))
    record.late = lateness.delay()
    return record


def _reward(strategy: str, forecast: float, t: int, progress: float, coin: float, noise: float) -> float:
    """Return a reward in [0, 1]; `coin` is one draw for the whole episode, `noise` one for each step."""
    return {
        "against": float(forecast < 0.5),
        "against in blocks": float(forecast < 0.5) if t % 20 < 10 else 0.5,
        "correlated": float(coin < 0.3),
        "drifting": progress,
        "alternating": float(t % 2),
        "noise": float(noise < 0.7),
        "excluded": coin,
    }[strategy]


def _next_state(strategy: str, forecast: FloatArray, t: int, progress: float, coin: float, noise: float) -> int:
    """Return one of the next states that the forecast does not exclude; of all, one an episode, if "excluded".

    What the oracle would refuse, because its support excludes it, does not happen.
    """
    if strategy == "excluded":
        return int(coin * len(forecast))
    possible = np.flatnonzero(forecast > 0.0)
    count = len(possible)
    least = int(np.argmin(forecast[possible]))
    place = {
        "against": least,
        "against in blocks": least if t % 20 < 10 else 0,
        "correlated": int(coin**2 * count),
        "drifting": int(progress * count),
        "alternating": t % count,
        "noise": int(noise**2 * count),
    }[strategy]
    return int(possible[place])


def accepted(oracle: Any, states: Any, actions: Any, outcomes: Any, forecasts: Any) -> Any:
    """Return the outcomes; where a support excludes one, the likeliest that the oracle accepts instead."""
    if not _is_refused(oracle, states, actions, outcomes):
        return outcomes
    outcomes = outcomes.copy()
    for h, forecast in enumerate(forecasts):
        for outcome in (outcomes[h], *np.argsort(-forecast, kind="stable")):
            outcomes[h] = outcome
            if not _is_refused(oracle, states[: h + 1], actions[: h + 1], outcomes[: h + 1]):
                break
    return outcomes


def _is_refused(oracle: Any, *steps: Any) -> bool:
    try:
        oracle.check_steps(*steps)
    except ValueError:
        return True
    return False


def _loss(loss: Loss, forecast: Any, outcome: Any) -> float:
    if loss is SQUARE:
        return float((forecast - outcome) ** 2)
    return float(-np.log(forecast[outcome] + SMALLEST_PROBABILITY))
