"""The trial file: what it may say (`sections`), and what it means (`Trial`)."""

from omg_trial.trial_file.example import EXAMPLE
from omg_trial.trial_file.trial import Trial

__all__ = ["EXAMPLE", "Trial"]
