"""Agents that give the scale: no exploration, the simplest exploration, and the truth."""
