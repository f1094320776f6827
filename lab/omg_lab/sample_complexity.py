"""Sample complexity: how many episodes an agent needs until what it plays, or would put out, is within ε."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from omg_cmdp.runs.ledger import Ledger
from omg_cmdp.validation import FloatArray, instance_of, positive_integer, positive_number


class SampleComplexity(NamedTuple):
    """The episodes that a run took to be within ε; inf if it ended before."""

    mistakes: int
    """Number of episodes that lost more than ε, which agents such as Rmax bound."""
    played: float
    """Number of episodes after which the policies played stay within ε, on average over a window."""
    output: float
    """The same for `best_policy`, which the agent would put out if it had to stop; nan if it has no model."""


def sample_complexity(ledger: Ledger, epsilon: float, *, window: int = 50) -> SampleComplexity:
    """Return how many episodes it took to be within `epsilon`.

    One context may be harder than another, so `played` and `output` average: they are the least n such that every
    `window` consecutive episodes after the first n lose at most ε on average. A number near the end of the run says
    little, because the episodes after it were not observed for long.

    Parameters
    ----------
    ledger : Ledger
        The ledger of a run, as `simulate` returns it.
    epsilon : float
        The regret of an episode that is small enough.
    window : int
        The number of episodes over which regret is averaged, 50 by default; with 1, every single episode counts.

    Examples
    --------
    >>> import omg_cmdp as omg, omg_lab
    >>> world = omg_lab.worlds.SoftmaxWorld()
    >>> rewards = omg.oracles.FiniteRewards(world.reward_functions, horizon=5)
    >>> dynamics = omg.oracles.FiniteDynamics(world.transition_functions, horizon=5)
    >>> agent = omg.agents.Greedy(world.space, rewards, dynamics)
    >>> ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=60)
    >>> sample_complexity(ledger, epsilon=5.0)  # no episode can lose more than its 5 steps
    SampleComplexity(mistakes=0, played=0.0, output=0.0)
    """
    instance_of("ledger", ledger, Ledger)
    wanted, width = positive_number("epsilon", epsilon), positive_integer("window", window)
    if len(ledger) < width:
        raise ValueError(f"`window` must be at most the {len(ledger)} episodes of the ledger, got {width}")
    lost, unknown = ledger.regret, ledger.column("best_policy_regret")
    return SampleComplexity(int((lost > wanted).sum()), _settled(lost, wanted, width), _settled(unknown, wanted, width))


def _settled(losses: FloatArray, epsilon: float, width: int) -> float:
    """Return after how many episodes all means of `width` losses are at most `epsilon`."""
    if np.isnan(losses).any():
        return math.nan
    means = np.convolve(losses, np.full(width, 1.0 / width), mode="valid")
    above = np.flatnonzero(means > epsilon)
    if not len(above):
        return 0.0
    return float(above[-1] + 1) if above[-1] + 1 < len(means) else math.inf
