"""Contract checks to run on classes of your own."""

from omg_cmdp.checks.agents import AGENT_CHECKS, check_agent
from omg_cmdp.checks.challenges import OUTCOMES, VISITS, Challenge, challenge
from omg_cmdp.checks.oracles import ORACLE_CHECKS, check_oracle

__all__ = [
    "AGENT_CHECKS",
    "ORACLE_CHECKS",
    "OUTCOMES",
    "VISITS",
    "Challenge",
    "challenge",
    "check_agent",
    "check_oracle",
]
