"""Whole episodes: plan, sampling, both updates and the exact ledger, beside greedy and rlberry-scool's UCBVI."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from threadpoolctl import threadpool_limits

from omg_cmdp import OMG, Agent, Run, oracles
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Greedy
from omg_lab.worlds import SoftmaxWorld

from .report import Report, Row
from .timing import EPISODES

RLBERRY = Path(__file__).parent.parent / ".venv" / "rlberry" / "bin" / "python"
GAMMA = 100.0
LATER = 10
"""The cost per episode is measured again after this many times the episodes of a round."""


def whole_episodes(*, quick: bool) -> Report:
    """Measure (H, S, A) = (5, 5, 3) with classes of 32 functions, planned for a million episodes, on one core."""
    rounds, episodes = (3, 100) if quick else (9, 300)
    makers: dict[str, Callable[[], Agent]] = {
        "greedy": lambda: Greedy(WORLD.space, *_oracles()),
        "fixed γ": lambda: OMG(WORLD.space, *_oracles(), gamma=GAMMA, episodes=int(EPISODES)),
        "adaptive γ": lambda: OMG(WORLD.space, *_oracles(), episodes=int(EPISODES)),
    }
    with threadpool_limits(1), _ucbvi(episodes) as ucbvi_seconds:
        times: dict[str, list[float]] = {name: [] for name in makers}
        for make in makers.values():
            _seconds(make(), episodes=20)  # compiles
        peer: list[float] = []
        for _ in range(rounds):  # in turns, so that a slow minute of the machine hits every side alike
            for name, make in makers.items():
                times[name].append(_seconds(make(), episodes))
            peer += ucbvi_seconds()
        growth = _growth(makers["adaptive γ"](), episodes)
    middle = {name: statistics.median(values) for name, values in times.items()}
    rows = [Row(f"{name}, an episode", 1e6 * seconds, "µs") for name, seconds in middle.items()]
    rows.append(Row("fixed γ / greedy", middle["fixed γ"] / middle["greedy"], at_most=2))
    rows.append(Row("adaptive γ / greedy", middle["adaptive γ"] / middle["greedy"], at_most=3.5))
    if peer:
        ucbvi = statistics.median(peer)
        rows.append(Row("rlberry-scool UCBVI on a chain of 5 states, an episode", 1e6 * ucbvi, "µs"))
        rows.append(Row("UCBVI / fixed γ", ucbvi / middle["fixed γ"], at_least=2))
        rows.append(Row("UCBVI / adaptive γ", ucbvi / middle["adaptive γ"], at_least=2))
    rows.append(Row(f"adaptive γ, episodes from {LATER * episodes} on / the first {episodes}", growth, at_most=1.2))
    details = {"seconds": times, "ucbvi": peer}
    return Report(title="Whole episodes, (H,S,A) = (5,5,3), classes of 32", rows=rows, details=details)


WORLD = SoftmaxWorld(seed=0)


def _oracles() -> tuple[oracles.FiniteRewards, oracles.FiniteDynamics]:
    horizon = WORLD.space.horizon
    rewards = oracles.FiniteRewards(WORLD.reward_functions, horizon=horizon)
    return rewards, oracles.FiniteDynamics(WORLD.transition_functions, horizon=horizon)


def _seconds(agent: Agent, episodes: int) -> float:
    run = Run(WORLD, IID(WORLD.contexts), agent)
    return _advance(run, episodes)


def _advance(run: Run, episodes: int) -> float:
    began = time.perf_counter()
    run.advance(episodes)
    return (time.perf_counter() - began) / episodes


def _growth(agent: Agent, episodes: int) -> float:
    """Return the time of a late episode over that of an early one."""
    run = Run(WORLD, IID(WORLD.contexts), agent)
    early = min(_advance(run, episodes // 3) for _ in range(3))
    run.advance((LATER - 1) * episodes)
    return min(_advance(run, episodes // 3) for _ in range(3)) / early


@contextlib.contextmanager
def _ucbvi(episodes: int) -> Iterator[Callable[[], list[float]]]:
    """Yield a function that times a round of the peer, in a process that stays warm; no times without the peer."""
    if not RLBERRY.exists():
        yield list
        return
    sizes = [str(number) for number in (WORLD.space.horizon, WORLD.space.states, episodes)]
    command = [str(RLBERRY), str(Path(__file__).parent / "ucbvi_peer.py"), *sizes]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asked, answers = process.stdin, process.stdout
        assert asked is not None
        assert answers is not None
        answers.readline()  # it has compiled

        def seconds() -> list[float]:
            print(file=asked, flush=True)
            return [float(answers.readline())]

        yield seconds
