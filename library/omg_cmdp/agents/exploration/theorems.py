"""The γ of the theorems."""

from __future__ import annotations

from typing import final

from omg_cmdp.agents.exploration.base import ExplorationRule, Situation
from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory.constants import printed_gamma, tight_gamma
from omg_cmdp.validation import positive_integer, probability


@final
class Theory(ExplorationRule):
    """The γ of the theorem (`printed_gamma`), from the oracles' own regret bounds for T episodes.

    Parameters
    ----------
    episodes : int
        T.
    delta : float
        The failure probability δ.

    Examples
    --------
    >>> str(Theory(1000, 0.05))
    'Theory(episodes=1000, delta=0.05)'
    """

    def __init__(self, episodes: int | None, delta: float) -> None:
        self.episodes = positive_integer("episodes", episodes)
        self.delta = probability("delta", delta)

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with the same γ in every episode."""
        # Plans are certified, not exact: the theorem's constant for those is the larger one.
        return situation.plan(printed_gamma(situation.assumptions(self.episodes, self.delta), exact=False))


@final
class Anytime(ExplorationRule):
    """γ_t = √(n·t/C) with the tight C of docs/theory.md (`tight_gamma`), from the oracles' bounds for t episodes.

    T need not be known, at the price of 3·√(nCT) in the place of 2·√(nCT).

    Parameters
    ----------
    delta : float
        The failure probability δ.

    Examples
    --------
    >>> str(Anytime(0.05))
    'Anytime(delta=0.05)'
    """

    def __init__(self, delta: float) -> None:
        self.delta = probability("delta", delta)

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with γ_t."""
        return situation.plan(tight_gamma(situation.assumptions(situation.episode, self.delta)))
