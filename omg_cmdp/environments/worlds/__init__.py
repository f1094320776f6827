"""Synthetic worlds."""
