"""The regret ceiling of a run: the classes it is made with, and the sentence that it adds to a ledger."""

from __future__ import annotations

from typing import Any

import numpy as np

from omg_cmdp.agents.agent import Agent
from omg_cmdp.agents.building import class_oracles
from omg_cmdp.theory.ceiling.ceiling import RegretCeiling
from omg_cmdp.validation import FloatArray, instance_of


def ceiling_for(environment: Any, agent: Agent, asked: bool | RegretCeiling) -> RegretCeiling | None:
    """Return the ceiling that was asked for: of the agent's oracles, or of the world's class if it has none."""
    if isinstance(asked, RegretCeiling) or not asked:
        return asked or None
    instance_of("ceiling", asked, bool)
    own = agent.reward_oracle is not None and agent.dynamics_oracle is not None
    return RegretCeiling(agent, **({} if own else class_oracles(environment)))


def ceiling_line(most: FloatArray, settled: FloatArray, delta: float) -> str:
    """Return what the columns of a ledger say, as a sentence; nothing if they are empty."""
    if np.isnan(most).any():
        return ""
    total = most.sum()
    if total == np.inf:
        return " What was lost at most cannot be bounded."
    last = -(-len(most) // 10)
    return (
        f" Without the truth it is known, with {1.0 - delta:.0%} confidence, that at most {total:.3g} was lost, "
        f"{most[-last:].sum():.2g} of it in the last {last}, where {settled[-last:].mean():.0%} of the decisions are "
        "settled."
    )
