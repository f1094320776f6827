"""Worlds made of published tables."""
