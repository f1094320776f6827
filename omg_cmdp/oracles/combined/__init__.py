"""Oracles made of oracles."""
