"""The command `omg-trial`."""

from omg_trial.cli import operation, results
from omg_trial.cli.commands import DiscreetFormatter, app

__all__ = ["DiscreetFormatter", "app", "operation", "results"]
