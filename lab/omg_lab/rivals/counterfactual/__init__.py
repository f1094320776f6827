"""Agents for contexts that are drawn: each asks what it would have played on this context in every earlier round."""
