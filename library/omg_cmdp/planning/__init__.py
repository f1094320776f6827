"""The certified planner. Importing this package compiles nothing; the first plan does."""

from omg_cmdp.mdp.budgets import least_excess
from omg_cmdp.planning.certificate import certificate
from omg_cmdp.planning.plan import plan, plan_many
from omg_cmdp.planning.problem import Problem
from omg_cmdp.planning.solution import Solution, Status

__all__ = ["Problem", "Solution", "Status", "certificate", "least_excess", "plan", "plan_many"]
