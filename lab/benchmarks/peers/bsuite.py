"""bsuite's deep sea, and its score.

Definitions: google-deepmind/bsuite at effafc0 (0.3.6), bsuite/environments/deep_sea.py, bsuite/experiments/deep_sea
(sweep.py, analysis.py) and deep_sea_stochastic, bsuite/utils/wrappers.py.

A diver starts in the corner of an N × N grid and sinks one row a step, N steps. Of two actions one leads a column to
the right and the other to the left, within the grid; which is which is a coin for every cell (`mapping_seed` 42).
To the right costs 0.01/N, and pays 1 in the last column, which only N - 1 steps to the right reach. In the stochastic
sea a step to the right stays in its column with probability 1/N, and the ends of the last row pay N(0, 1) more.

Score. An episode is bad if it goes left while on the diagonal. A size is solved at the first logged episode (1, 1.2,
1.4, 1.7, 2, 2.5, 3, 4, ..., 9 times a power of ten) with a share of bad episodes below 0.9 (stochastic: 0.8, and not
before episode 100), of 10 000. The score is the share of the sizes 10, 12, ..., 50 that are solved before episode
2^N + 100. So a run can end when it is solved.

Our `DeepSea` has the actions' names by column alone, and contexts. Here states are the N(N + 1)/2 cells that can be
reached, and oracles know that the diver sinks a row a step, as a learner does that keeps a table for every step.
Rewards are rescaled to [0, 1]: (r + 0.01/N) at first, and in the stochastic sea (r + 4)/9, its noise cut off at ±4.
Ours are told what an episode can earn, as in every world of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from omg_cmdp import TabularMDP
from omg_cmdp.validation import FloatArray

from ..peers.kept import Kept
from ..peers.outside import ask, available
from ..peers.world import OURS, Line, PeerWorld

MAPPING_SEED = 42
COST = 0.01
EPISODES = 10_000
RATIOS = (1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
LOGGED = sorted({int(10**k * ratio) for k in range(5) for ratio in RATIOS if (10**k * ratio).is_integer()})
SWEEP = (*range(10, 31, 2), 40)
"""Of bsuite's sizes, 10, 12, ..., 50, those played with one seed."""
MEASURED = (10, 14, 20, 26, 30)
"""Those with several seeds."""
WINDY = (10, 14, 20)
"""The same for the stochastic sea."""
DQN = "bsuite's bootstrapped DQN"
GUESTS = (DQN,)
QUICK = "UCBVI, c = 0.05"
"""Who plays the sweep."""
SLOW = {
    DQN: 14,
    "OMG": 20,
    "OMG, prior ½": 14,
    "posterior sampling": 26,
    "posterior sampling, prior ½": 20,
    "UCBVI, c = 1": 10,
}
"""The largest sea that an agent is given here."""
WINDY_DQN = (10, 1000)
"""Its largest stochastic sea, and its episodes there: solved later, this size would not count."""
SEEDS = range(10, 13)
THRESHOLDS = {False: (0.9, 1), True: (0.8, 100)}
"""By whether it is stochastic: the share of bad episodes below which a sea is solved, and the first such episode."""
CUT = 4.0
"""Noise beyond is cut off, for rewards that lie in an interval."""


class DeepSea(PeerWorld):
    """The sea of one size; `rights` (S,) is the action to the right, `diagonal` (S,) the cells of the best way."""

    def __init__(self, size: int, *, stochastic: bool = False, mapping_seed: int = MAPPING_SEED) -> None:
        cells = [(row, column) for row in range(size) for column in range(row + 1)]
        numbers = {cell: number for number, cell in enumerate(cells)}
        mapping = np.random.RandomState(mapping_seed).binomial(1, 0.5, (size, size))
        self.rights = np.array([mapping[cell] for cell in cells])
        self.diagonal = np.array([row == column for row, column in cells])
        kernel, rewards = np.zeros((len(cells), 2, len(cells))), np.zeros((len(cells), 2))
        support = np.zeros(kernel.shape, dtype=np.bool_)
        slip = 1.0 / size if stochastic else 0.0
        for (row, column), here in numbers.items():
            right = self.rights[here]
            rewards[here, right] = float(column == size - 1) - COST / size
            below = row + 1 if row < size - 1 else 0  # after the last row nothing counts
            support[here, :, [numbers[below, c] for c in range(below + 1)]] = True
            moves = ((right, column + 1, 1.0 - slip), (right, column, slip), (1 - right, max(column - 1, 0), 1.0))
            for action, target, chance in moves:
                kernel[here, action, numbers[below, target] if row < size - 1 else 0] += chance
        ends = np.array([row == size - 1 and column in (0, size - 1) for row, column in cells])
        self.low, self.high = (-CUT, 1.0 + CUT) if stochastic else (-COST / size, 1.0 - COST / size)
        self._means, self._noise = rewards, np.where(ends, float(stochastic), 0.0)
        mdp = TabularMDP(transitions=kernel, rewards=self._scaled(rewards), horizon=size)
        noise = CUT if stochastic else 0.0
        least, most = (earned - size * self.low for earned in (-COST - noise, 1.0 - COST + noise))
        super().__init__(
            mdp,
            places=list(cells),
            support=support,
            draw=self._earned if stochastic else None,
            return_range=(least / (self.high - self.low), most / (self.high - self.low)),
        )

    def _scaled(self, rewards: FloatArray) -> FloatArray:
        return (rewards - self.low) / (self.high - self.low)

    def _earned(
        self,
        states: NDArray[np.int64],
        actions: NDArray[np.int64],
        next_states: NDArray[np.int64],
        generator: np.random.Generator,
    ) -> FloatArray:
        noise = generator.normal(size=len(states)).clip(-CUT, CUT)
        return self._scaled(self._means[states, actions] + self._noise[states] * noise)

    def is_bad(self, states: NDArray[np.int64], actions: NDArray[np.int64]) -> bool:
        """Return whether an episode goes left while on the diagonal."""
        return bool((self.diagonal[states] & (actions != self.rights[states])).any())


