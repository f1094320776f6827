"""A peer's MDP as a world with one context, our agents on it, and what a run of theirs costs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from omg_cmdp import OMG, ContextualMDP, TabularMDP, oracles, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Agent, PosteriorSampling
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.validation import BoolArray, FloatArray
from omg_lab.rivals import UCBVI, Blind

Draw = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], np.random.Generator], FloatArray]
"""Rewards of steps from their states, actions and next states."""


class PeerWorld(ContextualMDP):
    """One MDP for every context. Rewards are their means, unless `draw` draws them.

    `support` (S, A, S) is what oracles may know of it, `return_range` what agents may know of what an episode earns;
    `places` are the peer's names of the states.
    """

    contexts = (0,)

    def __init__(
        self,
        mdp: TabularMDP,
        *,
        places: list[tuple[int, ...]] | None = None,
        draw: Draw | None = None,
        support: BoolArray | None = None,
        return_range: tuple[float, float] | None = None,
    ) -> None:
        self.space, self.support, self.return_range, self.places = mdp.space, support, return_range, places or []
        self._mdp, self._draw = mdp, draw

    def mdp(self, context: Context) -> TabularMDP:
        """Return the MDP."""
        return self._mdp

    def draw_reward(self, mean: float, uniform: float) -> float:
        """Return the mean."""
        return mean

    def sample(self, context: Context, policy: FloatArray, generator: np.random.Generator) -> Episode:
        """Play `policy` for one episode."""
        episode = super().sample(context, policy, generator)
        if self._draw is None:
            return episode
        rewards = self._draw(episode.states[:-1], episode.actions, episode.next_states, generator)
        return Episode(
            context=context,
            states=episode.states,
            actions=episode.actions,
            rewards=rewards,
            propensities=episode.propensities,
        )


def _on_counts(world: PeerWorld, seed: int, *, kind: Callable[..., Agent], prior: float | None = None) -> Agent:
    sizes = {name: getattr(world.space, name) for name in ("states", "actions", "horizon")}
    dynamics = oracles.CountDynamics(**sizes, support=world.support, prior=prior)
    options = {"seed": seed} if kind is PosteriorSampling else {}
    return kind(world.space, oracles.CountRewards(**sizes), dynamics, return_range=world.return_range, **options)


def _ucbvi(world: PeerWorld, seed: int, *, scale: float) -> Agent:
    return UCBVI(world.space, Blind(), scale=scale, return_range=world.return_range)


OURS: dict[str, Callable[[PeerWorld, int], Agent]] = {
    "OMG": functools.partial(_on_counts, kind=OMG),
    "OMG, prior ½": functools.partial(_on_counts, kind=OMG, prior=0.5),
    "posterior sampling": functools.partial(_on_counts, kind=PosteriorSampling),
    "posterior sampling, prior ½": functools.partial(_on_counts, kind=PosteriorSampling, prior=0.5),
    "UCBVI, c = 1": functools.partial(_ucbvi, scale=1.0),
    "UCBVI, c = 0.05": functools.partial(_ucbvi, scale=0.05),
}
"""Our agents on counts, by default with a prior that is learned; nothing is tuned but the last one's c."""


def regret(world: PeerWorld, name: str, *, episodes: int, seed: int) -> float:
    """Return the exact regret of one of `OURS` in all episodes."""
    agent = OURS[name](world, seed)
    return float(simulate(world, IID(world.contexts), agent, episodes=episodes, seed=seed).regret.sum())


def kernel_of(moves: NDArray[np.int64], *, lazy: float = 0.0, random: float = 0.0) -> FloatArray:
    """Return (S, A, S) of deterministic `moves` (S, A) that fail.

    With probability `lazy` nothing moves; else with probability `random` an action drawn uniformly is played.
    """
    certain = np.eye(len(moves))[moves]
    played = (1.0 - random) * certain + random * certain.mean(axis=1, keepdims=True)
    return np.asarray((1.0 - lazy) * played + lazy * np.eye(len(moves))[:, None])


@dataclasses.dataclass(frozen=True)
class Line:
    """A row of the table: who played what, and what came of it."""

    world: str
    agent: str
    values: list[float]
    """One for each seed."""

    @property
    def cells(self) -> tuple[str, str, str]:
        """World, agent, and mean ± standard error."""
        mean, count = float(np.mean(self.values)), len(self.values)
        error = f" ± {_rounded(float(np.std(self.values, ddof=1)) / count**0.5, 2)}" if count > 1 else ""
        return self.world, self.agent, f"{_rounded(mean, 4)}{error}"


def _rounded(number: float, digits: int) -> str:
    return f"{float(f'{number:.{digits}g}'):g}"
