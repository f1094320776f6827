"""Exploration by information: what people reach for to explore, on counts or on the package's oracles."""