def solved(size: int, agent: str, *, seed: int, episodes: int = EPISODES, stochastic: bool = False) -> int | None:
    """Return the first logged episode at which the sea is solved; None if there is none."""
    sea, generator = DeepSea(size, stochastic=stochastic), np.random.default_rng(seed)
    player, bad = OURS[agent](sea, seed), 0
    threshold, first = THRESHOLDS[stochastic]
    for episode in range(1, episodes + 1):
        played = sea.sample(0, player.policy(0), generator)
        player.update(played)
        bad += sea.is_bad(played.states[:-1], played.actions)
        if episode >= first and episode in LOGGED and bad / episode < threshold:
            return episode
    return None


def counts(size: int, episode: int | None) -> bool:
    """Return whether a size that is solved at this episode counts for the score."""
    return episode is not None and episode < 2**size + 100


def measure(kept: Kept, *, quick: bool) -> list[Line]:
    """Return the episodes until solved, by sea and agent; all episodes where it never is."""
    episodes, seeds = (300, range(1)) if quick else (EPISODES, SEEDS)
    lines = []
    for sea, sizes in (("deep sea", (4, 6) if quick else MEASURED), ("stochastic deep sea", (4,) if quick else WINDY)):
        for size in sizes:
            for agent in players(size, guest=available("jax") or not kept.whole):
                windy = agent == DQN and sea != "deep sea"
                if windy and size > WINDY_DQN[0]:
                    continue
                most = min(WINDY_DQN[1], episodes) if windy else episodes
                found = tries(kept, sea, size, agent, seeds, most)
                lines.append(Line(f"{sea}, N = {size}", agent, [float(episode or most) for episode in found]))
    return lines


def sweep(kept: Kept, *, quick: bool) -> list[Line]:
    """Return the episodes until solved of one run for each size, as bsuite has it, and the score of all."""
    episodes, seeds = (300, range(1)) if quick else (EPISODES, SEEDS[:1])
    lines, points = [], []
    for size in (4, 6) if quick else SWEEP:
        found = tries(kept, "deep sea", size, QUICK, seeds, episodes)
        lines.append(Line(f"N = {size}", QUICK, [float(episode or episodes) for episode in found]))
        points += [float(counts(size, episode)) for episode in found]
    return [*lines, Line(f"score of {len(points)} sizes", QUICK, [float(np.mean(points))] if points else [])]


def tries(kept: Kept, sea: str, size: int, agent: str, seeds: Iterable[int], episodes: int) -> list[int | None]:
    """Return when an agent has solved a sea, for each seed."""
    play = partial(solved_by_guest if agent == DQN else partial(solved, agent=agent), size, episodes=episodes)
    return kept.each(partial(play, stochastic=sea != "deep sea"), seeds, sea, size, agent, episodes, agent=agent)


def players(size: int, *, guest: bool) -> list[str]:
    """Return who plays a sea of this size: where a run would take hours, only who is quick."""
    ours = [agent for agent in OURS if agent not in SLOW or size <= SLOW[agent]]
    return [*ours, *([DQN] if guest and size <= SLOW[DQN] else [])]


def solved_by_guest(size: int, *, seed: int, episodes: int = EPISODES, stochastic: bool = False) -> int | None:
    """Return the same for bsuite's own agent."""
    threshold, first = THRESHOLDS[stochastic]
    logged = [episode for episode in LOGGED if episode >= first]
    request = {"size": size, "seed": seed, "episodes": episodes, "logged": logged, "threshold": threshold}
    request |= {"stochastic": stochastic}
    found: int | None = ask("bsuite", what="play", mapping_seed=MAPPING_SEED, **request)["solved"]
    return found
