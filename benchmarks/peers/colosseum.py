"""Colosseum's RiverSwim, DeepSea and SimpleGrid, and its posterior sampling and Q-learning.

Definitions: MichelangeloConserva/Colosseum at 981b344, colosseum/mdp/{river_swim,deep_sea,simple_grid}/base.py,
mdp/base_finite.py (horizons) and mdp/utils/mdp_creation.py (laziness and random actions); the worlds' parameters are
in benchmark/benchmark_episodic_*/mdp_configs, those of its agents, which it tuned, in
benchmark/cached_hyperparameters/agent_configs.

RiverSwim     n places in a row, episodes of n steps start at the first; left and right, without a current. Going right
              at the last place pays "optimal", left at the first "sub-optimal", else "other".
DeepSea       An n × n sea as bsuite's, without renamed actions: left pays "sub-optimal", right in the last corner
              "optimal", else "other".
SimpleGrid    An n × n grid; up, right, down, left, stay. Who stays in a corner is paid "optimal" in two of them and
              "sub-optimal" in the other two, else "other". Episodes start in the middle.

With probability `p_lazy` nothing moves; else with `p_rand` a uniform action is played, and the chosen one is paid.
Rewards are Beta, or their means. Our `RiverSwim` has a current and other ends, our `DeepSea` contexts and other pay.

The measure is the exact regret of the policies played, for its agents too. (Its own indicator takes the greedy policy
of the agent's estimate, now and then.)
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.kept import Kept
from benchmarks.peers.outside import ask, available
from benchmarks.peers.world import OURS, Draw, Line, PeerWorld, kernel_of, regret
from omg_cmdp import TabularMDP
from omg_cmdp.validation import FloatArray

STEPS = 10_000
"""A fifth of its quick test."""


@dataclasses.dataclass(frozen=True)
class Pay:
    """Beta distributions of the three rewards, (α, β), or fixed numbers if β is None."""

    optimal: tuple[float, float | None]
    sub_optimal: tuple[float, float | None]
    other: tuple[float, float | None]

    @property
    def means(self) -> FloatArray:
        """The means, in this order."""
        return np.array([a if b is None else a / (a + b) for a, b in (self.optimal, self.sub_optimal, self.other)])

    def drawn(self, kinds: NDArray[np.int64]) -> Draw | None:
        """Return what draws the rewards of steps from `kinds` (S, A, S): 0, 1 or 2; None if there is no noise."""
        pairs = [(a, b) for a, b in (self.optimal, self.sub_optimal, self.other) if b is not None]
        if not pairs:
            return None
        first, second = np.array(pairs).T

        def draw(
            states: NDArray[np.int64],
            actions: NDArray[np.int64],
            next_states: NDArray[np.int64],
            generator: np.random.Generator,
        ) -> FloatArray:
            paid = kinds[states, actions, next_states]
            return np.asarray(generator.beta(first[paid], second[paid]))

        return draw


def world(family: str, options: dict[str, Any], start: tuple[int, ...] | None = None) -> PeerWorld:
    """Return a world of the family with Colosseum's own arguments; `start` is the cell that its seed chose."""
    size = options["size"]
    noisy = options.get("make_reward_stochastic", False)
    lazy, random = options.get("p_lazy") or 0.0, options.get("p_rand") or 0.0
    places, moves, kinds, pay, horizon, usual = FAMILIES[family](size, noisy)
    names = ("optimal_distribution", "sub_optimal_distribution", "other_distribution")
    if all(options.get(name) for name in names):
        pay = Pay(*(tuple(options[name][1]) for name in names))
    kernel = kernel_of(moves, lazy=lazy, random=random)
    rewards = (kernel * pay.means[kinds]).sum(axis=2)
    mdp = TabularMDP(transitions=kernel, rewards=rewards, horizon=horizon, start=places.index(start or usual))
    return PeerWorld(mdp, places=places, draw=pay.drawn(kinds))


Parts = tuple[list[tuple[int, ...]], NDArray[np.int64], NDArray[np.int64], Pay, int, tuple[int, ...]]
"""Places, moves (S, A), kinds of rewards (S, A, S), the usual pay, the horizon, and the usual start."""
OPTIMAL, SUB_OPTIMAL, OTHER = range(3)


def river_swim(size: int, noisy: bool) -> Parts:
    """Return the parts of RiverSwim."""
    x = np.arange(size)
    moves = np.stack([np.maximum(x - 1, 0), np.minimum(x + 1, size - 1)], axis=1)
    kinds = np.full((size, 2, size), OTHER)
    kinds[-1, 1], kinds[0, 0] = OPTIMAL, SUB_OPTIMAL
    small = 0.2 / size
    beta = Pay((1.0, 1 / 0.9 - 1), (1.0, 1 / small - 1), (1.0, 10 / small - 1))
    pay = beta if noisy else Pay((1.0, None), (0.005, None), (0.0, None))
    return [(i, i) for i in range(size)], moves, kinds, pay, size, (0, 0)


