"""Agents that keep one fit for a whole doubling epoch: FALCON's idea, for more than one step.

FALCON (Simchi-Levi and Xu, *Mathematics of Operations Research* 2022) is a contextual bandit with an *offline* oracle:
in epoch m, episodes 2^(m-1) < t <= 2^m, its model is the least-squares fit of all data up to 2^(m-1), and it explores
by inverse gaps with γ_m ∝ √2^(m-1). Here are two compositions with other agents, for which nothing is proven:

    epoch_omg       OMG with fits that change at doubling epochs, and γ_m = γ₀·√2^(m-1)
    epoch_pc_igw    PC-IGW with the same fits and γ_m

For H = 1 OMG's weights are 1/(λ + γ·gap), λ their normaliser; FALCON's are 1/(A + γ·gap), with the same fits and γ_m.

Source: ours, after FALCON, which the paper of this project names; the project's theory notes (§6) have the idea.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

from omg_cmdp.agents.base import Ranges
from omg_cmdp.agents.omg import OMG
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.epochs import EpochDynamics, EpochRewards, epoch_starts
from omg_cmdp.validation import positive_number
from omg_lab.rivals.pc_igw import PCIGW


@final
@dataclasses.dataclass(frozen=True)
class EpochGamma:
    """γ_m = scale·√τ, τ the number of episodes before the epoch, and 1 in the first: a function of the episode.

    Parameters
    ----------
    scale : float
        γ₀, positive.

    >>> gamma = EpochGamma(10.0)
    >>> [gamma(episode) for episode in (1, 2, 5, 8, 9)] == [10.0, 10.0, 20.0, 20.0, 10.0 * 8**0.5]
    True
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_number("scale", self.scale))

    def __call__(self, episode: int) -> float:
        """Return γ in `episode`, counted from 1."""
        return self.scale * math.sqrt(max(1, epoch_starts(episode - 1)[-1]))


def epoch_omg(
    space: Space,
    reward_oracle: RewardOracle,
    dynamics_oracle: DynamicsOracle,
    *,
    scale: float = 100.0,
    episodes: int | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    return_range: tuple[float, float] | None = None,
) -> OMG:
    """Return OMG by epochs.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Offline oracles are meant; any that can be saved will do.
    scale : float
        γ₀, 100 by default.
    episodes : int, optional
        The number T of episodes, for the certificates of `OMG`.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_cmdp.agents.building import build_for
    >>> from omg_lab.worlds import Decoy
    >>> build_for(epoch_omg, Decoy()).policy(0).shape
    (4, 3, 3)
    """
    rewards, dynamics = EpochRewards(reward_oracle), EpochDynamics(dynamics_oracle)
    ranges: Ranges = {"reward_range": reward_range, "return_range": return_range}
    return OMG(space, rewards, dynamics, EpochGamma(scale), episodes=episodes, **ranges)


def epoch_pc_igw(
    space: Space,
    reward_oracle: RewardOracle,
    dynamics_oracle: DynamicsOracle,
    *,
    scale: float = 100.0,
    seed: int = 0,
    reward_range: tuple[float, float] = (0.0, 1.0),
    return_range: tuple[float, float] | None = None,
) -> PCIGW:
    """Return PC-IGW by epochs.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Offline oracles are meant; any that can be saved will do.
    scale : float
        γ₀, 100 by default.
    seed : int
        Seeds the draws, a function of it and the number of episodes seen, so that asking twice changes nothing.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_cmdp.agents.building import build_for
    >>> from omg_lab.worlds import Decoy
    >>> build_for(epoch_pc_igw, Decoy()).policy(0).shape
    (4, 3, 3)
    """
    rewards, dynamics = EpochRewards(reward_oracle), EpochDynamics(dynamics_oracle)
    ranges: Ranges = {"reward_range": reward_range, "return_range": return_range}
    return PCIGW(space, rewards, dynamics, EpochGamma(scale), seed=seed, **ranges)
