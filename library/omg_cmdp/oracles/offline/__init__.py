"""Offline oracles: the best fit to all past episodes."""
