"""Compiled loops of the agents."""
