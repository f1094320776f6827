"""A client for apps: retries that cannot decide twice, and a queue for when there is no network."""

from omg_trial.client.client import Client
from omg_trial.client.errors import OlderLogError, RefusedError, UnreachableError

__all__ = ["Client", "OlderLogError", "RefusedError", "UnreachableError"]
