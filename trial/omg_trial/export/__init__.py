"""A trial for the statistician: one tidy table of decisions, and the log for off-policy values."""

from omg_trial.export.decisions import decisions, write_decisions
from omg_trial.export.logged import live_log

__all__ = ["decisions", "live_log", "write_decisions"]
