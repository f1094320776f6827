"""Continuous observations as cells: encoders, what they are fitted to, and how many cells there should be."""
