"""Five families of Colosseum, and its posterior sampling and Q-learning.

Definitions: MichelangeloConserva/Colosseum at 981b344, base.py of colosseum/mdp/{river_swim, deep_sea, simple_grid,
frozen_lake, minigrid_empty}, mdp/base_finite.py (horizons) and mdp/utils/mdp_creation.py (laziness and random actions);
the worlds' parameters are in benchmark/benchmark_episodic_*/mdp_configs, those of its agents, which it tuned, in
benchmark/cached_hyperparameters/agent_configs.

RiverSwim     n places in a row, episodes of n steps start at the first; left and right, without a current. Going right
              at the last place pays "optimal", left at the first "sub-optimal", else "other".
DeepSea       An n × n sea as bsuite's, without renamed actions: left pays "sub-optimal", right in the last corner
              "optimal", else "other".
SimpleGrid    An n × n grid; up, right, down, left, stay. Who stays in a corner is paid "optimal" in two of them and
              "sub-optimal" in the other two, else "other". Episodes start in the middle.
FrozenLake    An n × n lake from one corner to the opposite one, which pays "optimal", all else "other"; a tile is a
              hole with probability 1 - `p_frozen`, and holes and the goal lead back to the start. Half of the moves go
              where they should, the others to the left or right of that.
MiniGridEmpty An n × n grid in which one looks in a direction: forward, turn right, turn left. A cell of one side pays
              "optimal", all else "other"; episodes start at some cells of the opposite side.

Seeds draw the lakes, and where a MiniGrid starts and pays; so there each seed plays a world of its own. The
number of episodes is that of seed 0 for all, though a lake's horizon may be another.

With probability `p_lazy` nothing moves; else with `p_rand` a uniform action is played, and the chosen one is paid.
Rewards are Beta, or their means. Our `RiverSwim` has a current and other ends, our `DeepSea` contexts and other pay.

The measure is the exact regret of the policies played, for its agents too. (Its own indicator takes the greedy policy
of the agent's estimate, now and then.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp import TabularMDP
from omg_cmdp.validation import FloatArray

from ..peers.kept import Kept
from ..peers.outside import ask, available
from ..peers.world import OURS, Draw, Line, PeerWorld, kernel_of, regret

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


def world(family: str, options: dict[str, Any], start: tuple[int, ...] | None = None, *, seed: int = 0) -> PeerWorld:
    """Return a world of the family with Colosseum's own arguments; `start` is the cell of SimpleGrid that it chose."""
    size = options["size"]
    noisy = options.get("make_reward_stochastic", False)
    lazy, random = options.get("p_lazy") or 0.0, options.get("p_rand") or 0.0
    drawn: dict[str, Any] = {name: options[name] for name in ("p_frozen", "n_starting_states") if name in options}
    if drawn:
        drawn["generator"] = np.random.RandomState(seed)
    places, moves, kinds, pay, horizon, starts = FAMILIES[family](size, noisy, **drawn)
    names = ("optimal_distribution", "sub_optimal_distribution", "other_distribution")
    if all(options.get(name) for name in names):
        pay = Pay(*(tuple(options[name][1]) for name in names))
    kernel = kernel_of(moves, lazy=lazy, random=random)
    if family == "frozen_lake":  # slippery
        kernel = kernel / 2 + (np.roll(kernel, 1, axis=1) + np.roll(kernel, -1, axis=1)) / 4
    rewards = (kernel * pay.means[kinds]).sum(axis=2)
    chances = np.isin(np.arange(len(places)), [places.index(place) for place in ([start] if start else starts)])
    mdp = TabularMDP(transitions=kernel, rewards=rewards, horizon=horizon, start=chances / chances.sum())
    return PeerWorld(mdp, places=places, draw=pay.drawn(kinds))


