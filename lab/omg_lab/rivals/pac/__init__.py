"""Agents that promise a good policy after some number of episodes, not small regret on the way."""
