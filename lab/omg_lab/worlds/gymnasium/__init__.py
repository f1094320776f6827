"""Worlds made of Gymnasium environments, and environments made of worlds."""
