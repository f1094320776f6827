"""The command `omg-trial`."""

from omg_trial.cli import operation, results
from omg_trial.cli.commands import app

__all__ = ["app", "operation", "results"]
