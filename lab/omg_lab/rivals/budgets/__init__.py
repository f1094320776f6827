"""Rivals that plan within budgets."""
