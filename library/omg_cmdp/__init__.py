"""Regret minimisation in contextual Markov decision processes, after OMG-CMDP! (Levy, Cohen, Cassel, Mansour, 2023)."""

from omg_cmdp import adversaries, agents, checks, delays, environments, logs, oracles, theory
from omg_cmdp.agents import OMG, Agent
from omg_cmdp.environments import ContextualMDP
from omg_cmdp.loading import load
from omg_cmdp.logs import Log, suggest_features
from omg_cmdp.mdp import (
    Episode,
    Space,
    TabularMDP,
    Trajectory,
    occupancy_measure,
    optimal_policy,
    policy_value,
    squared_hellinger,
)
from omg_cmdp.oracles import DynamicsOracle, RewardOracle
from omg_cmdp.planning import Problem, Solution, Status, certificate, plan, plan_many
from omg_cmdp.runs import Ledger, Run, advise, play, shortfall, simulate, warm_up
from omg_cmdp.theory import RegretCeiling

__version__ = "0.1.0"

__all__ = [
    "OMG",
    "Agent",
    "ContextualMDP",
    "DynamicsOracle",
    "Episode",
    "Ledger",
    "Log",
    "Problem",
    "RegretCeiling",
    "RewardOracle",
    "Run",
    "Solution",
    "Space",
    "Status",
    "TabularMDP",
    "Trajectory",
    "adversaries",
    "advise",
    "agents",
    "certificate",
    "checks",
    "delays",
    "environments",
    "load",
    "logs",
    "occupancy_measure",
    "optimal_policy",
    "oracles",
    "plan",
    "plan_many",
    "play",
    "policy_value",
    "shortfall",
    "simulate",
    "squared_hellinger",
    "suggest_features",
    "theory",
    "warm_up",
]
