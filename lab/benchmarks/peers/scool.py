"""rlberry-scool's chain and grid world, and its UCBVI.

Definitions: rlberry-py/rlberry-scool at eae8e75 (0.7.3), rlberry_scool/envs/finite/chain.py and gridworld.py.

Chain         L states in a row, 2 actions: left and right, at the ends stay. An action has the other one's effect
              with probability `fail_prob`. Rewards 0.05 in the first state, where episodes start, and 1 in the last.
              Our `Corridor` sends back to the start and pays once; our `RiverSwim` has a current.
Grid world    Cells without walls, 4 actions: left, right, down, up. A move into a wall stays, surely. Another one
              succeeds with `success_probability`, and else leads to one of the other open neighbours. Reward 1 in the
              last cell, in every step there. None of our worlds is a grid.

Rewards have no noise. The measure is the exact regret of the policies played. Its UCBVI is as shipped (`gamma` = 1,
`bonus_scale_factor` 1): counts are shared by all steps of an episode, but a bonus falls only at the step where its pair
was visited.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from omg_cmdp import TabularMDP

from ..peers.kept import Kept
from ..peers.outside import ask, available
from ..peers.world import OURS, Line, PeerWorld, kernel_of, regret

WORLDS: dict[str, tuple[str, dict[str, Any], int]] = {
    "chain, L = 5, H = 10": ("chain", {"L": 5, "fail_prob": 0.1}, 10),
    "chain, L = 10, H = 20": ("chain", {"L": 10, "fail_prob": 0.1}, 20),
    "grid world, 5 × 5, H = 20": ("grid_world", {}, 20),
}
"""The peer's name, its arguments, and the horizon, which is the agents' there."""
GUESTS: dict[str, dict[str, Any]] = {
    "scool's UCBVI": {},
    "scool's UCBVI, bonus × 0.1": {"bonus_scale_factor": 0.1},
}
DIRECTIONS = ((0, -1), (0, 1), (1, 0), (-1, 0))
"""Left, right, down, up, as rows and columns."""


def chain(*, L: int = 5, fail_prob: float = 0.1, horizon: int) -> PeerWorld:  # noqa: N803, the peer's name
    """Return the chain."""
    places = np.arange(L)
    moves = np.stack([np.maximum(places - 1, 0), np.minimum(places + 1, L - 1)], axis=1)
    # To fail is to play the other action: half of the failures of a uniform draw.
    rewards = np.zeros((L, 2))
    rewards[0], rewards[-1] = 0.05, 1.0
    return PeerWorld(TabularMDP(transitions=kernel_of(moves, random=2.0 * fail_prob), rewards=rewards, horizon=horizon))


def grid_world(
    *,
    nrows: int = 5,
    ncols: int = 5,
    success_probability: float = 0.9,
    walls: tuple[tuple[int, int], ...] = ((1, 1), (2, 2)),
    horizon: int,
) -> PeerWorld:
    """Return the grid world."""
    cells = [(row, column) for row in range(nrows) for column in range(ncols) if (row, column) not in walls]
    numbers = {cell: number for number, cell in enumerate(cells)}
    kernel, rewards = np.zeros((len(cells), 4, len(cells))), np.zeros((len(cells), 4))
    for (row, column), here in numbers.items():
        neighbours = [numbers.get((row + down, column + right)) for down, right in DIRECTIONS]
        around = [cell for cell in neighbours if cell is not None]
        for action, target in enumerate(neighbours):
            if target is None:
                kernel[here, action, here] = 1.0
                continue
            for cell in around:
                kernel[here, action, cell] = (1.0 - success_probability) / max(len(around) - 1, 1)
            kernel[here, action, target] = success_probability if len(around) > 1 else 1.0
    rewards[numbers[nrows - 1, ncols - 1]] = 1.0
    return PeerWorld(TabularMDP(transitions=kernel, rewards=rewards, horizon=horizon), places=list(cells))


MAKERS: dict[str, Callable[..., PeerWorld]] = {"chain": chain, "grid_world": grid_world}


def world(name: str) -> PeerWorld:
    """Return one of `WORLDS`."""
    kind, options, horizon = WORLDS[name]
    return MAKERS[kind](**options, horizon=horizon)


def regret_of_guest(name: str, agent: str, *, episodes: int, seed: int) -> float:
    """Return the exact regret of one of `GUESTS` in one of `WORLDS`."""
    kind, options, horizon = WORLDS[name]
    request = {"world": kind, "options": options, "horizon": horizon, "episodes": episodes, "seed": seed}
    values = ask("scool", what="play", agent_options=GUESTS[agent], **request)["values"]
    return float(np.sum(world(name).optimal_value(0) - np.array(values)))


def measure(kept: Kept, *, quick: bool) -> list[Line]:
    """Return the regrets of 500 episodes, 10 seeds."""
    episodes, seeds = (20, range(1)) if quick else (500, range(10, 20))
    lines = []
    for name in WORLDS:
        players = {agent: partial(regret, world(name), agent) for agent in OURS}
        if available("scool") or not kept.whole:
            players |= {agent: partial(regret_of_guest, name, agent) for agent in GUESTS}
        for agent, play in players.items():
            found = kept.each(partial(play, episodes=episodes), seeds, name, agent, episodes, agent=agent)
            lines.append(Line(name, agent, found))
    return lines
