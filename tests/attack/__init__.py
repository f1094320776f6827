"""Attacks on what the package promises; `python -m tests.attack` runs them all (`make attack`)."""
