"""Rewards linear in features of the context: the oracle, its forecasters, and least squares in a ball."""
