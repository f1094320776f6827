"""The rules by name."""

from __future__ import annotations

from collections.abc import Callable

from omg_cmdp.agents.exploration.accounted import Accounted
from omg_cmdp.agents.exploration.base import ExplorationRule
from omg_cmdp.agents.exploration.gain import GainWeighted
from omg_cmdp.agents.exploration.schedules import Schedule, Tuned
from omg_cmdp.agents.exploration.theorems import Anytime, Theory
from omg_cmdp.agents.exploration.uncertainty import UncertaintyWeighted
from omg_cmdp.validation import probability, seed_number

RULES: dict[str, Callable[[int | None, float, int], ExplorationRule]] = {
    "adaptive": lambda episodes, delta, seed: Accounted(GainWeighted(seed=seed), delta=delta),
    "uncertainty": lambda episodes, delta, seed: UncertaintyWeighted(),
    "theory": lambda episodes, delta, seed: Theory(episodes, delta),
    "anytime": lambda episodes, delta, seed: Anytime(delta),
}
"""Each made of `episodes`, `delta` and `seed`."""


def exploration_rule(
    gamma: str | Tuned | ExplorationRule, episodes: int | None, delta: float, seed: int
) -> ExplorationRule:
    """Return the rule that the argument `gamma` of OMG stands for.

    Parameters
    ----------
    gamma : str, float, callable or ExplorationRule
        A name in `RULES`, a number, a function of the episode, or a rule.
    episodes : int or None
        T, for "theory".
    delta : float
        The failure probability of what is proven.
    seed : int
        The seed of "adaptive".

    Examples
    --------
    >>> str(exploration_rule("anytime", None, 0.1, 0)), str(exploration_rule(5.0, None, 0.1, 0))
    ('Anytime(delta=0.1)', '5.0')
    """
    delta, seed = probability("delta", delta), seed_number(seed)
    if isinstance(gamma, ExplorationRule):
        return gamma
    if not isinstance(gamma, str):
        return Schedule(gamma)
    if gamma not in RULES:
        names = ", ".join(f'"{name}"' for name in RULES)
        rule = f"must be one of {names}, a number, a function of t, or an ExplorationRule"
        raise ValueError(f"`gamma` {rule}, got {gamma!r}")
    return RULES[gamma](episodes, delta, seed)
