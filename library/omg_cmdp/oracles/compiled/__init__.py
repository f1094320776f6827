"""Compiled loops of the oracles."""
