"""Contract checks to run on classes of your own."""

from omg_cmdp.checks.agents import AGENT_CHECKS as AGENT_CHECKS
from omg_cmdp.checks.agents import check_agent as check_agent
from omg_cmdp.checks.challenges import OUTCOMES as OUTCOMES
from omg_cmdp.checks.challenges import VISITS as VISITS
from omg_cmdp.checks.challenges import Challenge as Challenge
from omg_cmdp.checks.challenges import challenge as challenge
from omg_cmdp.checks.oracles import ORACLE_CHECKS as ORACLE_CHECKS
from omg_cmdp.checks.oracles import check_oracle as check_oracle

__all__ = sorted(name for name, each in vars().items() if name[0] != "_" and (callable(each) or name.isupper()))
