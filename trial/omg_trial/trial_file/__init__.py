"""The trial file: what it may say (`sections`), and what it means (`Trial`)."""

import importlib.resources

from omg_trial.trial_file.trial import Trial

EXAMPLE = (importlib.resources.files(__name__) / "example.toml").read_text(encoding="utf-8")
"""A small trial file, for examples and for trying things out."""

__all__ = ["EXAMPLE", "Trial"]
