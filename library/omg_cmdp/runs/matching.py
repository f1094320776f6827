"""Do a world, an adversary and an agent belong together?"""

from __future__ import annotations

from typing import Any

from omg_cmdp.adversaries.base import Adversary
from omg_cmdp.agents.agent import Agent
from omg_cmdp.environments.gymnasium.worlds import SampledWorld


def check_parts(environment: Any, adversary: Any, agent: Any, world: type) -> None:
    """Refuse what is no `world`, adversary or agent, and an agent made for another space or range of rewards."""
    for name, value, kind in (
        ("environment", environment, world),
        ("adversary", adversary, Adversary),
        ("agent", agent, Agent),
    ):
        if not isinstance(value, kind):
            advice = ", which has no tables; use `omg_cmdp.play`" if isinstance(value, SampledWorld) else ""
            raise ValueError(f"`{name}` must be a {kind.__name__}, got {type(value).__name__}{advice}")
    difference = environment.space.difference(agent.space)
    if difference is not None:
        wanted, got = difference
        raise ValueError(f"`agent` must be made for the environment's {wanted}, got {got}")
    paid, told = environment.paid_range, agent.reward_range
    if told not in (None, paid):
        raise ValueError(f"`agent` must have reward_range {paid}, as the environment pays, got {told}")
