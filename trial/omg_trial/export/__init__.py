"""A trial for the statistician: a tidy table of decisions, tables for the field's own analyses, and the log."""

from omg_trial.export.decisions import decisions, write_decisions
from omg_trial.export.field import write_field_table
from omg_trial.export.logged import live_log
from omg_trial.export.minari import write_minari

__all__ = ["decisions", "live_log", "write_decisions", "write_field_table", "write_minari"]
