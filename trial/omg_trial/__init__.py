"""Live decisions: a service that answers an app step by step, and a log from which everything can be told again."""

__version__ = "0.1.0"
