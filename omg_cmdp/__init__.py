"""Regret minimisation in contextual Markov decision processes, after OMG-CMDP! (Levy, Cohen, Cassel, Mansour, 2023)."""

from omg_cmdp import checks, oracles
from omg_cmdp.mdp import Space, TabularMDP, occupancy_measure, optimal_policy, policy_value, squared_hellinger
from omg_cmdp.oracles import DynamicsOracle, RewardOracle
from omg_cmdp.planning import Problem, Solution, Status, certificate, plan, plan_many

__version__ = "0.1.0"

__all__ = [
    "DynamicsOracle",
    "Problem",
    "RewardOracle",
    "Solution",
    "Space",
    "Status",
    "TabularMDP",
    "certificate",
    "checks",
    "occupancy_measure",
    "optimal_policy",
    "oracles",
    "plan",
    "plan_many",
    "policy_value",
    "squared_hellinger",
]
