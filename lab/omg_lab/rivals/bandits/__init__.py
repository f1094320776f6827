"""Contextual bandits: agents of other papers for episodes of one step."""
