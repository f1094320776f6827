"""Regret minimisation in contextual Markov decision processes, after OMG-CMDP! (Levy, Cohen, Cassel, Mansour, 2023)."""

from omg_cmdp import adversaries as adversaries
from omg_cmdp import agents as agents
from omg_cmdp import checks as checks
from omg_cmdp import delays as delays
from omg_cmdp import environments as environments
from omg_cmdp import logs as logs
from omg_cmdp import oracles as oracles
from omg_cmdp import theory as theory
from omg_cmdp.agents import OMG as OMG
from omg_cmdp.agents import Agent as Agent
from omg_cmdp.environments import ContextualMDP as ContextualMDP
from omg_cmdp.loading import load as load
from omg_cmdp.logs import Log as Log
from omg_cmdp.logs import suggest_features as suggest_features
from omg_cmdp.mdp import Episode as Episode
from omg_cmdp.mdp import Space as Space
from omg_cmdp.mdp import TabularMDP as TabularMDP
from omg_cmdp.mdp import Trajectory as Trajectory
from omg_cmdp.mdp import occupancy_measure as occupancy_measure
from omg_cmdp.mdp import optimal_policy as optimal_policy
from omg_cmdp.mdp import policy_value as policy_value
from omg_cmdp.mdp import squared_hellinger as squared_hellinger
from omg_cmdp.oracles import DynamicsOracle as DynamicsOracle
from omg_cmdp.oracles import RewardOracle as RewardOracle
from omg_cmdp.planning import Problem as Problem
from omg_cmdp.planning import Solution as Solution
from omg_cmdp.planning import Status as Status
from omg_cmdp.planning import certificate as certificate
from omg_cmdp.planning import plan as plan
from omg_cmdp.planning import plan_many as plan_many
from omg_cmdp.runs import Ledger as Ledger
from omg_cmdp.runs import Run as Run
from omg_cmdp.runs import advise as advise
from omg_cmdp.runs import play as play
from omg_cmdp.runs import shortfall as shortfall
from omg_cmdp.runs import simulate as simulate
from omg_cmdp.runs import warm_up as warm_up
from omg_cmdp.theory import RegretCeiling as RegretCeiling

__version__ = "0.1.0"

_ROOMS = ("adversaries", "agents", "checks", "delays", "environments", "logs", "oracles", "theory")
__all__ = sorted([*_ROOMS, *(name for name, each in vars().items() if not name.startswith("_") and callable(each))])