def deep_sea(size: int, noisy: bool) -> Parts:
    """Return the parts of DeepSea; y counts down from the surface."""
    places = [(x, y) for y in range(size - 1, -1, -1) for x in range(size - y)]
    numbers = {place: number for number, place in enumerate(places)}
    moves = np.zeros((len(places), 2), dtype=np.int64)  # from the ground back to the start
    kinds = np.full((len(places), 2, len(places)), OTHER)
    kinds[:, 0] = SUB_OPTIMAL
    kinds[numbers[size - 1, 0], 1] = OPTIMAL
    for (x, y), here in numbers.items():
        if y:
            moves[here] = numbers[max(x - 1, 0), y - 1], numbers[x + 1, y - 1]
    beta = Pay((size - 1.0, 1.0), (1.0, size / 0.5 - 1), (1.0, 10 * (size / 0.5 - 1)))
    pay = beta if noisy else Pay((1.0, None), (1 / size**2, None), (0.0, None))
    return list(places), moves, kinds, pay, size, (0, size - 1)


def simple_grid(size: int, noisy: bool) -> Parts:
    """Return the parts of SimpleGrid with its rewards "XOR"."""
    places = [(x, y) for x in range(size) for y in range(size)]
    numbers = {place: number for number, place in enumerate(places)}
    last = size - 1
    moves = np.array(
        [
            [
                numbers[min(max(x + right, 0), last), min(max(y + up, 0), last)]
                for right, up in ((0, 1), (1, 0), (0, -1), (-1, 0), (0, 0))
            ]
            for x, y in places
        ]
    )
    kinds = np.full((len(places), 5, len(places)), OTHER)
    for corner, kind in (((0, 0), 1), ((last, last), 1), ((0, last), 0), ((last, 0), 0)):
        kinds[numbers[corner], :, numbers[corner]] = kind
    beta = Pay((1.0, 1 / 0.9 - 1), (1.0, 10 / 0.2 - 1), (1.0, 1 / 0.2 - 1))
    pay = beta if noisy else Pay((1.0, None), (0.0, None), (0.5, None))
    return list(places), moves, kinds, pay, grid_horizon(size), (size // 2, size // 2)


def grid_horizon(size: int) -> int:
    """Return 1 + the longest way from any of the (n - 1)² cells nearest to the middle, where it may start."""
    middle, last = (size - 1) / 2, size - 1
    cells = sorted(((x, y) for x in range(size) for y in range(size)), key=lambda c: _distance(c, middle))
    return 1 + max(max(x, last - x) + max(y, last - y) for x, y in cells[: last**2])


def _distance(cell: tuple[int, int], middle: float) -> float:
    return (cell[0] - middle) ** 2 + (cell[1] - middle) ** 2


FAMILIES = {"river_swim": river_swim, "deep_sea": deep_sea, "simple_grid": simple_grid}
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "RiverSwim, n = 5, quick test": (
        "river_swim",
        {
            "size": 5,
            "p_lazy": 0.1,
            "make_reward_stochastic": True,
            "optimal_distribution": ("beta", (0.01, 0.11)),
            "sub_optimal_distribution": ("beta", (2.4, 24.0)),
            "other_distribution": ("beta", (2.4, 249.0)),
        },
    ),
    "RiverSwim, n = 5, usual rewards": ("river_swim", {"size": 5, "p_lazy": 0.1, "make_reward_stochastic": True}),
    "RiverSwim, n = 40, communicating": ("river_swim", {"size": 40}),
    "DeepSea, n = 10, quick test": ("deep_sea", {"size": 10, "p_rand": 0.05}),
    "DeepSea, n = 10, ergodic": ("deep_sea", {"size": 10, "p_rand": 0.4}),
    "SimpleGrid, n = 10, quick test": ("simple_grid", {"size": 10, "p_lazy": 0.2, "make_reward_stochastic": True}),
}
"""The families' benchmark parameters, by the name of the benchmark; "usual rewards" are those of the class itself."""
MEASURED = tuple(WORLDS)[:4]
"""The others are checked, not played: an episode of OMG takes half a second where S = 100, A = 5, H = 17."""
GUESTS: dict[str, dict[str, float]] = {
    "PSRL": {"prior_mean": 0.41854463543357456, "transition_prior": 0.32345772625210756},
    "Q-learning": {"c_1": 0.9415278732894797, "c_2": 0.013873778519317169, "min_at": 0.07263563483119442},
}
"""Its agents, by their names there, with the constants that it tuned."""


def asked(name: str, **request: Any) -> Any:
    """Return Colosseum's answer about one of `WORLDS`."""
    family, options = WORLDS[name]
    # Random names of the actions are its default, but not that of its benchmarks.
    return ask("colosseum", world=family, options={**options, "randomize_actions": False}, **request)


def regret_of_guest(name: str, agent: str, *, episodes: int, seed: int) -> float:
    """Return the exact regret of one of `GUESTS` in one of `WORLDS`."""
    best = world(*WORLDS[name]).optimal_value(0)
    request = {"agent": agent, "parameters": GUESTS[agent], "episodes": episodes, "seed": seed}
    return float(np.sum(best - np.array(asked(name, what="play", optimal_value=best, **request)["values"])))


def measure(kept: Kept, *, quick: bool) -> list[Line]:
    """Return the regrets of as many whole episodes as fit into 10 000 steps, 3 seeds."""
    steps, seeds = (200, range(1)) if quick else (STEPS, range(10, 13))
    lines = []
    for name in MEASURED:
        here = world(*WORLDS[name])
        episodes = steps // here.space.horizon
        players = {agent: partial(regret, here, agent) for agent in OURS}
        if available("colosseum") or not kept.run:
            players |= {f"Colosseum's {agent}": partial(regret_of_guest, name, agent) for agent in GUESTS}
        for agent, play in players.items():
            lines.append(Line(name, agent, kept.each(partial(play, episodes=episodes), seeds, name, agent, episodes)))
    return lines
