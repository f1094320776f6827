"""Trials: a service that decides for an app, step by step, and a log from which everything can be computed again."""

__version__ = "0.1.0"
