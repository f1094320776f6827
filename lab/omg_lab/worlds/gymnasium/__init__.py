"""Gymnasium environments made of worlds."""
