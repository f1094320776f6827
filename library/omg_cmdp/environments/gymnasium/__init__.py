"""Worlds made of Gymnasium environments, and Gymnasium environments made of worlds."""