Places = list[tuple[int, ...]]
Parts = tuple[Places, NDArray[np.int64], NDArray[np.int64], Pay, int, Places]
"""Places, moves (S, A), kinds of rewards (S, A, S), the usual pay, the horizon, and the usual starts."""
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
    return [(i, i) for i in range(size)], moves, kinds, pay, size, [(0, 0)]


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
    return list(places), moves, kinds, pay, size, [(0, size - 1)]


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
    return list(places), moves, kinds, pay, grid_horizon(size), [(size // 2, size // 2)]


def grid_horizon(size: int) -> int:
    """Return 1 + the longest way from any of the (n - 1)² cells nearest to the middle, where it may start."""
    middle, last = (size - 1) / 2, size - 1
    cells = sorted(((x, y) for x in range(size) for y in range(size)), key=lambda c: _distance(c, middle))
    return 1 + max(max(x, last - x) + max(y, last - y) for x, y in cells[: last**2])


def _distance(cell: tuple[int, int], middle: float) -> float:
    return (cell[0] - middle) ** 2 + (cell[1] - middle) ** 2


def frozen_lake(size: int, noisy: bool, *, p_frozen: float, generator: np.random.RandomState) -> Parts:
    """Return the parts of FrozenLake, without its slips; actions are up, right, down, left on its own compass."""
    while True:  # until there is a way; drawn as Gym did up to 0.26
        frozen = generator.choice([True, False], (size, size), p=[p_frozen, 1 - p_frozen])
        frozen[0, 0] = frozen[-1, -1] = True
        goal = (size - 1, size - 1)
        ways = {cell: _walks(cell, frozen) for cell in np.ndindex(size, size) if frozen[cell]}
        ways[goal] = [(0, 0)] * 4
        far = _distances(ways, (0, 0))
        if goal in far:
            break
    places = list(far)
    numbers = {place: number for number, place in enumerate(places)}
    moves = np.array([[numbers[target] for target in ways[place]] for place in places])
    kinds = np.full((len(places), 4, len(places)), OTHER)
    kinds[:, :, numbers[goal]] = OPTIMAL
    beta = Pay((size**2 - 1.0, 1.0), (1.0, 1.0), (1.0, size**2 / 0.1 - 1))
    return places, moves, kinds, beta if noisy else FIXED, 1 + max(far.values()), [(0, 0)]


def _walks(cell: tuple[int, ...], frozen: NDArray[np.bool_]) -> Places:
    """Return where the four moves lead: holes to the start."""
    last = len(frozen) - 1
    targets = [
        (min(max(cell[0] + down, 0), last), min(max(cell[1] + along, 0), last))
        for down, along in ((-1, 0), (0, -1), (1, 0), (0, 1))
    ]
    return [target if frozen[target] else (0, 0) for target in targets]


def minigrid_empty(size: int, noisy: bool, *, n_starting_states: int, generator: np.random.RandomState) -> Parts:
    """Return the parts of MiniGridEmpty: places are (x, y, direction), directions up, right, down, left."""
    last = size - 1
    side = generator.randint(4)
    goal = _side((side + 2) % 4, size)[generator.randint(size)]
    cells = _side(side, size)
    around = [(*cell, direction) for cell in cells for direction in range(4)]
    generator.shuffle(cells)
    starts: Places = [(*cell, generator.randint(4)) for cell in cells[:n_starting_states]]
    ways: dict[tuple[int, ...], Places] = {}
    for x, y, direction in np.ndindex(size, size, 4):
        right, up = ((0, 1), (1, 0), (0, -1), (-1, 0))[direction]
        ahead = (min(max(x + right, 0), last), min(max(y + up, 0), last), direction)
        ways[x, y, direction] = [ahead, (x, y, (direction + 1) % 4), (x, y, (direction - 1) % 4)]
    places = list(ways)
    numbers = {place: number for number, place in enumerate(places)}
    moves = np.array([[numbers[target] for target in ways[place]] for place in places])
    kinds = np.full((len(places), 3, len(places)), OTHER)
    kinds[:, :, [numbers[*goal, direction] for direction in range(4)]] = OPTIMAL
    beta = Pay((size**2 - 1.0, 1.0), (1.0, 1.0), (1.0, size**2 - 1.0))
    horizon = 1 + max(max(_distances(ways, start).values()) for start in around)
    return places, moves, kinds, beta if noisy else FIXED, horizon, starts


def _side(side: int, size: int) -> list[tuple[int, int]]:
    """Return the cells of a side: left, bottom, right, top; in the order in which it draws."""
    last = size - 1
    return [((0, i), (i, 0), (last, last - i), (last - i, last))[side] for i in range(size)]


def _distances(ways: dict[tuple[int, ...], Places], start: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    """Return how many moves away each place is that can be reached."""
    far = {start: 0}
    for place in (queue := [start]):
        for target in ways[place]:
            if target not in far:
                far[target] = far[place] + 1
                queue.append(target)
    return far


FIXED = Pay((1.0, None), (0.0, None), (0.0, None))
FAMILIES: dict[str, Callable[..., Parts]] = {
    "river_swim": river_swim,
    "deep_sea": deep_sea,
    "simple_grid": simple_grid,
    "frozen_lake": frozen_lake,
    "minigrid_empty": minigrid_empty,
}
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
    "FrozenLake, n = 4, quick test": (
        "frozen_lake",
        {"size": 4, "p_lazy": 0.03, "p_rand": 0.001, "p_frozen": 0.9, "make_reward_stochastic": True},
    ),
    "MiniGridEmpty, n = 4, ergodic": (
        "minigrid_empty",
        {"size": 4, "p_lazy": 0.1, "p_rand": 0.4, "n_starting_states": 3},
    ),
}
"""The families' benchmark parameters, by the name of the benchmark; "usual rewards" are those of the class itself."""
GUESTS: dict[str, dict[str, float]] = {
    "Colosseum's PSRL": {"prior_mean": 0.41854463543357456, "transition_prior": 0.32345772625210756},
    "Colosseum's Q-learning": {"c_1": 0.9415278732894797, "c_2": 0.013873778519317169, "min_at": 0.07263563483119442},
}
"""Its agents, with the constants that it tuned."""


def asked(name: str, **request: Any) -> Any:
    """Return Colosseum's answer about one of `WORLDS`."""
    family, options = WORLDS[name]
    # Random names of the actions are its default, but not that of its benchmarks, except for FrozenLake.
    return ask("colosseum", world=family, options={**options, "randomize_actions": False}, **request)


def regret_of_ours(name: str, agent: str, *, episodes: int, seed: int) -> float:
    """Return the exact regret of one of `OURS` in one of `WORLDS`."""
    return regret(world(*WORLDS[name], seed=seed), agent, episodes=episodes, seed=seed)


def regret_of_guest(name: str, agent: str, *, episodes: int, seed: int) -> float:
    """Return the exact regret of one of `GUESTS` in one of `WORLDS`."""
    best = world(*WORLDS[name], seed=seed).optimal_value(0)
    request = {
        "agent": agent.removeprefix("Colosseum's "),
        "parameters": GUESTS[agent],
        "episodes": episodes,
        "seed": seed,
    }
    return float(np.sum(best - np.array(asked(name, what="play", optimal_value=best, **request)["values"])))


def measure(kept: Kept, *, quick: bool) -> list[Line]:
    """Return the regrets of as many whole episodes as fit into 10 000 steps, 3 seeds."""
    steps, seeds = (200, range(1)) if quick else (STEPS, range(10, 13))
    lines = []
    for name in WORLDS:
        episodes = steps // world(*WORLDS[name]).space.horizon
        players = {agent: partial(regret_of_ours, name, agent) for agent in OURS}
        if available("colosseum") or not kept.whole:
            players |= {agent: partial(regret_of_guest, name, agent) for agent in GUESTS}
        for agent, play in players.items():
            found = kept.each(partial(play, episodes=episodes), seeds, name, agent, episodes, agent=agent)
            lines.append(Line(name, agent, found))
    return lines
