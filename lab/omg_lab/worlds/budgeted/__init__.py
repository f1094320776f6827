"""Worlds whose decisions cost something, with budgets that bind."""
