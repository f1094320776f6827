"""Runs of the league: one line of a file for each, so that a league can be stopped and goes on where it was."""

from __future__ import annotations

import concurrent.futures
import functools
import gc
import json
import math
import time
import tracemalloc
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from omg_cmdp import simulate
from omg_cmdp.adversaries import IID, Adversary, Sorted, WorstRegret
from omg_cmdp.contexts import Context
from omg_lab.studies.agents import Setting
from omg_lab.studies.catalogue import build_agent

from .entries import ENTRIES
from .families import DEVELOPMENT, TEST, Family

EARLY = 100
"""Episodes that count as the first ones."""
FAMILIES = {**DEVELOPMENT, **TEST}


class Game(NamedTuple):
    """One run: an agent with its constant, a family, a seed, an order of contexts, and a delay."""

    family: str
    agent: str
    constant: float | None
    seed: int
    order: str = "i.i.d."
    delay: int = 0
    share: float = 1.0
    """Of the family's episodes."""


def order_of(name: str, contexts: tuple[Context, ...], episodes: int) -> Adversary:
    """Return the adversary that shows contexts in this order."""
    if name == "sorted":
        return Sorted(contexts, episodes)
    return IID(contexts) if name == "i.i.d." else WorstRegret(contexts, look=min(3, len(contexts)))


@functools.cache
def plays(family: str, agent: str) -> bool:
    """Return whether the agent can play in the worlds of a family."""
    return ENTRIES[agent].plays(FAMILIES[family], _world(family, 0))


def known_parts(family: Family) -> list[str]:
    """Return what is known in a family: agents with oracles have an oracle that knows it, the others are told.

    >>> known_parts(TEST["gambler"]), known_parts(TEST["small gaps"]), known_parts(TEST["loop"])
    (['rewards'], ['dynamics'], [])
    """
    oracles = family.oracles if isinstance(family.oracles, dict) else {}
    return [part for part, kind in oracles.items() if kind == "known"]


def play(game: Game) -> dict[str, Any]:
    """Return what a run came to."""
    family, entry = FAMILIES[game.family], ENTRIES[game.agent]
    world = _world(game.family, game.seed)
    episodes = max(len(world.contexts), round(game.share * family.episodes))  # sorted contexts come once each, or more
    shared = {"oracles": family.oracles, "known": known_parts(family), "return_range": world.return_range}
    setting = Setting(world=world, seed=game.seed, episodes=episodes, shared=shared)
    agent = build_agent(entry.kind, entry.options(math.nan if game.constant is None else game.constant), setting)
    adversary = order_of(game.order, world.contexts, episodes)
    began = time.process_time()
    regret = simulate(world, adversary, agent, episodes, seed=game.seed, delay=game.delay, progress=False).regret
    seconds = time.process_time() - began
    return {**game._asdict(), "regret": float(regret.sum()), "early": float(regret[:EARLY].sum()), "seconds": seconds}


def peak_memory(game: Game) -> float:
    """Return the most MiB that Python and numpy have allocated at once for a run: world, agent and ledger.

    What compiled code allocates is not counted. A short run comes first, so that loading it does not count either.
    """
    play(game._replace(share=0.0))
    gc.collect()
    tracemalloc.start()
    try:
        play(game)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def _world(family: str, seed: int) -> Any:
    """Return the world of a seed: the same for all agents, orders and delays."""
    return FAMILIES[family].make(np.random.default_rng([zlib.crc32(family.encode()), seed]))


def finished(games: Iterable[Game], file: Path, *, workers: int) -> pd.DataFrame:
    """Return the runs of these games; those that `file` does not have are played and added to it.

    Without workers nothing is played, and the runs are those that are there.
    """
    wanted = list(dict.fromkeys(games))
    done = _read(file)
    missing = [game for game in wanted if game not in done] if workers else []
    if missing:
        file.parent.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ProcessPoolExecutor(workers) as pool, file.open("a") as log:
            if file.stat().st_size and not file.read_bytes().endswith(b"\n"):
                log.write("\n")  # after the half line of a league that was killed
            under_way = [pool.submit(play, game) for game in missing]
            for place, run in enumerate(concurrent.futures.as_completed(under_way)):
                row = run.result()
                done[Game(*(row[name] for name in Game._fields))] = row
                log.write(json.dumps(row) + "\n")
                log.flush()
                if place % 100 == 99:
                    print(f"{place + 1} of {len(missing)} runs", flush=True)
    return pd.DataFrame([done[game] for game in wanted if game in done])


def _read(file: Path) -> dict[Game, dict[str, Any]]:
    lines = file.read_text().splitlines() if file.exists() else []
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:  # the last line of a league that was killed
            continue
    return {Game(*(row[name] for name in Game._fields)): row for row in rows}
